import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { ICompile, ITransfer } from '../api/measured';
import type { IRecordSummary } from '../api/record';
import { formatBytes, formatMilliseconds } from '../format';
import { useTrans } from './actions';
import { countColumn, textColumn } from './columns';
import type { IColumn } from './table';
import { Table } from './table';
import { Heading, Remark } from './text';

/** What was compiled, in its order: from where, how long each part took, and why. */
export function Compiles(props: {
  summary: IRecordSummary;
}): React.JSX.Element | null {
  const { compiles, compiles_left_out: leftOut } = props.summary;
  const trans = useTrans();
  if (!compiles || compiles.length === 0) {
    return null;
  }
  const more = leftOut?.count
    ? trans.__(
        'And %1 more, %2 in all.',
        leftOut.count,
        formatMilliseconds(leftOut.total_ms)
      )
    : '';
  return (
    <>
      <Heading text={trans.__('Compiled')} />
      <Table
        label={trans.__('Compiled')}
        rows={compiles}
        columns={[
          textColumn<ICompile>(trans.__('function'), row => row.name),
          ...lineColumns(compiles, trans),
          spentColumn<ICompile>(trans.__('trace'), row => row.trace_ms),
          spentColumn<ICompile>(trans.__('lower'), row => row.lower_ms),
          spentColumn<ICompile>(trans.__('compile'), row => row.compile_ms),
          textColumn<ICompile>(trans.__('cache'), row =>
            cacheName(row.cache, trans)
          )
        ]}
        note={row =>
          [argumentsOf(row, trans), row.reason].filter(Boolean).join(' · ')
        }
        more={more}
      />
    </>
  );
}

function cacheName(
  cache: string | null | undefined,
  trans: TranslationBundle
): string {
  switch (cache) {
    case 'hit':
      return trans.__('hit');
    case 'written':
      return trans.__('written');
    case 'miss':
      return trans.__('not kept');
    default:
      return '–';
  }
}

function argumentsOf(
  { arguments: all }: ICompile,
  trans: TranslationBundle
): string {
  return all?.length === 0 ? trans.__('no arguments') : (all ?? []).join(', ');
}

/** The column of the cell's lines, where any is known. */
function lineColumns<Row extends { line?: number | null | undefined }>(
  rows: Row[],
  trans: TranslationBundle
): IColumn<Row>[] {
  return rows.some(({ line }) => typeof line === 'number')
    ? [countColumn(trans.__('line'), row => row.line)]
    : [];
}

/** Milliseconds; none where there were none. */
function spentColumn<Row>(
  label: string,
  value: (row: Row) => number | null | undefined
): IColumn<Row> {
  return {
    label,
    value,
    text: row => formatMilliseconds((value(row) ?? 0) ? value(row) : null)
  };
}

/** What was copied between host and device without being asked for. */
export function Transfers(props: {
  summary: IRecordSummary;
}): React.JSX.Element | null {
  const { transfers, transfers_left_out: leftOut } = props.summary;
  const trans = useTrans();
  if (!transfers) {
    return null;
  }
  if (transfers.length === 0) {
    return (
      <Remark
        text={trans.__(
          'No implicit transfer between host and device was seen in the first run.'
        )}
      />
    );
  }
  return (
    <>
      <Heading text={trans.__('Implicit transfers in the first run')} />
      <Table
        label={trans.__('Implicit transfers in the first run')}
        rows={transfers}
        columns={[
          textColumn<ITransfer>(trans.__('what'), row =>
            transferName(row, trans)
          ),
          ...lineColumns(transfers, trans),
          countColumn<ITransfer>(trans.__('count'), row => row.count),
          {
            label: trans.__('size'),
            value: row => row.bytes,
            text: ({ bytes, unsized }) =>
              unsized && bytes ? `≥ ${formatBytes(bytes)}` : formatBytes(bytes)
          },
          spentColumn<ITransfer>(trans.__('waited'), row =>
            row.direction === 'read' ? row.waited_ms : null
          )
        ]}
        leftOut={leftOut ?? 0}
      />
      {transfers.some(({ unsized }) => unsized) && (
        <Remark
          text={trans.__(
            'JAX tells how large a write is only while the call that writes is compiled; of a call that it knows already the size is left open: –, or ≥ where a part is known.'
          )}
        />
      )}
    </>
  );
}

function transferName(row: ITransfer, trans: TranslationBundle): string {
  return row.direction === 'read'
    ? trans.__('read by %1', row.way ?? '–')
    : trans.__('written as %1', row.way ?? '–');
}
