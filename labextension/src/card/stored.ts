import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { DisposableDelegate } from '@lumino/disposable';

import { MAX_IDS } from '../api/client';
import type { Server } from '../api/server';
import type { ICaptureRow } from '../api/types';
import { wordsOf } from '../sidebar/problem';
import type { IStored } from './actions';

/** What the server says of a capture: its name and pin, or why nothing can be done with it. */
export type Answer = IStored | { lost: string };

/** Cards that come into sight together ask together. */
const DELAY_MS = 50;

type Listener = (answer: Answer) => void;

interface IWatched {
  listeners: Set<Listener>;
  answer: Answer | null;
}

/**
 * What the store says of the captures whose cards are in sight.
 *
 * Each is asked for once, and anew when the store has changed; all that are asked for at a time share a request.
 */
export class StoredStates {
  constructor(
    private readonly _server: Server,
    private readonly _trans: TranslationBundle
  ) {}

  /** Be told of a capture now, when that is known, and whenever it changes. */
  watch(id: string, listener: Listener): IDisposable {
    let watched = this._watched.get(id);
    if (!watched) {
      watched = { listeners: new Set(), answer: null };
      this._watched.set(id, watched);
      this._ask([id]);
    } else if (watched.answer) {
      listener(watched.answer);
    }
    watched.listeners.add(listener);
    return new DisposableDelegate(() => {
      watched.listeners.delete(listener);
      if (watched.listeners.size === 0) {
        this._watched.delete(id);
      }
    });
  }

  /** Ask again for all that somebody watches. */
  refresh(): void {
    this._ask(this._watched.keys());
  }

  private _ask(ids: Iterable<string>): void {
    for (const id of ids) {
      this._wanted.add(id);
    }
    if (this._wanted.size > 0 && !this._busy) {
      this._busy = true;
      setTimeout(() => void this._answer(), DELAY_MS);
    }
  }

  /** Ask the server for all that are wanted, one request after the other: an older answer must not come last. */
  private async _answer(): Promise<void> {
    while (this._wanted.size > 0) {
      const ids = [...this._wanted].slice(0, MAX_IDS);
      for (const id of ids) {
        this._wanted.delete(id);
      }
      try {
        const rows = await this._server.client.capturesOf(ids, {
          background: true
        });
        this._tell(ids, rows);
      } catch (error) {
        const lost = wordsOf(error, this._trans);
        for (const id of ids) {
          this._set(id, { lost });
        }
      }
    }
    this._busy = false;
  }

  private _tell(ids: string[], rows: ICaptureRow[]): void {
    const byId = new Map(rows.map(row => [row.id, row]));
    if (rows.some(({ id }) => !ids.includes(id))) {
      return; // A server that can't be asked for some captures only: nothing is known of them.
    }
    for (const id of ids) {
      const row = byId.get(id);
      this._set(
        id,
        row
          ? { name: row.name, pinned: row.pinned, lost: '' }
          : {
              lost: this._trans.__(
                'This capture is not in the store of this server.'
              )
            }
      );
    }
  }

  private _set(id: string, answer: Answer): void {
    const watched = this._watched.get(id);
    if (watched) {
      watched.answer = answer;
      for (const listener of watched.listeners) {
        listener(answer);
      }
    }
  }

  private readonly _watched = new Map<string, IWatched>();
  private readonly _wanted = new Set<string>();
  private _busy = false;
}
