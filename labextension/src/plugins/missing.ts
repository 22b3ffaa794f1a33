import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Clipboard, Notification } from '@jupyterlab/apputils';
import type { Cell } from '@jupyterlab/cells';
import type { Notebook } from '@jupyterlab/notebook';
import { NotebookActions } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';

import { INSTALL_COMMAND, missingMagic } from '../magics';
import { followSetting } from '../settings';

const ID = 'jupyterlab-jaxprof:missing-magics';

/** Tells what mends it when a kernel doesn't know the magics. */
export const missingPlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Explains a kernel that lacks the magics.',
  autoStart: true,
  optional: [ITranslator, ISettingRegistry],
  activate: (
    _: JupyterFrontEnd,
    translator: ITranslator | null,
    settings: ISettingRegistry | null
  ) => {
    let notify = true;
    void followSetting(settings, ID, 'notify', value => {
      notify = value !== false;
    });
    const trans = (translator ?? nullTranslator).load('jupyterlab_jaxprof');
    const shown = new WeakMap<Notebook, string>();
    NotebookActions.executed.connect(
      (__, { notebook, cell, success, error }) => {
        const magic = success ? null : missingMagic(error?.errorValue ?? '');
        if (magic === null || !notify) {
          return;
        }
        Notification.dismiss(shown.get(notebook) ?? '');
        shown.set(notebook, explain(magic, notebook, cell, trans));
      }
    );
  }
};

/** Show the notification; gives its identifier. */
function explain(
  magic: string,
  notebook: Notebook,
  cell: Cell,
  trans: TranslationBundle
): string {
  // JupyterLab cuts messages at 140 characters.
  const message = trans.__(
    'The kernel’s environment lacks jupyterlab-jaxprof, so it has no %1. Run %2, then restart the kernel.',
    magic,
    INSTALL_COMMAND
  );
  return Notification.warning(message, {
    autoClose: false,
    actions: [
      {
        label: trans.__('Insert a cell'),
        displayType: 'accent',
        callback: () => {
          insertAbove(notebook, cell);
        }
      },
      {
        label: trans.__('Copy'),
        callback: () => {
          Clipboard.copyToSystem(INSTALL_COMMAND);
        }
      }
    ]
  });
}

/** Insert a cell with the command above the one that failed. */
function insertAbove(notebook: Notebook, cell: Cell): void {
  if (notebook.isDisposed) {
    return;
  }
  const index = notebook.widgets.indexOf(cell);
  if (index >= 0) {
    notebook.activeCellIndex = index;
  }
  NotebookActions.insertAbove(notebook);
  notebook.activeCell?.model.sharedModel.setSource(INSTALL_COMMAND);
}
