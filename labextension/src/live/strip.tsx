import type { TranslationBundle } from '@jupyterlab/translation';
import { UseSignal, VDomModel } from '@jupyterlab/ui-components';
import { Poll } from '@lumino/polling';
import React from 'react';

import { problemOfError } from '../api/problem';
import type { Server } from '../api/server';
import type { IUse } from '../api/types';
import { formatBytes, formatPercent } from '../format';

const INTERVAL_MS = 2000;
const SAMPLES = 60;
const WIDTH = 120;
const HEIGHT = 24;

/** What is drawn of one device, or of the process on the host. */
export interface ISeries {
  name: string;
  /** The latest look at it. */
  use: IUse;
  own: boolean;
  /** Busy shares, the oldest first; null where nobody looked. */
  busy: readonly (number | null)[];
}

/** What the current kernel uses. It asks only while it is `wanted`, and nothing at all before. */
export class StripModel extends VDomModel {
  constructor(private readonly _server: Server) {
    super();
  }

  override dispose(): void {
    this._poll?.dispose();
    super.dispose();
  }

  get series(): readonly ISeries[] {
    return this._series;
  }

  /** Something is being measured, which a look would disturb. */
  get isPaused(): boolean {
    return this._paused;
  }

  /** Why there is nothing to draw; empty where there is. */
  get problem(): string {
    return this._problem;
  }

  get isOn(): boolean {
    return this._on;
  }

  /** Look at a kernel for as long as somebody wants to see it. */
  follow(on: boolean, inSight: boolean, kernelId: string | null): void {
    if (kernelId !== this._kernelId) {
      this._kernelId = kernelId;
      this._series = [];
      this._problem = '';
    }
    this._on = on;
    const wanted = on && inSight && kernelId !== null;
    if (wanted && this._poll === null) {
      this._poll = new Poll({
        name: 'jupyterlab-jaxprof:strip',
        factory: () => this._look(),
        frequency: { interval: INTERVAL_MS, backoff: true, max: 30_000 },
        standby: 'when-hidden'
      });
    } else if (!wanted && this._poll !== null) {
      this._poll.dispose();
      this._poll = null;
    }
    this.stateChanged.emit();
  }

  private async _look(): Promise<void> {
    const kernelId = this._kernelId;
    if (kernelId === null) {
      return;
    }
    try {
      const usage = await this._server.client.usage(kernelId, {
        background: true
      });
      if (kernelId !== this._kernelId) {
        return;
      }
      this._problem = '';
      this._paused = usage.paused;
      if (usage.paused) {
        this._series = this._series.map(one => this._with(one, one.use, null));
      } else {
        const devices = usage.devices.map(device => ({
          name: device.name,
          own: device.own,
          use: device
        }));
        const shown = [...devices, { name: '', own: true, use: usage.process }];
        this._series = shown.map(({ name, own, use }, index) =>
          this._with(
            { name, own, use, busy: this._series[index]?.busy ?? [] },
            use,
            use.busy_share
          )
        );
      }
    } catch (error) {
      this._problem = problemOfError(error).message;
      this._series = [];
    }
    this.stateChanged.emit();
  }

  private _with(series: ISeries, use: IUse, busy: number | null): ISeries {
    return { ...series, use, busy: [...series.busy, busy].slice(-SAMPLES) };
  }

  private _poll: Poll | null = null;
  private _series: readonly ISeries[] = [];
  private _paused = false;
  private _problem = '';
  private _on = false;
  private _kernelId: string | null = null;
}

/** The strip: a line for each device of the kernel, and one for its process. */
export function Strip(props: {
  model: StripModel;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { model, trans } = props;
  return (
    <UseSignal signal={model.stateChanged}>
      {() =>
        model.isOn ? (
          <section
            className="jp-JaxProf-strip"
            aria-label={trans.__('What the current kernel uses')}
          >
            {model.series.map((series, index) => (
              <Line
                key={index}
                series={series}
                paused={model.isPaused}
                trans={trans}
              />
            ))}
            <Remark model={model} trans={trans} />
          </section>
        ) : null
      }
    </UseSignal>
  );
}

function Remark(props: {
  model: StripModel;
  trans: TranslationBundle;
}): React.JSX.Element | null {
  const { model, trans } = props;
  const text = model.isPaused
    ? trans.__('Paused while something is measured')
    : model.problem ||
      (model.series.length === 0
        ? trans.__('No kernel: open a notebook that has one')
        : '');
  return text ? <p className="jp-JaxProf-remark">{text}</p> : null;
}

function Line(props: {
  series: ISeries;
  paused: boolean;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { series, paused, trans } = props;
  const { use, own } = series;
  const name = series.name || trans.__('Process (all cores)');
  const size = trans.__(
    '%1 of %2',
    formatBytes(use.memory_bytes),
    formatBytes(use.total_bytes)
  );
  const memory = own ? size : trans.__('%1, all processes', size);
  const busy =
    paused || use.busy_share === null
      ? '–'
      : formatPercent(use.busy_share * 100);
  return (
    <div className="jp-JaxProf-stripLine">
      <div className="jp-JaxProf-nameLine">
        <span className="jp-JaxProf-stripName" title={name}>
          {name}
        </span>
        <span>{trans.__('%1 busy', busy)}</span>
      </div>
      <Sparkline busy={series.busy} />
      <div className="jp-JaxProf-meta" title={trans.__('Memory: %1', memory)}>
        {memory}
      </div>
    </div>
  );
}

/** Busy shares as an area; there is a gap where nobody looked. The numbers beside it say the same. */
function Sparkline({ busy }: Pick<ISeries, 'busy'>): React.JSX.Element {
  const step = WIDTH / (SAMPLES - 1);
  const start = SAMPLES - busy.length;
  const bars = busy.map((share, index) => {
    const height = Math.max((share ?? 0) * HEIGHT, share === null ? 0 : 1);
    const x = (start + index) * step - step / 2;
    return `M${x} ${HEIGHT}v${-height}h${step}v${height}z`;
  });
  return (
    <svg
      className="jp-JaxProf-sparkline"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      <path d={bars.join('')} />
    </svg>
  );
}
