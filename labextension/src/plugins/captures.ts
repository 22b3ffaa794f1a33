import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import {
  copyIcon,
  deleteIcon,
  downloadIcon,
  editIcon,
  launchIcon,
  listIcon
} from '@jupyterlab/ui-components';

import type { Server } from '../api/server';
import type { ICaptureRow } from '../api/types';
import { CAPTURES_EVENT } from '../api/types';
import { jaxprofIcon, pinIcon } from '../icons';
import { usesMagics, withLine } from '../magics';
import { Actions } from '../sidebar/actions';
import { CapturesModel } from '../sidebar/model';
import { CapturesPanel } from '../sidebar/panel';
import { CommandIDs, IServer } from '../tokens';

/** The sidebar, its commands, and what makes it live. */
export const capturesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-jaxprof:captures',
  description: 'Lists the captures in a sidebar.',
  autoStart: true,
  requires: [IServer],
  optional: [
    ITranslator,
    ILabShell,
    ILayoutRestorer,
    INotebookTracker,
    ICommandPalette
  ],
  activate: (
    app: JupyterFrontEnd,
    server: Server,
    translator: ITranslator | null,
    labShell: ILabShell | null,
    restorer: ILayoutRestorer | null,
    notebooks: INotebookTracker | null,
    palette: ICommandPalette | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_jaxprof');
    const model = new CapturesModel(server);
    const openXprof = (run: string, another: boolean): void => {
      void app.commands.execute(CommandIDs.openXprof, { run, another });
    };
    const actions = new Actions(model, openXprof, trans);
    const panel = new CapturesPanel({
      model,
      actions,
      trans,
      openXprof: () => void app.commands.execute(CommandIDs.openXprof),
      insertLine: () => insertLine(notebooks)
    });
    app.shell.add(panel, 'left', { rank: 600, type: 'JaxProf' });
    restorer?.add(panel, panel.id);
    followChanges(app, model);
    notebooks?.currentChanged.connect(() => {
      model.stateChanged.emit();
    });
    addCaptureCommands(app, actions, trans);
    addPanelCommands(app, model, panel.id, labShell, trans);
    for (const command of [CommandIDs.show, CommandIDs.refresh]) {
      palette?.addItem({ command, category: 'JaxProf' });
    }
  }
};

/** Refresh when the server says that the store has changed, or when it may have while nobody heard. */
function followChanges(app: JupyterFrontEnd, model: CapturesModel): void {
  app.serviceManager.events.stream.connect((_, event) => {
    if (event.schema_id === CAPTURES_EVENT) {
      model.notify();
    }
  });
  // The stream of events may be away (a proxy, a laptop that slept): these need no server to tell.
  NotebookActions.executed.connect((_, { cell }) => {
    if (usesMagics(cell.model.sharedModel.getSource())) {
      model.notify();
    }
  });
  window.addEventListener('online', () => {
    model.notify();
  });
}

/** Give a function that puts a line above the active cell's code; null when there is no such cell. */
function insertLine(
  notebooks: INotebookTracker | null
): ((line: string) => void) | null {
  const cell = notebooks?.activeCell?.model;
  if (cell?.type !== 'code') {
    return null;
  }
  return line => {
    cell.sharedModel.setSource(withLine(cell.sharedModel.getSource(), line));
  };
}

interface ICaptureCommand {
  id: string;
  label: string | ((row: ICaptureRow | undefined) => string);
  icon: LabIcon;
  run: (row: ICaptureRow) => void | Promise<void>;
  /** Whether it can be done with this capture; by default with every readable one. */
  fits?: (row: ICaptureRow) => boolean;
}

/** The commands of the context menu; each acts on the selected capture. */
function captureCommands(
  actions: Actions,
  trans: TranslationBundle
): ICaptureCommand[] {
  const { model } = actions;
  const inXprof = (row: ICaptureRow): boolean => row.xprof_run !== null;
  const hasFiles = (row: ICaptureRow): boolean => row.files.length > 0;
  return [
    {
      id: CommandIDs.open,
      label: trans.__('Open in XProf'),
      icon: jaxprofIcon,
      run: row => {
        actions.open(row);
      },
      fits: inXprof
    },
    {
      id: CommandIDs.openAnother,
      label: trans.__('Open in Another XProf Tab'),
      icon: launchIcon,
      run: row => {
        actions.open(row, true);
      },
      fits: inXprof
    },
    {
      id: CommandIDs.download,
      label: row =>
        row?.files.length === 1
          ? trans.__('Download the File')
          : trans.__('Download All Files (Zip)'),
      icon: downloadIcon,
      run: row => {
        actions.download(row);
      },
      fits: hasFiles
    },
    {
      id: CommandIDs.downloadArchive,
      label: trans.__('Download as a Zip'),
      icon: downloadIcon,
      run: row => {
        actions.downloadArchive(row);
      },
      fits: row => row.files.length === 1
    },
    {
      id: CommandIDs.details,
      label: trans.__('Details, Files and Notes'),
      icon: listIcon,
      run: () => {
        model.setDetailsOpen(true);
      },
      fits: () => true
    },
    {
      id: CommandIDs.rename,
      label: trans.__('Rename'),
      icon: editIcon,
      run: row => {
        model.startRenaming(row.id);
      }
    },
    {
      id: CommandIDs.pin,
      label: row => (row?.pinned ? trans.__('Unpin') : trans.__('Pin')),
      icon: pinIcon,
      run: row => actions.togglePin(row)
    },
    {
      id: CommandIDs.copyPath,
      label: trans.__('Copy Path'),
      icon: copyIcon,
      run: row => actions.copyPath(row)
    },
    {
      id: CommandIDs.copyRun,
      label: trans.__('Copy Run Name'),
      icon: copyIcon,
      run: row => {
        actions.copyRun(row);
      },
      fits: inXprof
    },
    {
      id: CommandIDs.remove,
      label: trans.__('Delete…'),
      icon: deleteIcon,
      run: row => actions.delete(row),
      fits: () => true
    }
  ];
}

function addCaptureCommands(
  app: JupyterFrontEnd,
  actions: Actions,
  trans: TranslationBundle
): void {
  const { model } = actions;
  for (const command of captureCommands(actions, trans)) {
    const { label, icon, run } = command;
    const fits = command.fits ?? (row => row.problem === null);
    const possible = (): boolean => {
      const row = model.selected;
      return row !== undefined && fits(row);
    };
    app.commands.addCommand(command.id, {
      label: typeof label === 'string' ? label : () => label(model.selected),
      icon,
      isEnabled: possible,
      isVisible: possible,
      execute: () => {
        const row = model.selected;
        return row && run(row);
      }
    });
  }
}

function addPanelCommands(
  app: JupyterFrontEnd,
  model: CapturesModel,
  panelId: string,
  labShell: ILabShell | null,
  trans: TranslationBundle
): void {
  app.commands.addCommand(CommandIDs.show, {
    label: trans.__('Show the Captures'),
    icon: jaxprofIcon,
    execute: () => {
      (labShell ?? app.shell).activateById(panelId);
    }
  });
  app.commands.addCommand(CommandIDs.refresh, {
    label: trans.__('Refresh the Captures'),
    execute: () => model.reload()
  });
}
