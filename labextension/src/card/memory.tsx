import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type {
  IDeviceMemory,
  IVariable,
  IWatch,
  IWatchedCell,
  IWatchSeries
} from '../api/measured';
import type { IRecordSummary } from '../api/record';
import { formatBytes, formatCount, formatMilliseconds } from '../format';
import { useTrans } from './actions';
import type { IStretch } from './chart';
import { Columns } from './chart';
import { sizeColumn, textColumn, timeColumn } from './columns';
import { aliveText, Arrays } from './memory-change';
import { Table } from './table';
import { Heading, Remark } from './text';

/** As the sampler calls the process's own memory. */
const PROCESS = 'process';

/** Memory over time, the devices, the largest arrays, and what decides how JAX takes memory. */
export function Memory(props: { summary: IRecordSummary }): React.JSX.Element {
  const { summary } = props;
  return (
    <>
      {summary.watch && <Watch watch={summary.watch} />}
      <Devices summary={summary} />
      {(summary.remarks ?? []).map((text, index) => (
        <Remark key={index} text={text} />
      ))}
      <LargestArrays summary={summary} />
      <Variables summary={summary} />
    </>
  );
}

function Watch(props: { watch: IWatch }): React.JSX.Element | null {
  const { watch } = props;
  const trans = useTrans();
  const duration = watch.duration_ms ?? 0;
  const series = (watch.series ?? []).filter(one => one.columns?.length);
  if (duration <= 0 || series.length === 0) {
    return null;
  }
  const cells = watch.cells ?? [];
  const stretches = stretchesOf(cells, duration);
  const devices = series.filter(({ device }) => device !== PROCESS);
  const most = Math.max(...devices.map(mostOf), 0);
  return (
    <>
      {series.map((one, index) => (
        <Curve
          key={index}
          series={one}
          duration={duration}
          stretches={stretches}
          most={one.device === PROCESS ? mostOf(one) : most}
        />
      ))}
      {devices.length > 1 && (
        <Remark
          text={trans.__(
            'The devices are drawn to one scale, up to %1.',
            formatBytes(most)
          )}
        />
      )}
      {watch.samples ? (
        <Remark
          text={trans.__(
            '%1 samples, one every %2 on average.',
            formatCount(watch.samples),
            formatMilliseconds(duration / watch.samples)
          )}
        />
      ) : null}
      <Cells cells={cells} leftOut={watch.cells_left_out ?? 0} />
    </>
  );
}

function mostOf({ columns }: IWatchSeries): number {
  return Math.max(...(columns ?? []).map(value => value ?? 0), 0);
}

function Curve(props: {
  series: IWatchSeries;
  duration: number;
  stretches: IStretch[];
  most: number;
}): React.JSX.Element {
  const { series, duration, stretches, most } = props;
  const trans = useTrans();
  const columns = series.columns ?? [];
  const each = duration / columns.length;
  const peak = formatBytes(series.most_bytes);
  if (mostOf(series) === 0) {
    const name = series.label ?? '';
    return <Remark text={trans.__('%1: nothing at any time.', name)} />;
  }
  return (
    <>
      <Heading text={series.label ?? ''} />
      <Columns
        kind="jx-curve"
        label={trans.__(
          '%1 over %2',
          series.label ?? '',
          formatMilliseconds(duration)
        )}
        top={
          series.limit_bytes
            ? trans.__('most %1 of %2', peak, formatBytes(series.limit_bytes))
            : trans.__('most %1', peak)
        }
        columns={columns.map((value, index) => ({
          height: most > 0 ? (value ?? 0) / most : 0,
          label: toldOf(index * each, value, stretches, index, columns, trans)
        }))}
        low={formatMilliseconds(0)}
        high={formatMilliseconds(duration)}
        stretches={stretches}
      />
    </>
  );
}

/** '3.20 s, In [4]: 12.1 GB' */
function toldOf(
  ms: number,
  value: number | null | undefined,
  stretches: IStretch[],
  index: number,
  columns: unknown[],
  trans: TranslationBundle
): string {
  const at = (index + 0.5) / columns.length;
  const cell = stretches.find(({ start, end }) => start <= at && at <= end);
  const when = formatMilliseconds(ms);
  return trans.__(
    '%1: %2',
    cell ? `${when}, ${cell.label}` : when,
    formatBytes(value)
  );
}

/** The cells' stretches as fractions of the watch, one after another. */
function stretchesOf(cells: IWatchedCell[], duration: number): IStretch[] {
  const found: IStretch[] = [];
  let reached = 0;
  for (const { label, start_ms: first, end_ms: last } of cells) {
    const start = Math.max((first ?? 0) / duration, reached);
    const end = Math.min(Math.max((last ?? 0) / duration, start), 1);
    if (start < 1) {
      found.push({ label: label ?? '', start, end });
      reached = end;
    }
  }
  return found;
}

function Cells(props: {
  cells: IWatchedCell[];
  leftOut: number;
}): React.JSX.Element | null {
  const trans = useTrans();
  if (props.cells.length === 0) {
    return null;
  }
  return (
    <>
      <Heading text={trans.__('The cells that ran meanwhile')} />
      <Table
        label={trans.__('The cells that ran meanwhile')}
        rows={props.cells}
        columns={[
          textColumn<IWatchedCell>(trans.__('cell'), ({ label, code }) =>
            [label, code].filter(Boolean).join('  ')
          ),
          timeColumn<IWatchedCell>(
            trans.__('began after'),
            row => row.start_ms
          ),
          timeColumn<IWatchedCell>(
            trans.__('took'),
            row => (row.end_ms ?? 0) - (row.start_ms ?? 0)
          )
        ]}
        leftOut={props.leftOut}
      />
    </>
  );
}

function Devices(props: { summary: IRecordSummary }): React.JSX.Element | null {
  const trans = useTrans();
  const devices = (props.summary.memory?.after ?? []).filter(
    device => typeof device.in_use_bytes === 'number'
  );
  if (devices.length === 0) {
    return null;
  }
  return (
    <>
      <Heading text={trans.__('Devices')} />
      <Table
        label={trans.__('Devices')}
        rows={devices}
        columns={[
          textColumn<IDeviceMemory>(trans.__('device'), row => row.device),
          sizeColumn<IDeviceMemory>(
            trans.__('in use'),
            row => row.in_use_bytes
          ),
          sizeColumn<IDeviceMemory>(
            trans.__('process’s peak'),
            row => row.peak_bytes
          ),
          sizeColumn<IDeviceMemory>(trans.__('limit'), row => row.limit_bytes),
          sizeColumn<IDeviceMemory>(
            trans.__('reserved'),
            row => row.pool_bytes
          ),
          sizeColumn<IDeviceMemory>(
            trans.__('largest free block'),
            row => row.largest_free_block_bytes
          )
        ]}
      />
    </>
  );
}

function LargestArrays(props: {
  summary: IRecordSummary;
}): React.JSX.Element | null {
  const { memory } = props.summary;
  const trans = useTrans();
  if (typeof memory?.arrays_count !== 'number') {
    return null;
  }
  const alive = aliveText(memory, trans);
  const arrays = memory.arrays ?? [];
  if (arrays.length === 0) {
    return (
      <Remark text={trans.__('No array of JAX’s is alive (%1).', alive)} />
    );
  }
  const title = trans.__('Largest arrays (%1)', alive);
  return (
    <>
      <Heading text={title} />
      <Arrays
        label={title}
        arrays={arrays}
        leftOut={memory.arrays_count - arrays.length}
      />
    </>
  );
}

function Variables(props: {
  summary: IRecordSummary;
}): React.JSX.Element | null {
  const trans = useTrans();
  const variables = props.summary.variables ?? [];
  const title = trans.__('Variables that decide how JAX takes memory');
  return variables.length === 0 ? null : (
    <>
      <Heading text={title} />
      <Table
        label={title}
        rows={variables}
        columns={[
          textColumn<IVariable>(trans.__('variable'), row => row.name),
          textColumn<IVariable>(
            trans.__('now'),
            // Empty is not set.
            row => [row.value, trans.__('not set')].find(Boolean)
          )
        ]}
        note={({ late, read }) =>
          late
            ? trans.__(
                'Too late: JAX read %1 when it started, and goes by that.',
                [read, trans.__('it unset')].find(Boolean)
              )
            : ''
        }
      />
    </>
  );
}
