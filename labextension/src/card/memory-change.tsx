import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IArray, IMemory, IProgram } from '../api/measured';
import { formatBytes } from '../format';
import { useTrans } from './actions';
import { sizeColumn, textColumn } from './columns';
import { Table } from './table';
import { Heading, Remark } from './text';

interface IChange {
  device: string;
  before: number;
  after: number;
  peak: number | null | undefined;
  raised: boolean;
  limit: number | null | undefined;
}

/** How a cell changed the devices' memory, what its programs need, and what it left alive. */
export function MemoryChange(props: { memory: IMemory }): React.JSX.Element {
  const { memory } = props;
  const trans = useTrans();
  const devices = changesOf(memory);
  const programs = memory.programs ?? [];
  const several = (memory.after ?? []).length > 1;
  const needs = several
    ? trans.__('What the programs need, on each of their devices')
    : trans.__('What the programs need');
  return (
    <>
      {devices.length > 0 && (
        <>
          <Heading text={trans.__('Device memory')} />
          <Table
            label={trans.__('Device memory')}
            rows={devices}
            columns={[
              textColumn<IChange>(trans.__('device'), row => row.device),
              sizeColumn<IChange>(trans.__('before'), row => row.before),
              sizeColumn<IChange>(trans.__('after'), row => row.after),
              {
                label: trans.__('change'),
                value: row => row.after - row.before,
                text: row =>
                  (row.after > row.before ? '+' : '') +
                  formatBytes(row.after - row.before)
              },
              {
                label: trans.__('process’s peak'),
                value: row => row.peak,
                text: row =>
                  row.raised
                    ? trans.__('%1 (raised)', formatBytes(row.peak))
                    : formatBytes(row.peak)
              },
              sizeColumn<IChange>(trans.__('limit'), row => row.limit)
            ]}
          />
        </>
      )}
      {programs.length > 0 && (
        <>
          <Heading text={needs} />
          <Table
            label={needs}
            rows={programs}
            columns={[
              textColumn<IProgram>(trans.__('function'), row => row.name),
              sizeColumn<IProgram>(
                trans.__('arguments'),
                row => row.argument_bytes
              ),
              sizeColumn<IProgram>(trans.__('output'), row => row.output_bytes),
              sizeColumn<IProgram>(
                trans.__('temporary'),
                row => row.temporary_bytes
              )
            ]}
          />
        </>
      )}
      <LeftAlive memory={memory} />
    </>
  );
}

function changesOf({ before, after }: IMemory): IChange[] {
  return (after ?? []).flatMap((now, index) => {
    const then = before?.[index];
    if (
      typeof now.in_use_bytes !== 'number' ||
      typeof then?.in_use_bytes !== 'number'
    ) {
      return [];
    }
    return [
      {
        device: now.device ?? '',
        before: then.in_use_bytes,
        after: now.in_use_bytes,
        peak: now.peak_bytes,
        raised: (now.peak_bytes ?? 0) > (then.peak_bytes ?? 0),
        limit: now.limit_bytes
      }
    ];
  });
}

function LeftAlive(props: { memory: IMemory }): React.JSX.Element {
  const { memory } = props;
  const trans = useTrans();
  const left = (memory.arrays ?? []).filter(array => array.new);
  const alive = aliveText(memory, trans);
  if (left.length === 0) {
    return (
      <Remark
        text={trans.__('No array that this made is alive now (%1).', alive)}
      />
    );
  }
  const title = trans.__('Largest arrays that this left alive (%1)', alive);
  return (
    <>
      <Heading text={title} />
      <Arrays label={title} arrays={left} leftOut={0} />
    </>
  );
}

/** '12 arrays alive, 3.5 GB in all' */
export function aliveText(
  { arrays_count: count, arrays_bytes: bytes }: IMemory,
  trans: TranslationBundle
): string {
  return trans.__(
    '%1 alive, %2 in all',
    trans._n('%1 array', '%1 arrays', count ?? 0),
    formatBytes(bytes)
  );
}

/** Arrays with who holds them. */
export function Arrays(props: {
  label: string;
  arrays: IArray[];
  leftOut: number;
}): React.JSX.Element {
  const trans = useTrans();
  return (
    <Table
      label={props.label}
      rows={props.arrays}
      columns={[
        textColumn<IArray>(trans.__('held by'), ({ holders }) =>
          holders && holders.length > 0
            ? holders.join(', ')
            : trans.__('nothing that could be found')
        ),
        textColumn<IArray>(
          trans.__('type'),
          ({ dtype, shape }) => `${dtype ?? ''}[${(shape ?? []).join(',')}]`
        ),
        sizeColumn<IArray>(trans.__('size'), row => row.size_bytes)
      ]}
      leftOut={props.leftOut}
    />
  );
}
