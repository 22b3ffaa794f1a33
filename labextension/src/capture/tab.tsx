import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget, UseSignal } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import React from 'react';

import type { IStoredRecord } from '../api/record';
import type { Server } from '../api/server';
import type { ICardActions } from '../card/actions';
import { kindIcon } from '../icons';
import type { Actions } from '../sidebar/actions';
import { kindName } from '../sidebar/row';
import { Loader } from './loader';
import type { Section } from './page';
import { Page, SECTIONS } from './page';

export interface ICaptureTabOptions {
  captureId: string;
  /** As far as it is known before the record is there. */
  kind: string;
  section: Section;
  server: Server;
  actions: Actions;
  cardActions: ICardActions;
  languages: IEditorLanguageRegistry | null;
  openCapture: (id: string) => void;
  compare: (ids: string[]) => void;
  trans: TranslationBundle;
}

/** A tab of the main area that shows one capture. */
export class CaptureTab extends ReactWidget {
  constructor(private readonly _options: ICaptureTabOptions) {
    super();
    const { server, captureId } = _options;
    this.addClass('jp-JaxProf-capture');
    this.node.tabIndex = -1;
    this.title.closable = true;
    this.title.label = captureId;
    this._kind = _options.kind;
    this.title.icon = kindIcon(this._kind);
    this._section = _options.section;
    this._loader = new Loader(server, options =>
      server.client.capture(captureId, options)
    );
    this._loader.stateChanged.connect(this._onAnswer, this);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._loader.dispose();
      super.dispose();
    }
  }

  get captureId(): string {
    return this._options.captureId;
  }

  get kind(): string {
    return this._kind;
  }

  get section(): Section {
    return this._section;
  }

  /** Emitted when another section is shown. */
  get sectionChanged(): ISignal<this, void> {
    return this._sectionChanged;
  }

  /** The store has changed. */
  notify(): void {
    this._loader.notify();
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this._look();
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._look();
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    document.addEventListener('visibilitychange', this._look);
    this._look();
  }

  protected override onBeforeDetach(msg: Message): void {
    document.removeEventListener('visibilitychange', this._look);
    this._loader.isVisible = false;
    super.onBeforeDetach(msg);
  }

  protected override onActivateRequest(): void {
    const tab = this.node.querySelector<HTMLElement>('[aria-selected=true]');
    (tab ?? this.node).focus();
  }

  protected render(): React.JSX.Element {
    return (
      <UseSignal signal={this._loader.stateChanged}>
        {() => (
          <Page
            {...this._options}
            id={this._options.captureId}
            loader={this._loader}
            section={this._section}
            setSection={this._setSection}
            version={this._version}
          />
        )}
      </UseSignal>
    );
  }

  private readonly _setSection = (section: Section): void => {
    this._section = section;
    this._sectionChanged.emit();
    this.update();
  };

  private readonly _look = (): void => {
    this._loader.isVisible =
      this.isVisible && document.visibilityState === 'visible';
  };

  private _onAnswer(loader: Loader<IStoredRecord>): void {
    const { value: record } = loader;
    if (!record || loader.isLoading) {
      return;
    }
    this._version += 1;
    const { trans } = this._options;
    this.title.label = record.name;
    if (record.kind !== this._kind) {
      this._kind = record.kind;
      this.title.icon = kindIcon(record.kind);
    }
    this.title.caption = [
      record.name,
      kindName(record.kind, trans),
      new Date(record.created).toLocaleString()
    ].join('\n');
  }

  private readonly _loader: Loader<IStoredRecord>;
  private _kind: string;
  private _section: Section;
  private _version = 0;
  private readonly _sectionChanged = new Signal<this, void>(this);
}

/** Read a section out of a command's arguments; the card where it is none. */
export function readSection(value: unknown): Section {
  return SECTIONS.find(section => section === value) ?? 'card';
}
