import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import { VERSION } from '../version';
import type { Client, IRequestOptions } from './client';
import { problemOfError, RequestProblem } from './problem';
import type { IServerStatus, ViewerName } from './types';
import { API } from './types';

/** What is known of the server's half; the panel and the viewers' tabs share one. */
export class Server {
  constructor(readonly client: Client) {}

  /** Emitted when `status` or `problem` has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** The latest status; null until one was got. */
  get status(): IServerStatus | null {
    return this._status;
  }

  /** Why the server's half can't be used; null when it can, or when nobody has asked yet. */
  get problem(): RequestProblem | null {
    return this._problem;
  }

  /** Another version of the package than this page's, which still speaks the same routes; else null. */
  get otherVersion(): string | null {
    const version = this._status?.version;
    return version === undefined || version === VERSION ? null : version;
  }

  /** Whether the server has this viewer, as far as is known. */
  isAvailable(viewer: ViewerName): boolean {
    return this._status?.viewers[viewer].available === true;
  }

  /** Ask for the status. Never rejects: a failure is the `problem`. */
  async check(options?: IRequestOptions): Promise<RequestProblem | null> {
    try {
      const status = await this.client.status(options);
      this._status = status;
      this._problem =
        status.api === API
          ? null
          : new RequestProblem('outdated', status.version);
    } catch (error) {
      this._problem = problemOfError(error);
    }
    this._changed.emit();
    return this._problem;
  }

  /** Note that a request has failed in a way that concerns the whole server. */
  report(problem: RequestProblem): void {
    this._problem = problem;
    this._changed.emit();
  }

  private _status: IServerStatus | null = null;
  private _problem: RequestProblem | null = null;
  private readonly _changed = new Signal<this, void>(this);
}
