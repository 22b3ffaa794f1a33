import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import {
  ICommandPalette,
  IThemeManager,
  Notification
} from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';

import type { Server } from '../api/server';
import type { ViewerAction, ViewerName } from '../api/types';
import { viewerUrl } from '../api/urls';
import { jaxprofIcon } from '../icons';
import { followSetting } from '../settings';
import { wordsOf } from '../sidebar/problem';
import { CommandIDs, IServer, OPEN_VIEWER } from '../tokens';
import { viewerTitle } from '../viewer/tab';
import { readTarget, Tabs } from '../viewer/tabs';

const ID = 'jupyterlab-jaxprof:viewers';

/** XProf and TensorBoard: their tabs and commands. Without JupyterLab's main area they open in browser tabs. */
export const viewersPlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Opens captures in XProf and TensorBoard.',
  autoStart: true,
  requires: [IServer],
  optional: [
    ITranslator,
    ILabShell,
    ILayoutRestorer,
    ICommandPalette,
    ILauncher,
    ISettingRegistry,
    IThemeManager
  ],
  activate: (
    app: JupyterFrontEnd,
    server: Server,
    translator: ITranslator | null,
    labShell: ILabShell | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    settings: ISettingRegistry | null,
    themes: IThemeManager | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_jaxprof');
    const inBrowserTab = labShell ? readOpenIn(settings) : () => true;
    for (const viewer of ['xprof', 'tensorboard'] as const) {
      const command = OPEN_VIEWER[viewer];
      const tabs = new Tabs(app, server, viewer, themes, trans);
      addOpenCommand(app, server, viewer, tabs, inBrowserTab, trans);
      tabs.restore(restorer, command);
      palette?.addItem({ command, category: 'JaxProf' });
      if (launcher) {
        keepInLauncher(launcher, server, viewer);
      }
    }
    addProcessCommands(app, server, palette, trans);
    void server.check({ background: true });
    server.changed.connect(() => {
      app.commands.notifyCommandChanged(CommandIDs.openTensorboard);
    });
  }
};

/** Follow the setting `openIn`; gives what it says now. */
function readOpenIn(settings: ISettingRegistry | null): () => boolean {
  let inBrowserTab = false;
  void followSetting(settings, ID, 'openIn', value => {
    inBrowserTab = value === 'browser';
  });
  return () => inBrowserTab;
}

function addOpenCommand(
  app: JupyterFrontEnd,
  server: Server,
  viewer: ViewerName,
  tabs: Tabs,
  inBrowserTab: () => boolean,
  trans: TranslationBundle
): void {
  const title = viewerTitle(viewer);
  app.commands.addCommand(OPEN_VIEWER[viewer], {
    label: args => (args.isLauncher ? title : trans.__('Open %1', title)),
    caption: trans.__('Read traces in %1', title),
    icon: jaxprofIcon,
    isVisible: () => isOffered(server, viewer),
    execute: args => {
      if (inBrowserTab() && !args.restored) {
        const target = readTarget(args);
        const url = viewerUrl(server.client.settings, viewer, target);
        window.open(url, '_blank', 'noopener');
      } else {
        tabs.open(args);
      }
    }
  });
}

/** XProf is offered always, since its tab says why it can't be had; TensorBoard is an extra. */
function isOffered(server: Server, viewer: ViewerName): boolean {
  return viewer === 'xprof' || server.isAvailable(viewer);
}

/** Have a card in the launcher for as long as the viewer is offered; the launcher doesn't ask the command. */
function keepInLauncher(
  launcher: ILauncher,
  server: Server,
  viewer: ViewerName
): void {
  let card: IDisposable | null = null;
  const update = (): void => {
    if (!isOffered(server, viewer)) {
      card?.dispose();
      card = null;
    } else {
      card ??= launcher.add({
        command: OPEN_VIEWER[viewer],
        args: { isLauncher: true },
        category: 'Other'
      });
    }
  };
  server.changed.connect(update);
  update();
}

/** Stop and restart XProf, whose memory grows with what it has shown. */
function addProcessCommands(
  app: JupyterFrontEnd,
  server: Server,
  palette: ICommandPalette | null,
  trans: TranslationBundle
): void {
  const commands: [string, ViewerAction, string, string][] = [
    [
      CommandIDs.restartXprof,
      'restart',
      trans.__('Restart XProf'),
      trans.__('XProf was restarted.')
    ],
    [
      CommandIDs.stopXprof,
      'stop',
      trans.__('Stop XProf'),
      trans.__('XProf was stopped. It starts again when it is next opened.')
    ]
  ];
  for (const [command, action, label, done] of commands) {
    app.commands.addCommand(command, {
      label,
      execute: () => tellOutcome(server, action, done, trans)
    });
    palette?.addItem({ command, category: 'JaxProf' });
  }
}

/** Stop or restart XProf, and say how it went. */
async function tellOutcome(
  server: Server,
  action: ViewerAction,
  done: string,
  trans: TranslationBundle
): Promise<void> {
  try {
    const { state, message } = await server.client.viewer('xprof', action);
    if (state === 'failed') {
      Notification.error(message, { autoClose: false });
    } else {
      Notification.success(done, { autoClose: 4000 });
    }
  } catch (error) {
    Notification.error(wordsOf(error, trans), { autoClose: 8000 });
  }
}
