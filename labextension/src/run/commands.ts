import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import { InputDialog, Notification } from '@jupyterlab/apputils';
import type { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { beginsWith, foreignMagic, withLine } from '../magics';
import type { IMagic } from './magics';
import { INSERT_COMMAND, REFUSAL_COMMAND } from './magics';
import { runUnder } from './measure';
import { refusal } from './refusal';

export interface IRunContext {
  app: JupyterFrontEnd;
  notebooks: INotebookTracker;
  magics: readonly IMagic[];
  dialogs: ISessionContext.IDialogs | undefined;
  translator: ITranslator;
  trans: TranslationBundle;
}

/** The commands that run the active cell under a magic, or write one into it. */
export function addRunCommands(context: IRunContext): void {
  const { app, notebooks, magics, trans } = context;
  const reason = (): string => refusal(notebooks.currentWidget, trans);
  for (const magic of magics) {
    app.commands.addCommand(magic.command, {
      label: magic.label,
      caption: () => reason() || magic.caption,
      icon: magic.icon,
      isEnabled: () => reason() === '',
      execute: () => run(context, magic)
    });
  }
  app.commands.addCommand(REFUSAL_COMMAND, {
    label: reason,
    isVisible: () => reason() !== '',
    isEnabled: () => false,
    execute: () => undefined
  });
  app.commands.addCommand(INSERT_COMMAND, {
    label: args => trans.__('Insert %1', lineOf(args)),
    caption: trans.__('Write the magic above the cell’s code, and run nothing'),
    isEnabled: () => insertable(notebooks.currentWidget) !== null,
    execute: args => {
      insert(notebooks.currentWidget, lineOf(args));
    }
  });
  notebooks.activeCellChanged.connect(() => {
    for (const { command } of magics) {
      app.commands.notifyCommandChanged(command);
    }
  });
}

/** The magic that the command's arguments name. */
function lineOf({ magic }: ReadonlyPartialJSONObject): string {
  return typeof magic === 'string' ? magic : '%%jaxtrace';
}

async function run(context: IRunContext, magic: IMagic): Promise<void> {
  const { notebooks, dialogs, translator, trans } = context;
  const panel = notebooks.currentWidget;
  const cell = panel?.content.activeCell;
  if (!panel || !cell) {
    return;
  }
  const source = cell.model.sharedModel.getSource();
  let { line } = magic;
  takeKeyboard(panel);
  if (magic.asks && !beginsWith(source, line)) {
    const values = await ask(trans);
    if (values === null) {
      return;
    }
    line = `${line} ${values}`;
  }
  if (!(await runUnder(panel, line, dialogs, translator))) {
    Notification.warning(
      trans.__(
        'This JupyterLab does not run cells by itself, so the cell ran without %1. Insert the magic instead.',
        magic.inserted
      ),
      { autoClose: false }
    );
  }
}

/** Give the notebook the keyboard, which a menu had: a dialog gives it back there, and a run leaves it there. */
function takeKeyboard({ content }: NotebookPanel): void {
  content.mode = 'command';
  content.activeCell?.node.focus();
}

/** What was swept last, offered again. */
let lastValues = '';

async function ask(trans: TranslationBundle): Promise<string | null> {
  const { button, value } = await InputDialog.getText({
    title: trans.__('Sweep this Cell'),
    label: trans.__(
      'A name that the cell uses, and its values; options may follow.'
    ),
    placeholder: 'batch=8,32,128',
    text: lastValues,
    okLabel: trans.__('Sweep'),
    required: true
  });
  const values = value?.replace(/\s+/g, ' ').trim() ?? '';
  if (!button.accept || !values) {
    return null;
  }
  lastValues = values;
  return values;
}

/** The active cell's text if a magic can be put above it; else null. */
function insertable(panel: NotebookPanel | null): string | null {
  const cell = panel?.content.activeCell?.model;
  const source = cell?.type === 'code' ? cell.sharedModel.getSource() : null;
  return source !== null && foreignMagic(source) === null ? source : null;
}

function insert(panel: NotebookPanel | null, line: string): void {
  const source = insertable(panel);
  if (source !== null) {
    panel?.content.activeCell?.model.sharedModel.setSource(
      withLine(source, line)
    );
  }
}
