import type { ILabShell, JupyterFrontEnd } from '@jupyterlab/application';
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

import type { ICaptureRow } from '../api/types';
import { jaxprofIcon, pinIcon } from '../icons';
import type { Actions } from '../sidebar/actions';
import type { CapturesModel } from '../sidebar/model';
import { isReadable } from '../sidebar/troubles';
import { CommandIDs } from '../tokens';

interface ICaptureCommand {
  id: string;
  label: string | ((row: ICaptureRow | undefined) => string);
  icon: LabIcon;
  run: (row: ICaptureRow) => void | Promise<void>;
  /** Whether it can be done with this capture; by default with every readable one. */
  fits?: (row: ICaptureRow) => boolean;
  /** Whether its key does what is next best where it does not fit. */
  hasFallback?: boolean;
  /** What it does where several captures are selected; without that it is for one. */
  runAll?: () => void | Promise<void>;
}

const inXprof = (row: ICaptureRow): boolean => row.xprof_run !== null;

/** Open a capture, download it, look at it. */
function readingCommands(
  actions: Actions,
  trans: TranslationBundle
): ICaptureCommand[] {
  return [
    {
      id: CommandIDs.open,
      label: trans.__('Open in XProf'),
      icon: jaxprofIcon,
      run: row => {
        actions.open(row);
      },
      fits: inXprof,
      hasFallback: true
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
      id: CommandIDs.openInTensorboard,
      label: trans.__('Open in TensorBoard'),
      icon: launchIcon,
      run: row => {
        actions.openInTensorboard(row);
      },
      fits: row =>
        inXprof(row) && actions.model.server.isAvailable('tensorboard')
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
      fits: row => row.files.length > 0
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
        actions.model.setDetailsOpen(true);
      },
      fits: () => true
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
    }
  ];
}

/** Change a capture, or delete it. */
function changingCommands(
  actions: Actions,
  trans: TranslationBundle
): ICaptureCommand[] {
  return [
    {
      id: CommandIDs.rename,
      label: trans.__('Rename'),
      icon: editIcon,
      run: row => {
        actions.model.startRenaming(row.id);
      }
    },
    {
      id: CommandIDs.pin,
      label: row => (row?.pinned ? trans.__('Unpin') : trans.__('Pin')),
      icon: pinIcon,
      run: row => actions.togglePin(row)
    },
    {
      id: CommandIDs.remove,
      label: trans.__('Delete…'),
      icon: deleteIcon,
      run: row => actions.delete(row),
      runAll: () => actions.deleteSelected(),
      fits: () => true
    }
  ];
}

/** The commands of the context menu; each acts on the selected capture. */
export function addCaptureCommands(
  app: JupyterFrontEnd,
  actions: Actions,
  trans: TranslationBundle
): void {
  const { model } = actions;
  const commands = [
    ...readingCommands(actions, trans),
    ...changingCommands(actions, trans)
  ];
  for (const command of commands) {
    const { label, icon, run, runAll } = command;
    const fits = command.fits ?? isReadable;
    const possible = (): boolean => {
      const row = model.selected;
      return model.hasSeveral ? !!runAll : row !== undefined && fits(row);
    };
    app.commands.addCommand(command.id, {
      label: typeof label === 'string' ? label : () => label(model.selected),
      icon,
      isEnabled: () =>
        possible() ||
        (command.hasFallback === true && !!model.selected && !model.hasSeveral),
      isVisible: possible,
      execute: () => {
        const row = model.selected;
        return model.hasSeveral && runAll ? runAll() : row && run(row);
      }
    });
  }
}

/** Show the sidebar, and ask for its list anew. */
export function addPanelCommands(
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
