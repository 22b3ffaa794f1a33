import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import type { IThemeManager } from '@jupyterlab/apputils';
import { WidgetTracker } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { Server } from '../api/server';
import type { ViewerName } from '../api/types';
import type { IViewerTarget } from '../api/urls';
import type { Theme } from './content';
import { ViewerContent } from './content';
import { ViewerTab, viewerTitle } from './tab';

/** Read `{run, tool, host}` from a command's arguments. */
export function readTarget(args: ReadonlyPartialJSONObject): IViewerTarget {
  const text = (key: string): string => {
    const value = args[key];
    return typeof value === 'string' ? value : '';
  };
  return { run: text('run'), tool: text('tool'), host: text('host') };
}

/** The tabs of one viewer: one for each run, more when asked for. */
export class Tabs {
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
