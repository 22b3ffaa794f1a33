import type { TranslationBundle } from '@jupyterlab/translation';
import { IFrame, ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import { Panel } from '@lumino/widgets';
import React from 'react';

import type { Server } from '../api/server';
import type { ViewerName } from '../api/types';
import type { IViewerTarget } from '../api/urls';
import { viewerUrl } from '../api/urls';
import { ProblemView } from '../sidebar/problem';

export interface IViewerOptions {
  viewer: ViewerName;
  target: IViewerTarget;
  server: Server;
  /** The colours around the viewer. */
  theme: Theme;
  trans: TranslationBundle;
}

export type Theme = 'light' | 'dark';

/**
 * A viewer's page in a frame, at one run and tool.
 *
 * The page is loaded when the tab is first shown: a restored workspace with ten tabs opens one. It tells where
 * the user went by posting `{source: 'jaxprof', type: 'state', run, tool, host}`; the whole protocol stands in
 * jupyterlab_jaxprof/server/static/viewer.js.
 */
export class ViewerContent extends Panel {
  constructor(private readonly _options: IViewerOptions) {
    super();
    this.addClass('jp-JaxProf-viewer');
    this.node.tabIndex = -1;
    this._target = _options.target;
    this._theme = _options.theme;
  }

  get viewer(): ViewerName {
    return this._options.viewer;
  }

  get target(): IViewerTarget {
    return this._target;
  }

  /** The address of the page, for a browser tab. */
  get url(): string {
    const { server, viewer } = this._options;
    return viewerUrl(server.client.settings, viewer, this._target);
  }

  /** Emitted when the page or a command has gone to another run or tool. */
  get targetChanged(): ISignal<this, IViewerTarget> {
    return this._targetChanged;
  }

  /** Emitted when somebody clicks into the page, whose events stay in its frame. */
  get entered(): ISignal<this, void> {
    return this._entered;
  }

  set theme(theme: Theme) {
    this._theme = theme;
    this._window?.postMessage(
      { source: 'jaxprof', type: 'theme', theme },
      window.location.origin
    );
  }

  /** Go to another run or tool. */
  navigate(target: IViewerTarget): void {
    this._setTarget(target);
    if (this._loaded) {
      void this.reload();
    }
  }

  /** Load the page anew where it is. */
  async reload(): Promise<void> {
    this._loaded = true;
    const { server } = this._options;
    const problem = await server.check();
    if (this.isDisposed) {
      return;
    }
    this._clear();
    if (problem) {
      this.addWidget(
        ReactWidget.create(
          React.createElement(ProblemView, {
            problem,
            trans: this._options.trans,
            onRetry: () => void this.reload()
          })
        )
      );
      this.widgets[0]?.addClass('jp-JaxProf-viewerProblem');
      return;
    }
    const url = new URL(this.url);
    url.searchParams.set('theme', this._theme);
    this._frame = makeFrame(url.href);
    this.addWidget(this._frame);
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    window.addEventListener('message', this._onMessage);
    window.addEventListener('blur', this._onBlur);
    this._loadOnce();
  }

  protected override onBeforeDetach(msg: Message): void {
    window.removeEventListener('message', this._onMessage);
    window.removeEventListener('blur', this._onBlur);
    // A frame that is put elsewhere in the page loads anew, and not where the user was.
    this._clear();
    this._loaded = false;
    super.onBeforeDetach(msg);
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._loadOnce();
  }

  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    this.node.focus();
  }

  private get _element(): HTMLIFrameElement | null {
    return this._frame?.node.querySelector('iframe') ?? null;
  }

  private get _window(): Window | null {
    return this._element?.contentWindow ?? null;
  }

  private _clear(): void {
    this._frame = null;
    for (const widget of [...this.widgets]) {
      widget.dispose();
    }
  }

  private _loadOnce(): void {
    if (!this._loaded && this.isVisible) {
      void this.reload();
    }
  }

  private _setTarget(target: IViewerTarget): void {
    const before = this._target;
    if (
      target.run !== before.run ||
      target.tool !== before.tool ||
      target.host !== before.host
    ) {
      this._target = target;
      this._targetChanged.emit(target);
    }
  }

  private readonly _onMessage = (event: MessageEvent<unknown>): void => {
    if (
      event.source === this._window &&
      event.origin === window.location.origin
    ) {
      const target = readState(event.data);
      if (target) {
        this._setTarget(target);
      }
    }
  };

  /** The focus moving into a frame shows in no event but this one; XProf takes it unasked, too. */
  private readonly _onBlur = (): void => {
    const element = this._element;
    if (document.activeElement === element && element?.matches(':hover')) {
      this._entered.emit();
    }
  };

  private _frame: IFrame | null = null;
  private _target: IViewerTarget;
  private _theme: Theme;
  private _loaded = false;
  private readonly _targetChanged = new Signal<this, IViewerTarget>(this);
  private readonly _entered = new Signal<this, void>(this);
}

/**
 * Make a frame for an address.
 *
 * It is made anew for each: a frame that goes from one address to another adds to the history that the browser's
 * back button walks.
 */
function makeFrame(url: string): IFrame {
  const frame = new IFrame({
    sandbox: [
      'allow-scripts',
      'allow-same-origin',
      'allow-downloads',
      'allow-popups',
      'allow-forms'
    ],
    // The server's checks of where a request comes from need it.
    referrerPolicy: 'same-origin'
  });
  frame.url = url;
  return frame;
}

/** Read a message of the viewer's page; null for any other message. */
function readState(data: unknown): IViewerTarget | null {
  if (typeof data !== 'object' || data === null) {
    return null;
  }
  const message = data as Record<string, unknown>;
  if (message.source !== 'jaxprof' || message.type !== 'state') {
    return null;
  }
  const text = (key: string): string => {
    const value = message[key];
    return typeof value === 'string' ? value : '';
  };
  return { run: text('run'), tool: text('tool'), host: text('host') };
}
