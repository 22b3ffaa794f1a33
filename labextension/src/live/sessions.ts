import type { IRunningSessions } from '@jupyterlab/running';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import type { Client } from '../api/client';
import type { IViewerState, ViewerName } from '../api/types';
import { formatBytes } from '../format';
import { jaxprofIcon } from '../icons';
import { viewerTitle } from '../viewer/tab';
import type { RunningModel } from './model';

/** What the entries need of the rest. */
export interface IViewerActions {
  client: Client;
  open: (viewer: ViewerName) => void;
  /** Tell that a viewer could not be stopped. */
  tell: (error: unknown) => void;
}

/** The viewers' processes in JupyterLab's list of what runs. */
export function viewerSessions(
  model: RunningModel,
  actions: IViewerActions,
  trans: TranslationBundle
): IRunningSessions.IManager {
  const changed = new Signal<object, void>(model);
  model.stateChanged.connect(() => {
    changed.emit();
  });
  const stop = async (viewer: ViewerName): Promise<void> => {
    try {
      await actions.client.viewer(viewer, 'stop');
    } catch (error) {
      actions.tell(error);
    }
    await model.refresh();
  };
  return {
    name: trans.__('JaxProf Viewers'),
    running: () =>
      model.runningViewers.map(viewer => item(viewer, stop, actions, trans)),
    shutdownAll: () => {
      model.runningViewers.forEach(({ name }) => void stop(name));
    },
    refreshRunning: () => void model.refresh(),
    runningChanged: changed,
    shutdownLabel: trans.__('Shut Down'),
    shutdownAllLabel: trans.__('Shut Down All'),
    shutdownAllConfirmationText: trans.__(
      'Shut down XProf and TensorBoard? They start again when they are next opened; no capture is lost.'
    )
  };
}

function item(
  viewer: IViewerState,
  stop: (viewer: ViewerName) => Promise<void>,
  actions: IViewerActions,
  trans: TranslationBundle
): IRunningSessions.IRunningItem {
  const title = viewerTitle(viewer.name);
  const memory = formatBytes(viewer.memory_bytes);
  return {
    open: () => {
      actions.open(viewer.name);
    },
    shutdown: () => void stop(viewer.name),
    icon: () => jaxprofIcon,
    label: () => title,
    labelTitle: () => trans.__('%1 uses %2 of memory', title, memory),
    detail: () => (viewer.memory_bytes === null ? '' : memory)
  };
}
