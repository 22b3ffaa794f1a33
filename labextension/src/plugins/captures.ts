import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import type { ICellModel } from '@jupyterlab/cells';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import type { Server } from '../api/server';
import { CAPTURES_EVENT } from '../api/types';
import { usesMagics, withLine } from '../magics';
import { measuredCells } from '../run/measure';
import { Actions } from '../sidebar/actions';
import { CapturesModel } from '../sidebar/model';
import { CapturesPanel } from '../sidebar/panel';
import { CommandIDs, ICapturesSidebar, IServer, OPEN_VIEWER } from '../tokens';
import { addCaptureCommands, addPanelCommands } from './commands';

/** The sidebar, its commands, and what makes it live. */
export const capturesPlugin: JupyterFrontEndPlugin<ICapturesSidebar> = {
  id: 'jupyterlab-jaxprof:captures',
  description: 'Lists the captures in a sidebar.',
  autoStart: true,
  provides: ICapturesSidebar,
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
    const actions = new Actions(
      model,
      (viewer, run, another) =>
        void app.commands.execute(OPEN_VIEWER[viewer], { run, another }),
      trans
    );
    const panel = new CapturesPanel({
      model,
      actions,
      trans,
      openXprof: () => void app.commands.execute(CommandIDs.openXprof),
      importFile: () => void app.commands.execute(CommandIDs.importFile),
      insertLine: () => insertLine(notebooks)
    });
    app.shell.add(panel, 'left', { rank: 600, type: 'JaxProf' });
    restorer?.add(panel, panel.id);
    followChanges(app, model);
    // Whether there is a cell to put a line into.
    notebooks?.activeCellChanged.connect(() => {
      model.stateChanged.emit();
    });
    addCaptureCommands(app, actions, trans);
    addPanelCommands(app, model, panel.id, labShell, trans);
    for (const command of [CommandIDs.show, CommandIDs.refresh]) {
      palette?.addItem({ command, category: 'JaxProf' });
    }
    return panel;
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
    const source = cell.model.sharedModel.getSource();
    if (usesMagics(source) || measuredCells.has(cell)) {
      model.notify();
    }
  });
  window.addEventListener('online', () => {
    model.notify();
  });
}

/** Give a function that puts a line above the code of the cell that is active when it is called; null without one. */
function insertLine(
  notebooks: INotebookTracker | null
): ((line: string) => void) | null {
  const activeCode = (): ICellModel | null => {
    const cell = notebooks?.activeCell?.model;
    return cell?.type === 'code' ? cell : null;
  };
  return (
    activeCode() &&
    (line => {
      const code = activeCode()?.sharedModel;
      code?.setSource(withLine(code.getSource(), line));
    })
  );
}
