import type { TranslationBundle } from '@jupyterlab/translation';
import { VDomModel } from '@jupyterlab/ui-components';

import type { Client } from '../api/client';
import { problemOfError } from '../api/problem';
import type { IImportState } from '../api/types';
import { wordsOf } from '../sidebar/problem';
import type { ISource } from './gather';

const PIECE_BYTES = 4 << 20;
const RETRIES_MS = [1000, 2000, 4000, 8000];
const FIRST_LOOK_MS = 200;
const LAST_LOOK_MS = 2000;

/** One import as the sidebar shows it. */
export interface IImport {
  readonly key: number;
  readonly title: string;
  state: 'uploading' | 'reading' | 'failed';
  /** Which part has been sent, 0 to 1; null while that can't be told. */
  fraction: number | null;
  /** Why it failed. */
  message: string;
  /** The capture that holds the file already. */
  existing: string | null;
  cancelled: boolean;
  /** The server's identifier, once it has one. */
  id: string | null;
}

/** How an import has ended; null when it was cancelled. */
export interface IOutcome {
  title: string;
  capture: string | null;
  existing: string | null;
  message: string;
}

/** The imports of this page. Each is sent in pieces, so no file is ever in the page's memory as a whole. */
export class ImportsModel extends VDomModel {
  constructor(
    private readonly _client: Client,
    private readonly _trans: TranslationBundle
  ) {
    super();
  }

  get imports(): readonly IImport[] {
    return this._imports;
  }

  /** Those that failed and are not dismissed yet. */
  get failed(): readonly IImport[] {
    return this._imports.filter(({ state }) => state === 'failed');
  }

  /** Import a file or folder that the server's contents API knows. Never rejects. */
  async importPath(path: string): Promise<IOutcome | null> {
    const title = path.split('/').pop() ?? path;
    return this._run(title, async one => {
      one.state = 'reading';
      return this._client.beginImport({ path });
    });
  }

  /** Import what lies on the user's own machine. Never rejects. */
  async upload(source: ISource): Promise<IOutcome | null> {
    return this._run(source.title, one => this._send(one, source));
  }

  /** End it, or take a failed one off the list. */
  cancel(one: IImport): void {
    one.cancelled = true;
    this._remove(one);
    if (one.id !== null && one.state !== 'failed') {
      this._client.dropImport(one.id).catch(() => {
        // It has ended by itself, or the server is away and forgets it.
      });
    }
  }

  private async _run(
    title: string,
    begin: (one: IImport) => Promise<IImportState>
  ): Promise<IOutcome | null> {
    const one: IImport = {
      key: this._next++,
      title,
      state: 'uploading',
      fraction: null,
      message: '',
      existing: null,
      cancelled: false,
      id: null
    };
    this._imports = [...this._imports, one];
    this.stateChanged.emit();
    try {
      const begun = await begin(one);
      one.id = begun.id;
      return await this._follow(one, begun);
    } catch (error) {
      return this._fail(one, wordsOf(error, this._trans), null);
    }
  }

  private async _send(one: IImport, source: ISource): Promise<IImportState> {
    if (source.files.length === 0) {
      throw new Error(
        this._trans.__(
          'The folder holds no trace (*.xplane.pb) and no report (*.nsys-rep, *.qdstrm, *.sqlite).'
        )
      );
    }
    const files = source.files.map(({ path, size_bytes, modified_s }) => ({
      path,
      size_bytes,
      modified_s
    }));
    const { id } = await this._client.beginImport({ files });
    one.id = id;
    const total = files.reduce((sum, file) => sum + file.size_bytes, 0);
    let sent = 0;
    for (const [index, { blob }] of source.files.entries()) {
      for (let offset = 0; offset < blob.size; offset += PIECE_BYTES) {
        if (one.cancelled) {
          await this._client.dropImport(id);
          throw new Error('');
        }
        const piece = blob.slice(offset, offset + PIECE_BYTES);
        await this._sendPiece(id, index, offset, piece);
        sent += piece.size;
        one.fraction = sent / total;
        this.stateChanged.emit();
      }
    }
    one.state = 'reading';
    one.fraction = null;
    this.stateChanged.emit();
    return this._client.finishUpload(id);
  }

  /** Send a piece, again where the connection was lost. */
  private async _sendPiece(
    id: string,
    index: number,
    offset: number,
    piece: Blob
  ): Promise<void> {
    for (const wait of [...RETRIES_MS, null]) {
      try {
        await this._client.sendPiece(id, index, offset, piece);
        return;
      } catch (error) {
        if (wait === null || problemOfError(error).kind !== 'unreachable') {
          throw error;
        }
        await sleep(wait);
      }
    }
  }

  /** Wait until the server has read it. */
  private async _follow(
    one: IImport,
    state: IImportState
  ): Promise<IOutcome | null> {
    let wait = FIRST_LOOK_MS;
    while (state.state === 'reading') {
      await sleep(wait);
      wait = Math.min(wait * 1.5, LAST_LOOK_MS);
      if (one.cancelled) {
        return null;
      }
      state = await this._client.importState(state.id);
    }
    this._client.dropImport(state.id).catch(() => {
      // The server forgets it by itself.
    });
    if (state.state !== 'done') {
      return this._fail(one, state.message, state.existing);
    }
    this._remove(one);
    return {
      title: one.title,
      capture: state.capture,
      existing: null,
      message: ''
    };
  }

  private _fail(
    one: IImport,
    message: string,
    existing: string | null
  ): IOutcome | null {
    if (one.cancelled) {
      return null;
    }
    one.state = 'failed';
    one.message = message;
    one.existing = existing;
    this.stateChanged.emit();
    return { title: one.title, capture: null, existing, message };
  }

  private _remove(one: IImport): void {
    this._imports = this._imports.filter(other => other !== one);
    this.stateChanged.emit();
  }

  private _imports: readonly IImport[] = [];
  private _next = 0;
}

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => window.setTimeout(resolve, ms));
}
