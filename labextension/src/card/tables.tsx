import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IRecordSummary, ITableRow, TableName } from '../api/record';
import { formatCount, formatQuantity, formatShare } from '../format';
import { useTrans } from './actions';
import {
  countColumn,
  quantityColumn,
  shareColumn,
  sizeColumn,
  textColumn,
  timeColumn
} from './columns';
import type { IColumn } from './table';
import { Table } from './table';
import { More } from './text';

/** A share of the time above this one is no mere rounding. */
const WHOLE = 1.0005;

const OF_ALL_DEVICES: TableName[] = ['hlo_ops', 'copies', 'modules'];

interface ITable {
  name: TableName;
  title: string;
  columns: (rows: ITableRow[]) => IColumn<ITableRow>[];
}

function tablesOf(trans: TranslationBundle): ITable[] {
  const name = (label: string): IColumn<ITableRow> =>
    textColumn(label, row => row.name ?? trans.__('(no name)'));
  const device = (rows: ITableRow[]): IColumn<ITableRow>[] =>
    new Set(rows.map(row => row.device)).size > 1
      ? [textColumn(trans.__('device'), row => row.device)]
      : [];
  const count = countColumn<ITableRow>(trans.__('count'), row => row.count);
  const total = timeColumn<ITableRow>(trans.__('total'), row => row.total_ms);
  const ofDevice = shareColumn<ITableRow>(
    trans.__('of device'),
    row => row.share_device
  );
  const ofWall: IColumn<ITableRow> = {
    label: trans.__('of wall'),
    value: row => row.share_wall,
    text: row => (exceeds(row) ? '–' : formatShare(row.share_wall))
  };
  return [
    {
      name: 'kernels',
      title: trans.__('Kernels'),
      columns: rows => [
        name(trans.__('kernel')),
        ...device(rows),
        count,
        total,
        quantityColumn(trans.__('median'), 'us', row => row.median_us),
        quantityColumn(trans.__('longest'), 'us', row => row.max_us),
        ofDevice,
        ofWall
      ]
    },
    {
      name: 'hlo_ops',
      title: trans.__('HLO operations, with JAX’s scopes'),
      columns: () => [
        name(trans.__('HLO operation')),
        count,
        total,
        ofDevice,
        ofWall
      ]
    },
    {
      name: 'copies',
      title: trans.__('Copies and memsets'),
      columns: () => [
        textColumn(trans.__('copies'), row =>
          [row.kind, row.memory].filter(Boolean).join(', ')
        ),
        count,
        sizeColumn(trans.__('size'), row => row.bytes),
        total,
        quantityColumn(trans.__('rate'), 'GB/s', row => row.gb_per_s),
        ofWall
      ]
    },
    {
      name: 'annotations',
      title: trans.__('Annotations on the host'),
      columns: () => [
        name(trans.__('annotation')),
        count,
        total,
        ofWall,
        timeColumn(trans.__('device time'), row => row.device_ms)
      ]
    },
    {
      name: 'calls',
      title: trans.__('API calls'),
      columns: () => [name(trans.__('call')), count, total, ofWall]
    },
    {
      name: 'system_calls',
      title: trans.__('Calls of the operating system’s library'),
      columns: () => [name(trans.__('call')), count, total, ofWall]
    },
    {
      name: 'modules',
      title: trans.__('Modules'),
      columns: () => [name(trans.__('module')), count, total, ofDevice, ofWall]
    },
    {
      name: 'counters',
      title: trans.__('GPU metrics'),
      columns: rows => [
        name(trans.__('counter')),
        ...device(rows),
        inOwnUnit(trans.__('mean'), row => row.mean),
        inOwnUnit(trans.__('highest'), row => row.max),
        countColumn(trans.__('samples'), row => row.count)
      ]
    }
  ];
}

/** A quantity in the unit that its row names. */
function inOwnUnit(
  label: string,
  value: (row: ITableRow) => number | null | undefined
): IColumn<ITableRow> {
  return {
    label,
    value,
    text: row => formatQuantity(value(row), row.unit ?? '')
  };
}

/** What took the time on the devices and on the host: a table each, closed at first. */
export function TopTables(props: {
  summary: IRecordSummary;
}): React.JSX.Element {
  const { summary } = props;
  const { tables, tables_left_out: leftOut } = summary;
  const trans = useTrans();
  const devices = summary.timeline?.devices?.length ?? 0;
  return (
    <>
      {tablesOf(trans).map(({ name, title, columns }) => {
        const rows = tables?.[name] ?? [];
        const hidden = leftOut?.[name] ?? 0;
        return (
          rows.length > 0 && (
            <More
              key={name}
              title={`${title} (${formatCount(rows.length + hidden)})${whose(name, devices, trans)}`}
            >
              {() => (
                <Table
                  label={title}
                  rows={rows}
                  columns={columns(rows)}
                  note={row => noteOf(row, trans)}
                  leftOut={hidden}
                />
              )}
            </More>
          )
        );
      })}
    </>
  );
}

/** Whether a table's figures are of one or of all devices, where there are several. */
function whose(
  table: TableName,
  devices: number,
  trans: TranslationBundle
): string {
  if (devices < 2) {
    return '';
  }
  if (table === 'kernels') {
    return trans.__(', shares of each one’s own device');
  }
  return OF_ALL_DEVICES.includes(table)
    ? trans.__(', of all %1 devices', devices)
    : '';
}

/** Whether something took more than all the time: several of it ran at once. */
function exceeds(row: ITableRow): boolean {
  return (row.share_wall ?? 0) > WHOLE;
}

function noteOf(row: ITableRow, trans: TranslationBundle): string {
  const where = [row.scope, row.source].filter(Boolean).join(' · ');
  const atOnce = exceeds(row)
    ? trans.__(
        'Several ran at a time (on several threads, say), so together they took longer than the window.'
      )
    : '';
  return `${where} ${atOnce}`.trim();
}
