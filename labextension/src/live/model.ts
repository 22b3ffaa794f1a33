import { VDomModel } from '@jupyterlab/ui-components';
import { Poll, Throttler } from '@lumino/polling';

import type { Server } from '../api/server';
import type { IMeasurement, IViewerState } from '../api/types';

const EVENT_MS = 200;
/** How often the memory of viewers that run is looked at. */
const MEMORY_MS = 10_000;

/** A measurement, and when it began by this page's clock, in milliseconds. */
export interface ITimed extends IMeasurement {
  began: number;
}

/** What runs now: measurements in any kernel, and the viewers. Nothing is asked unless the server has told. */
export class RunningModel extends VDomModel {
  constructor(private readonly _server: Server) {
    super();
    this._throttler = new Throttler(() => this.refresh(), {
      limit: EVENT_MS,
      edge: 'trailing'
    });
    this._poll = new Poll({
      auto: false,
      name: 'jupyterlab-jaxprof:viewers',
      factory: () => this.refresh(),
      frequency: { interval: MEMORY_MS, backoff: false },
      standby: 'when-hidden'
    });
  }

  override dispose(): void {
    this._throttler.dispose();
    this._poll.dispose();
    super.dispose();
  }

  get measurements(): readonly ITimed[] {
    return this._measurements;
  }

  get viewers(): readonly IViewerState[] {
    return this._viewers;
  }

  /** The viewers that have a process now. */
  get runningViewers(): readonly IViewerState[] {
    return this._viewers.filter(({ state }) =>
      ['starting', 'running'].includes(state)
    );
  }

  /** Something has changed, or may have. */
  notify(): void {
    if (!this.isDisposed) {
      void this._throttler.invoke();
    }
  }

  /** Ask what runs. Never rejects: what can't be asked is shown as nothing. */
  async refresh(): Promise<void> {
    const generation = ++this._generation;
    let measurements: ITimed[] = [];
    let viewers: readonly IViewerState[] = [];
    try {
      const answer = await this._server.client.running({ background: true });
      const now = Date.now();
      measurements = answer.running.map(one => ({
        ...one,
        began: now - one.elapsed_s * 1000
      }));
      viewers = answer.viewers;
    } catch {
      // The panel tells what is wrong with the server.
    }
    if (generation === this._generation && !this.isDisposed) {
      this._measurements = measurements;
      this._viewers = viewers;
      this.stateChanged.emit();
      this._followMemory();
    }
  }

  /** Look again from time to time for as long as a viewer runs; an event tells when one starts. */
  private _followMemory(): void {
    const wanted = this.runningViewers.length > 0;
    if (wanted !== this._following) {
      this._following = wanted;
      void (wanted ? this._poll.start() : this._poll.stop());
    }
  }

  private readonly _throttler: Throttler;
  private readonly _poll: Poll;
  private _following = false;
  private _measurements: readonly ITimed[] = [];
  private _viewers: readonly IViewerState[] = [];
  private _generation = 0;
}
