import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import type { ICellModel } from '@jupyterlab/cells';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import type { Server } from '../api/server';
import { withLine } from '../magics';
import { Actions } from '../sidebar/actions';
import { showDoctor } from '../sidebar/doctor';
import { CapturesModel } from '../sidebar/model';
import { CapturesPanel } from '../sidebar/panel';
import { CommandIDs, ICapturesSidebar, IServer, OPEN_VIEWER } from '../tokens';
import { followChanges } from './changes';
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
      id => void app.commands.execute(CommandIDs.openCapture, { id }),
      trans
    );
    const panel = new CapturesPanel({
      model,
      actions,
      trans,
      openXprof: () => void app.commands.execute(CommandIDs.openXprof),
      importFile: () => void app.commands.execute(CommandIDs.importFile),
      checkInstallation: () => void app.commands.execute(CommandIDs.doctor),
      insertLine: () => insertLine(notebooks)
    });
    app.shell.add(panel, 'left', { rank: 600, type: 'JaxProf' });
    restorer?.add(panel, panel.id);
    followChanges(app, () => {
      model.notify();
    });
    // Whether there is a cell to put a line into.
    notebooks?.activeCellChanged.connect(() => {
      model.stateChanged.emit();
    });
    addCaptureCommands(app, actions, trans);
    app.commands.addCommand(CommandIDs.doctor, {
      label: trans.__('Check the Installation'),
      execute: () => showDoctor(server.client, trans)
    });
    addPanelCommands(app, model, panel.id, labShell, trans);
    palette?.addItem({ command: CommandIDs.refresh, category: 'JaxProf' });
    palette?.addItem({ command: CommandIDs.doctor, category: 'JaxProf' });
    if (labShell) {
      // Notebook 7 offers a command of its own to show each panel at its side.
      palette?.addItem({ command: CommandIDs.show, category: 'JaxProf' });
    }
    return panel;
  }
};

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
