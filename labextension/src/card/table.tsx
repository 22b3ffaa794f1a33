import type { TranslationBundle } from '@jupyterlab/translation';
import { classes } from '@jupyterlab/ui-components';
import React, { useState } from 'react';

import { formatCount } from '../format';
import { useTrans } from './actions';
import { Remark, Sentence } from './text';

/** Rows in sight before more are asked for. */
const FEW = 12;
/** Tables of more rows than this can be filtered. */
const FILTERED = 8;

type Cell = string | number | null | undefined;

/** A column; what it sorts by is a number or a text, and what it shows is made of that. */
export interface IColumn<Row> {
  label: string;
  /** What of a row it sorts by; what is missing comes last. */
  value: (row: Row) => Cell;
  /** How that is written; by default as it is. */
  text?: (row: Row) => string;
  /** Words, which stand at the left; numbers stand at the right, and whatever is first at the left. */
  isText?: boolean;
}

interface ITableProps<Row> {
  /** What it is called, where no heading above it says so. */
  label: string;
  columns: IColumn<NoInfer<Row>>[];
  rows: Row[];
  /** What is said below a row. */
  note?: (row: NoInfer<Row>) => string;
  /** How many more there are than `rows`. */
  leftOut?: number;
  /** What is said of them instead. */
  more?: string;
}

interface IOrder {
  column: number;
  descending: boolean;
}

/** A table that sorts by any column and is filtered by text. Its rows come in their own order at first. */
export function Table<Row>(props: ITableProps<Row>): React.JSX.Element {
  const { label, columns, rows, note, leftOut = 0 } = props;
  const trans = useTrans();
  const [order, setOrder] = useState<IOrder | null>(null);
  const [filter, setFilter] = useState('');
  const [all, setAll] = useState(false);
  const found = sorted(filtered(rows, filter, columns, note), columns, order);
  const shown = all || filter ? found : found.slice(0, FEW);
  const more = props.more ?? moreText(leftOut, trans);
  return (
    <>
      {rows.length > FILTERED && (
        <div className="jx-filter">
          <input
            type="search"
            className="jp-mod-styled"
            placeholder={trans.__('Filter')}
            aria-label={trans.__('Filter %1', label)}
            spellCheck={false}
            value={filter}
            onChange={event => {
              setFilter(event.currentTarget.value);
            }}
          />
          <span role="status">
            {filter &&
              trans.__(
                '%1 of %2',
                formatCount(found.length),
                formatCount(rows.length)
              )}
          </span>
        </div>
      )}
      <div className="jx-wide-table">
        <table className="jx-data" aria-label={label}>
          <thead>
            <tr>
              {columns.map((column, index) => (
                <HeaderCell
                  key={index}
                  column={column}
                  order={order?.column === index ? order : null}
                  onSort={() => {
                    setOrder(nextOrder(order, index, rows, column));
                  }}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row, index) => (
              <TableRow
                key={index}
                row={row}
                columns={columns}
                note={note?.(row) ?? ''}
              />
            ))}
          </tbody>
        </table>
      </div>
      {filter && found.length === 0 && (
        <Remark text={trans.__('No row has “%1” in it.', filter)} />
      )}
      {!filter && found.length > FEW && (
        <button
          className="jx-link-button"
          onClick={() => {
            setAll(!all);
          }}
        >
          {all
            ? trans.__('Show the first %1', FEW)
            : trans.__('Show all %1', formatCount(found.length))}
        </button>
      )}
      {more && <Remark text={more} />}
    </>
  );
}

function moreText(leftOut: number, trans: TranslationBundle): string {
  return leftOut > 0
    ? trans._n('%1 more is left out.', '%1 more are left out.', leftOut)
    : '';
}

function HeaderCell<Row>(props: {
  column: IColumn<Row>;
  order: IOrder | null;
  onSort: () => void;
}): React.JSX.Element {
  const { column, order, onSort } = props;
  const direction = order?.descending ? 'descending' : 'ascending';
  return (
    <th
      scope="col"
      className={classes(column.isText && 'jx-text')}
      aria-sort={order ? direction : 'none'}
    >
      <button className={classes(order && `jx-${direction}`)} onClick={onSort}>
        {column.label}
      </button>
    </th>
  );
}

function TableRow<Row>(props: {
  row: Row;
  columns: IColumn<Row>[];
  note: string;
}): React.JSX.Element {
  const { row, columns, note } = props;
  return (
    <>
      <tr>
        {columns.map((column, index) => (
          <td key={index} className={classes(column.isText && 'jx-text')}>
            <bdi>{textOf(column, row)}</bdi>
          </td>
        ))}
      </tr>
      {note && (
        <tr className="jx-note">
          <td colSpan={columns.length}>
            <Sentence text={note} />
          </td>
        </tr>
      )}
    </>
  );
}

function textOf<Row>(column: IColumn<Row>, row: Row): string {
  return column.text?.(row) ?? String(column.value(row) ?? '–');
}

/** The largest number or the first name comes first; a second click turns it round, a third takes it back. */
function nextOrder<Row>(
  order: IOrder | null,
  column: number,
  rows: Row[],
  { value }: IColumn<Row>
): IOrder | null {
  const first = rows.some(row => typeof value(row) === 'number');
  if (order?.column !== column) {
    return { column, descending: first };
  }
  return order.descending === first ? { column, descending: !first } : null;
}

function sorted<Row>(
  rows: Row[],
  columns: IColumn<Row>[],
  order: IOrder | null
): Row[] {
  const column = order && columns[order.column];
  if (!column) {
    return rows;
  }
  const sign = order.descending ? -1 : 1;
  return [...rows].sort((first, second) => {
    const [a, b] = [column.value(first), column.value(second)];
    if (a === b) {
      return 0;
    }
    if (typeof a === 'number' && typeof b === 'number') {
      return sign * (a - b);
    }
    if (isMissing(a) || isMissing(b)) {
      return Number(isMissing(a)) - Number(isMissing(b));
    }
    return sign * String(a).localeCompare(String(b), 'en', { numeric: true });
  });
}

function isMissing(cell: Cell): boolean {
  return cell === null || cell === undefined || cell === '';
}

/** The rows that have each word in one of their texts. */
function filtered<Row>(
  rows: Row[],
  filter: string,
  columns: IColumn<Row>[],
  note?: (row: Row) => string
): Row[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    return rows;
  }
  return rows.filter(row => {
    const text = [
      ...columns.map(column => textOf(column, row)),
      note?.(row) ?? ''
    ]
      .join('\n')
      .toLowerCase();
    return words.every(word => text.includes(word));
  });
}
