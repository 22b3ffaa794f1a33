import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookActions } from '@jupyterlab/notebook';
import { IRunningSessionManagers } from '@jupyterlab/running';
import { KernelAPI } from '@jupyterlab/services';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import React from 'react';

import type { Server } from '../api/server';
import { RUNNING_EVENT } from '../api/types';
import { RunningModel } from '../live/model';
import { RunningSection } from '../live/section';
import { viewerSessions } from '../live/sessions';
import { StatusItem } from '../live/status';
import { Strip, StripModel } from '../live/strip';
import { usesMagics } from '../magics';
import { followSetting } from '../settings';
import { wordsOf } from '../sidebar/problem';
import { CommandIDs, ICapturesSidebar, IServer, OPEN_VIEWER } from '../tokens';

const ID = 'jupyterlab-jaxprof:live';

/** What runs now: in the sidebar, in the status bar and in JupyterLab's own list; and the live strip. */
export const livePlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Shows what is measured now, and what runs.',
  autoStart: true,
  requires: [IServer, ICapturesSidebar],
  optional: [
    ITranslator,
    IStatusBar,
    IRunningSessionManagers,
    INotebookTracker,
    ISettingRegistry,
    ICommandPalette
  ],
  activate: (
    app: JupyterFrontEnd,
    server: Server,
    sidebar: ICapturesSidebar,
    translator: ITranslator | null,
    statusBar: IStatusBar | null,
    sessions: IRunningSessionManagers | null,
    notebooks: INotebookTracker | null,
    settings: ISettingRegistry | null,
    palette: ICommandPalette | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_jaxprof');
    const model = new RunningModel(server);
    followEvents(app, model, sidebar);
    const tell = (error: unknown): void => {
      Notification.error(wordsOf(error, trans), { autoClose: 8000 });
    };
    sidebar.addSection(() =>
      React.createElement(RunningSection, {
        model,
        trans,
        stop: ({ kernel_id }) => {
          KernelAPI.interruptKernel(kernel_id, server.client.settings).catch(
            tell
          );
        }
      })
    );
    if (statusBar) {
      addStatusItem(app, statusBar, model, trans);
    }
    sessions?.add(
      viewerSessions(
        model,
        {
          client: server.client,
          open: viewer => void app.commands.execute(OPEN_VIEWER[viewer]),
          tell
        },
        trans
      )
    );
    addStrip(app, server, sidebar, { notebooks, settings, palette }, trans);
  }
};

/** Ask what runs when the server says that it has changed, or when it may have while nobody heard. */
function followEvents(
  app: JupyterFrontEnd,
  model: RunningModel,
  sidebar: ICapturesSidebar
): void {
  app.serviceManager.events.stream.connect((_, event) => {
    if (event.schema_id === RUNNING_EVENT) {
      model.notify();
    }
  });
  NotebookActions.executed.connect((_, { cell }) => {
    if (usesMagics(cell.model.sharedModel.getSource())) {
      model.notify();
    }
  });
  let wasVisible = false;
  sidebar.model.stateChanged.connect(({ isVisible }) => {
    if (isVisible && !wasVisible) {
      model.notify();
    }
    wasVisible = isVisible;
  });
  model.notify();
}

function addStatusItem(
  app: JupyterFrontEnd,
  statusBar: IStatusBar,
  model: RunningModel,
  trans: TranslationBundle
): void {
  const item = new StatusItem(
    model,
    trans,
    () => void app.commands.execute(CommandIDs.show)
  );
  const changed = new Signal<object, void>(item);
  model.stateChanged.connect(() => {
    changed.emit();
  });
  statusBar.registerStatusItem(ID, {
    item,
    align: 'left',
    rank: 90,
    isActive: () => item.isNeeded,
    activeStateChanged: changed
  });
}

interface IStripSurroundings {
  notebooks: INotebookTracker | null;
  settings: ISettingRegistry | null;
  palette: ICommandPalette | null;
}

/** The live strip, where the user has switched it on. */
function addStrip(
  app: JupyterFrontEnd,
  server: Server,
  sidebar: ICapturesSidebar,
  { notebooks, settings, palette }: IStripSurroundings,
  trans: TranslationBundle
): void {
  const strip = new StripModel(server);
  let isOn = false;
  const update = (): void => {
    const kernel = notebooks?.currentWidget?.sessionContext.session?.kernel;
    strip.follow(isOn, sidebar.model.isVisible, kernel?.id ?? null);
  };
  sidebar.addSection(() => React.createElement(Strip, { model: strip, trans }));
  let wasVisible = sidebar.model.isVisible;
  sidebar.model.stateChanged.connect(({ isVisible }) => {
    if (isVisible !== wasVisible) {
      wasVisible = isVisible;
      update();
    }
  });
  notebooks?.currentChanged.connect((_, panel) => {
    panel?.sessionContext.kernelChanged.connect(update);
    update();
  });
  const set = (on: boolean): void => {
    isOn = on;
    update();
    app.commands.notifyCommandChanged(CommandIDs.toggleStrip);
  };
  const loaded = followSetting(settings, ID, 'strip', value => {
    set(value === true);
  });
  app.commands.addCommand(CommandIDs.toggleStrip, {
    label: trans.__('Show What the Kernel Uses'),
    caption: trans.__(
      'Memory and busy share of the current kernel’s devices, in the sidebar'
    ),
    isToggleable: true,
    isToggled: () => isOn,
    execute: async () => {
      set(!isOn);
      await (await loaded)?.set('strip', isOn);
    }
  });
  palette?.addItem({ command: CommandIDs.toggleStrip, category: 'JaxProf' });
}
