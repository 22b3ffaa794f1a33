import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useState } from 'react';

import type { ISweep, ISweepPoint, ISweepSeries } from '../api/measured';
import { formatBytes, formatMilliseconds, formatQuantity } from '../format';
import { useTrans } from './actions';
import { Columns } from './chart';
import { timeColumn } from './columns';
import type { IColumn } from './table';
import { Table } from './table';
import { Heading, Remark } from './text';

/** Series in sight before more are asked for. */
const FEW = 6;

/** A chart of one quantity over the values, and a table, for each series. */
export function Sweep(props: { sweep: ISweep }): React.JSX.Element {
  const { sweep } = props;
  const trans = useTrans();
  const [all, setAll] = useState(false);
  const series = (sweep.series ?? []).filter(one => one.points?.length);
  const shown = all ? series : series.slice(0, FEW);
  const quantities = quantitiesOf(sweep, series, trans);
  const [chosen, setChosen] = useState(quantities[0]?.name ?? '');
  const [logarithmic, setLogarithmic] = useState(false);
  const quantity = quantities.find(({ name }) => name === chosen);
  const scale = quantity && scaleOf(series, quantity, logarithmic);
  return (
    <>
      {quantities.length > 0 && (
        <div
          className="jx-choices"
          role="group"
          aria-label={trans.__('What the charts show')}
        >
          {quantities.map(({ name, label }) => (
            <button
              key={name}
              className="jx-button"
              aria-pressed={name === chosen}
              onClick={() => {
                setChosen(name);
              }}
            >
              {label}
            </button>
          ))}
          <button
            className="jx-button jx-scale"
            aria-pressed={logarithmic}
            onClick={() => {
              setLogarithmic(!logarithmic);
            }}
          >
            {trans.__('Logarithmic')}
          </button>
        </div>
      )}
      {shown.map((one, index) => (
        <Series
          key={index}
          series={one}
          sweep={sweep}
          quantity={quantity}
          scale={scale}
          several={series.length > 1}
        />
      ))}
      {series.length > FEW && (
        <button
          className="jx-link-button"
          onClick={() => {
            setAll(!all);
          }}
        >
          {all
            ? trans.__('Show the first %1 series', FEW)
            : trans.__('Show all %1 series', series.length)}
        </button>
      )}
      {(sweep.devices ?? 1) > 1 && series.some(needsMemory) && (
        <Remark
          text={trans.__(
            'Memory is of one device: the highest peak of all, and what a program needs on each that it runs on.'
          )}
        />
      )}
    </>
  );
}

function needsMemory({ points }: ISweepSeries): boolean {
  return (points ?? []).some(({ need_bytes: need }) => need !== undefined);
}

/** A figure of a point that can be drawn. */
interface IQuantity {
  name: string;
  label: string;
  of: (point: ISweepPoint) => number | null | undefined;
  text: (point: ISweepPoint) => string;
}

/** The quantities that at least two points have. */
function quantitiesOf(
  sweep: ISweep,
  series: ISweepSeries[],
  trans: TranslationBundle
): IQuantity[] {
  const unit = sweep.rate_unit ?? '';
  const all: IQuantity[] = [
    {
      name: 'rate',
      label: unit ? trans.__('Rate, %1', unit) : trans.__('Rate'),
      of: point => point.rate,
      text: point => rateText(point.rate)
    },
    {
      name: 'time',
      label: trans.__('Time a call'),
      of: point => point.median_ms,
      text: point => formatMilliseconds(point.median_ms)
    },
    {
      name: 'compiling',
      label: trans.__('Compiling'),
      of: point => point.compiling_ms,
      text: point => formatMilliseconds(point.compiling_ms)
    },
    {
      name: 'peak',
      label: trans.__('Peak memory'),
      of: point => point.peak_bytes,
      text: peakText
    },
    {
      name: 'need',
      label: trans.__('Largest program'),
      of: point => point.need_bytes,
      text: point => formatBytes(point.need_bytes)
    }
  ];
  const points = series.flatMap(one => one.points ?? []);
  return all.filter(({ of }) => points.filter(point => of(point)).length > 1);
}

/** From a value to a column's height, the same for all series; a logarithm begins below the least value. */
type Scale = (value: number) => number;

function scaleOf(
  series: ISweepSeries[],
  { of }: IQuantity,
  logarithmic: boolean
): Scale {
  const values = series
    .flatMap(one => one.points ?? [])
    .map(point => of(point) ?? 0)
    .filter(value => value > 0);
  const most = Math.max(...values);
  if (!logarithmic) {
    return value => value / most;
  }
  const least = 10 ** Math.floor(Math.log10(Math.min(...values)) - 0.01);
  return value =>
    value > 0 ? Math.log(value / least) / Math.log(most / least) : 0;
}

function Series(props: {
  series: ISweepSeries;
  sweep: ISweep;
  quantity: IQuantity | undefined;
  scale: Scale | undefined;
  several: boolean;
}): React.JSX.Element {
  const { series, sweep, quantity, scale, several } = props;
  const { label, verdict } = series;
  const trans = useTrans();
  const points = series.points ?? [];
  return (
    <>
      <Heading text={label ?? ''} />
      {quantity && scale && points.some(point => quantity.of(point)) && (
        <Chart
          series={series}
          points={points}
          quantity={quantity}
          scale={scale}
        />
      )}
      <Table
        label={[label, trans.__('Points of the sweep')].find(Boolean) ?? ''}
        rows={points}
        columns={columnsOf(series, sweep, trans)}
        note={point => noteOf(point, trans)}
      />
      {several && verdict && (
        <Remark
          text={`${verdict.slice(0, 1).toUpperCase()}${verdict.slice(1)}.`}
        />
      )}
    </>
  );
}

function Chart(props: {
  series: ISweepSeries;
  points: ISweepPoint[];
  quantity: IQuantity;
  scale: Scale;
}): React.JSX.Element {
  const { series, points, quantity, scale } = props;
  const trans = useTrans();
  const best = points.reduce((one, other) =>
    (quantity.of(other) ?? 0) > (quantity.of(one) ?? 0) ? other : one
  );
  const knee = points.findIndex(point => point.knee);
  return (
    <Columns
      kind="jx-curve"
      label={trans.__('%1 over %2', quantity.label, series.along ?? '')}
      top={trans.__(
        '%1: highest %2, at %3',
        quantity.label,
        quantity.text(best),
        nameOf(series, best)
      )}
      columns={points.map(point => ({
        height: scale(quantity.of(point) ?? 0),
        label: `${nameOf(series, point)}: ${
          quantity.of(point) ? quantity.text(point) : (point.ending ?? '–')
        }`
      }))}
      low={nameOf(series, points[0] ?? {})}
      high={nameOf(series, points.at(-1) ?? {})}
      stretches={
        knee < 0
          ? []
          : [
              {
                label: trans.__('from the knee on'),
                start: knee / points.length,
                end: 1
              }
            ]
      }
    />
  );
}

/** Where a point stands in its series: 'batch=8'. */
function nameOf(series: ISweepSeries, point: ISweepPoint): string {
  return point.label ?? `${series.along ?? ''}=${point.value ?? ''}`;
}

function rateText(value: number | null | undefined): string {
  return formatQuantity(value, '/s').replace(/\s*\/s$/, '');
}

/** A peak, with ≤ where it had been reached before. */
function peakText(point: {
  peak_bytes?: number | null | undefined;
  raised?: boolean | null | undefined;
  peak_raised?: boolean | null | undefined;
}): string {
  const { peak_bytes: peak, raised, peak_raised: raisedHere } = point;
  const size = formatBytes(peak);
  return typeof peak !== 'number' || (raised ?? raisedHere)
    ? size
    : `≤ ${size}`;
}

/** The columns that have something to tell. */
function columnsOf(
  series: ISweepSeries,
  sweep: ISweep,
  trans: TranslationBundle
): IColumn<ISweepPoint>[] {
  const points = series.points ?? [];
  const has = (key: keyof ISweepPoint): boolean =>
    points.some(point => point[key] !== null && point[key] !== undefined);
  const columns: (IColumn<ISweepPoint> | false)[] = [
    {
      label: [series.along, trans.__('value')].find(Boolean) ?? '',
      value: ({ value }) => numberOr(value),
      text: ({ value, knee }) =>
        knee ? trans.__('%1 ◂ knee', value ?? '') : (value ?? '–')
    },
    timeColumn(trans.__('a call'), point => point.median_ms),
    {
      label: trans.__('quartiles'),
      value: point => point.lower_quartile_ms,
      text: ({ lower_quartile_ms: low, upper_quartile_ms: high }) =>
        typeof low === 'number' && typeof high === 'number'
          ? trans.__(
              '%1 to %2',
              formatMilliseconds(low),
              formatMilliseconds(high)
            )
          : '–'
    },
    has('rate') && {
      label: [sweep.rate_unit, trans.__('rate')].find(Boolean) ?? '',
      value: point => point.rate,
      text: point => rateText(point.rate)
    },
    {
      label: trans.__('compiling'),
      value: point => point.compiling_ms,
      text: ({ compiled_before: before, compiling_ms: ms }) =>
        before ? trans.__('before') : formatMilliseconds(positive(ms))
    },
    points.some(point => point.cache_read_ms) &&
      timeColumn(trans.__('read from disk'), point =>
        positive(point.cache_read_ms)
      ),
    has('peak_bytes') && {
      label:
        (sweep.devices ?? 1) > 1
          ? trans.__('highest peak')
          : trans.__('peak memory'),
      value: point => point.peak_bytes,
      text: peakText
    },
    has('need_bytes') && {
      label: trans.__('largest program'),
      value: point => point.need_bytes,
      text: point => formatBytes(point.need_bytes)
    }
  ];
  return columns.filter(column => column !== false);
}

/** Nothing where it took no time. */
function positive(ms: number | null | undefined): number | null {
  return typeof ms === 'number' && ms > 0 ? ms : null;
}

/** As a number where it is one, so that 8 comes before 128. */
function numberOr(value: string | null | undefined): string | number {
  const text = value ?? '';
  return text !== '' && Number.isFinite(Number(text)) ? Number(text) : text;
}

function noteOf(point: ISweepPoint, trans: TranslationBundle): string {
  const { ending, error, hint, stopped, doubts, peaks } = point;
  const bad = ending && ending !== 'ok' ? ending : '';
  const told = (doubts ?? []).filter(Boolean);
  const parts = [
    [bad, bad && error].filter(Boolean).join(': '),
    hint,
    stopped,
    told.length > 0 ? trans.__('Doubtful: %1.', told.join(', ')) : '',
    (peaks ?? [])
      .map(peak => `${peak.device ?? ''} ${peakText(peak)}`)
      .join(', ')
  ];
  return parts.filter(Boolean).join(' ');
}
