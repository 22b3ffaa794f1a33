import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import React from 'react';

import type { IRequestOptions } from '../api/client';
import type { Server } from '../api/server';
import { Loader } from '../capture/loader';
import { compareIcon } from '../icons';
import { namesOf } from './names';
import type { ICompared } from './view';
import { CompareView } from './view';

export interface ICompareTabOptions {
  ids: readonly string[];
  server: Server;
  openCapture: (id: string) => void;
  trans: TranslationBundle;
}

/** A tab of the main area that shows captures side by side. */
export class CompareTab extends ReactWidget {
  constructor(private readonly _options: ICompareTabOptions) {
    super();
    this._ids = _options.ids;
    this.addClass('jp-JaxProf-capture');
    this.addClass('jp-JaxProf-compare');
    this.node.tabIndex = -1;
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', _options.trans.__('Comparison'));
    this.title.closable = true;
    this.title.icon = compareIcon;
    this.title.label = _options.trans.__('Comparison');
    this._loader = new Loader(_options.server, options => this._ask(options));
    this._loader.stateChanged.connect(this._onAnswer, this);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._loader.dispose();
      super.dispose();
    }
  }

  /** The captures; the first is the baseline. */
  get ids(): readonly string[] {
    return this._ids;
  }

  /** Emitted when other captures are compared, or another is the baseline. */
  get idsChanged(): ISignal<this, void> {
    return this._idsChanged;
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._loader.isVisible = true;
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._loader.isVisible = false;
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this._loader.isVisible = this.isVisible;
  }

  protected override onActivateRequest(): void {
    this.node.focus();
  }

  protected render(): React.JSX.Element {
    return (
      <UseSignal signal={this._loader.stateChanged}>
        {() => (
          <CompareView
            {...this._options}
            ids={this._ids}
            loader={this._loader}
            setIds={this._setIds}
          />
        )}
      </UseSignal>
    );
  }

  /** One capture has nothing to be compared with yet. */
  private async _ask(options: IRequestOptions): Promise<ICompared> {
    const { client } = this._options.server;
    const [only, ...others] = this._ids;
    if (only !== undefined && others.length === 0) {
      return { captures: [await client.capture(only, options)], found: null };
    }
    const found = await client.compare(this._ids, options);
    return { captures: found.captures, found };
  }

  private readonly _setIds = (ids: string[]): void => {
    this._ids = ids;
    this._idsChanged.emit();
    void this._loader.load();
  };

  private _onAnswer(loader: Loader<ICompared>): void {
    const captures = loader.value?.captures ?? [];
    if (captures.length > 0) {
      this.title.label = captures.map(({ name }) => name).join(' ↔ ');
      this.title.caption = namesOf(captures).join('\n');
    }
  }

  private readonly _loader: Loader<ICompared>;
  private _ids: readonly string[];
  private readonly _idsChanged = new Signal<this, void>(this);
}
