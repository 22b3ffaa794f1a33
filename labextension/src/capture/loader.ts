import { VDomModel } from '@jupyterlab/ui-components';
import { Throttler } from '@lumino/polling';

import type { IRequestOptions } from '../api/client';
import type { RequestProblem } from '../api/problem';
import { problemOfError } from '../api/problem';
import type { Server } from '../api/server';

const NOTICE_MS = 300;

/**
 * What a tab shows of the server.
 *
 * It is asked for when somebody first looks, and anew when the store has changed meanwhile; nothing is asked while
 * the tab is hidden. What was shown stays until the next answer, and an answer to an earlier question is dropped.
 */
export class Loader<T> extends VDomModel {
  constructor(
    readonly server: Server,
    private readonly _ask: (options: IRequestOptions) => Promise<T>
  ) {
    super();
    this._throttler = new Throttler(() => this.load({ background: true }), {
      limit: NOTICE_MS,
      edge: 'trailing'
    });
    server.changed.connect(this._onServerChanged, this);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._throttler.dispose();
      this.server.changed.disconnect(this._onServerChanged, this);
      super.dispose();
    }
  }

  /** The latest answer. */
  get value(): T | null {
    return this._value;
  }

  /** Why the latest question got no answer. */
  get problem(): RequestProblem | null {
    return this._problem;
  }

  get isLoading(): boolean {
    return this._pending > 0;
  }

  set isVisible(visible: boolean) {
    this._visible = visible;
    if (visible && this._stale) {
      void this.load({ background: true });
    }
  }

  /** The store has changed, or may have. */
  notify(): void {
    this._stale = true;
    if (this._visible) {
      void this._throttler.invoke();
    }
  }

  /** Forget the answer, and ask anew. */
  async reload(): Promise<void> {
    this._value = null;
    await this.load();
  }

  /** Ask. Never rejects: a failure is the `problem`. */
  async load(options: IRequestOptions = {}): Promise<void> {
    this._stale = false;
    const question = ++this._questions;
    this._pending += 1;
    this.stateChanged.emit();
    let value: T | null = null;
    let problem: RequestProblem | null = null;
    try {
      value = await this._ask(options);
    } catch (error) {
      problem = problemOfError(error);
    }
    this._pending -= 1;
    if (this.isDisposed || question !== this._questions) {
      return;
    }
    this._value = value ?? this._value;
    this._problem = problem;
    this.stateChanged.emit();
  }

  /** The panel finds out when a server that was away is back. */
  private _onServerChanged(): void {
    if (this._problem?.kind === 'unreachable' && this.server.problem === null) {
      this.notify();
    }
  }

  private readonly _throttler: Throttler;
  private _value: T | null = null;
  private _problem: RequestProblem | null = null;
  private _pending = 0;
  private _questions = 0;
  private _visible = false;
  private _stale = true;
}
