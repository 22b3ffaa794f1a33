import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell, ILayoutRestorer } from '@jupyterlab/application';
import {
  ICommandPalette,
  IThemeManager,
  Notification,
  WidgetTracker
} from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { problemOfError } from '../api/problem';
import type { Server } from '../api/server';
import type { ViewerAction, ViewerName } from '../api/types';
import type { IViewerTarget } from '../api/urls';
import { viewerUrl } from '../api/urls';
import { jaxprofIcon } from '../icons';
import { CommandIDs, IServer } from '../tokens';
import type { Theme } from '../viewer/content';
import { ViewerContent } from '../viewer/content';
import { ViewerTab, viewerTitle } from '../viewer/tab';

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
    let inBrowserTab = labShell === null;
    if (labShell && settings) {
      void settings.load(ID).then(loaded => {
        const read = (): void => {
          inBrowserTab = loaded.get('openIn').composite === 'browser';
        };
        loaded.changed.connect(read);
        read();
      });
    }
    for (const viewer of ['xprof', 'tensorboard'] as const) {
      const command = COMMANDS[viewer];
      const tabs = new Tabs(app, server, viewer, themes, trans);
      app.commands.addCommand(command, {
        label: args =>
          args.isLauncher
            ? viewerTitle(viewer)
            : trans.__('Open %1', viewerTitle(viewer)),
        caption: trans.__('Read traces in %1', viewerTitle(viewer)),
        icon: jaxprofIcon,
        isVisible: () => isAvailable(server, viewer),
        execute: args => {
          if (inBrowserTab && !args.restored) {
            const url = viewerUrl(
              server.client.settings,
              viewer,
              readTarget(args)
            );
            window.open(url, '_blank', 'noopener');
          } else {
            tabs.open(args);
          }
        }
      });
      tabs.restore(restorer, command);
      palette?.addItem({ command, category: 'JaxProf' });
    }
    launcher?.add({
      command: CommandIDs.openXprof,
      args: { isLauncher: true },
      category: 'Other'
    });
    addProcessCommands(app, server, palette, trans);
    // TensorBoard's command is offered only when the server says that it is there.
    void server.check({ background: true });
    server.changed.connect(() => {
      app.commands.notifyCommandChanged(CommandIDs.openTensorboard);
    });
  }
};

const COMMANDS: Record<ViewerName, string> = {
  xprof: CommandIDs.openXprof,
  tensorboard: CommandIDs.openTensorboard
};

/** XProf is offered always, since its tab says why it can't be had; TensorBoard is an extra. */
function isAvailable(server: Server, viewer: ViewerName): boolean {
  return (
    viewer === 'xprof' || server.status?.viewers[viewer].available === true
  );
}

function readTarget(args: ReadonlyPartialJSONObject): IViewerTarget {
  const text = (key: string): string => {
    const value = args[key];
    return typeof value === 'string' ? value : '';
  };
  return { run: text('run'), tool: text('tool'), host: text('host') };
}

/** The tabs of one viewer: one for each run, more when asked for. */
class Tabs {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _server: Server,
    private readonly _viewer: ViewerName,
    private readonly _themes: IThemeManager | null,
    private readonly _trans: TranslationBundle
  ) {
    this._tracker = new WidgetTracker<ViewerTab>({
      namespace: `jaxprof-${_viewer}`
    });
    _themes?.themeChanged.connect(() => {
      this._tracker.forEach(({ content }) => {
        content.theme = this._theme;
      });
    });
  }

  /** Have the tabs come back after a reload of the page, where they were last. */
  restore(restorer: ILayoutRestorer | null, command: string): void {
    void restorer?.restore(this._tracker, {
      command,
      args: ({ id, content }) => ({ ...content.target, id, restored: true }),
      name: ({ id }) => id
    });
  }

  /** Show `{run, tool, host}`: in the run's tab if it has one, unless `another` is asked for. */
  open(args: ReadonlyPartialJSONObject): void {
    const target = readTarget(args);
    const another = Boolean(args.another ?? args.restored);
    const tab = another ? undefined : this._find(target.run);
    if (tab) {
      if (target.tool && target.tool !== tab.content.target.tool) {
        tab.content.navigate(target);
      }
      this._app.shell.activateById(tab.id);
      return;
    }
    this._add(target, args.id);
  }

  private _find(run: string): ViewerTab | undefined {
    const current = this._tracker.currentWidget;
    return current?.content.target.run === run
      ? current
      : this._tracker.find(({ content }) => content.target.run === run);
  }

  private _add(target: IViewerTarget, id: unknown): void {
    const content = new ViewerContent({
      viewer: this._viewer,
      target,
      server: this._server,
      theme: this._theme,
      trans: this._trans
    });
    const tab = new ViewerTab({
      content,
      client: this._server.client,
      openAnother: () => {
        this.open({ ...content.target, another: true });
      },
      trans: this._trans
    });
    tab.id =
      typeof id === 'string'
        ? id
        : `jaxprof-${this._viewer}-${crypto.getRandomValues(new Uint32Array(1)).join('')}`;
    content.targetChanged.connect(() => void this._tracker.save(tab));
    content.entered.connect(() => {
      this._app.shell.activateById(tab.id);
    });
    void this._tracker.add(tab);
    this._app.shell.add(tab, 'main', { type: viewerTitle(this._viewer) });
    this._app.shell.activateById(tab.id);
  }

  private get _theme(): Theme {
    const name = this._themes?.theme;
    return name && !this._themes.isLight(name) ? 'dark' : 'light';
  }

  private readonly _tracker: WidgetTracker<ViewerTab>;
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
      execute: async () => {
        try {
          const { state, message } = await server.client.viewer(
            'xprof',
            action
          );
          if (state === 'failed') {
            Notification.error(message, { autoClose: false });
          } else {
            Notification.success(done, { autoClose: 4000 });
          }
        } catch (error) {
          Notification.error(problemOfError(error).message, {
            autoClose: 8000
          });
        }
      }
    });
    palette?.addItem({ command, category: 'JaxProf' });
  }
}
