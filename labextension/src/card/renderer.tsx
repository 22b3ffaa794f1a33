import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';
import React from 'react';
import { flushSync } from 'react-dom';
import { createRoot, type Root } from 'react-dom/client';

import type { ICaptureRecord } from '../api/record';
import { RECORD_SCHEMA } from '../api/record';
import type { ICardActions } from './actions';
import { Boundary, Card } from './card';
import { HtmlCard, textOf } from './html';
import type { StoredStates } from './stored';

export const CAPTURE_MIME = 'application/vnd.jaxprof.capture+json';

const KINDS = ['trace', 'nsys', 'time', 'sweep', 'memory'];

export interface ICardOptions {
  actions: ICardActions;
  states: StoredStates;
  trans: TranslationBundle;
}

/**
 * A capture's card in a notebook, live; the HTML of its own bundle where this version can't show the record.
 *
 * It is drawn at once, so that the notebook knows its height, and keeps what was sorted, filtered and opened in it
 * for as long as the output is there.
 */
export class CardRenderer extends Widget implements IRenderMime.IRenderer {
  constructor(
    private readonly _sanitizer: IRenderMime.ISanitizer,
    private readonly _options: ICardOptions
  ) {
    super();
    this.addClass('jp-JaxProf-card');
    this.node.dataset.mimeType = CAPTURE_MIME;
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const record = recordOf(model.data[CAPTURE_MIME]);
    if (typeof record === 'string') {
      this._showHtml(model, this._sentence(record));
    } else {
      this._showLive(record, model);
    }
    return Promise.resolve();
  }

  override dispose(): void {
    this._clear();
    super.dispose();
  }

  private _showLive(
    record: ICaptureRecord,
    model: IRenderMime.IMimeModel
  ): void {
    if (!this._root) {
      this._clear();
      this._root = createRoot(this.node);
    }
    const root = this._root;
    const onError = (): void => {
      // React is at work still.
      queueMicrotask(() => {
        if (this._root === root) {
          this._showHtml(model, this._sentence('damaged'));
        }
      });
    };
    flushSync(() => {
      root.render(
        // A record that replaces a damaged one gets a new chance.
        <Boundary key={record.id} onError={onError}>
          <Card record={record} {...this._options} />
        </Boundary>
      );
    });
  }

  private _showHtml(model: IRenderMime.IMimeModel, sentence: string): void {
    this._clear();
    const { actions, trans } = this._options;
    const html = new HtmlCard(this._sanitizer, actions, trans);
    this._html = html;
    html.render(this.node, {
      html: textOf(model.data['text/html']),
      text:
        textOf(model.data['text/plain']) ??
        JSON.stringify(model.data[CAPTURE_MIME], undefined, 2),
      trusted: model.trusted,
      sentence
    });
  }

  private _sentence(why: Unfit): string {
    const { trans } = this._options;
    return why === 'newer'
      ? trans.__(
          'This capture comes from a later version of jupyterlab-jaxprof. Update the package where JupyterLab runs to see it live.'
        )
      : trans.__(
          'The record of this capture is not as it should be, so its card can’t be shown live.'
        );
  }

  private _clear(): void {
    this._root?.unmount();
    this._root = null;
    this._html?.dispose();
    this._html = null;
  }

  private _root: Root | null = null;
  private _html: HtmlCard | null = null;
}

type Unfit = 'newer' | 'damaged';

/** The record, if it is one of this version; else why it isn't. */
function recordOf(data: unknown): ICaptureRecord | Unfit {
  if (typeof data !== 'object' || data === null) {
    return 'damaged';
  }
  const { schema, id, kind, name, summary } = data as Record<string, unknown>;
  if (typeof schema === 'number' && schema > RECORD_SCHEMA) {
    return 'newer';
  }
  if (typeof id !== 'string' || typeof name !== 'string' || !summary) {
    return 'damaged';
  }
  if (typeof kind !== 'string' || !KINDS.includes(kind)) {
    return 'newer';
  }
  return data as ICaptureRecord;
}
