/** Columns of tables, by what their numbers are. */

import {
  formatBytes,
  formatCount,
  formatMilliseconds,
  formatQuantity,
  formatShare
} from '../format';
import type { IColumn } from './table';

type Get<Row> = (row: Row) => number | null | undefined;

export function textColumn<Row>(
  label: string,
  value: (row: Row) => string | null | undefined
): IColumn<Row> {
  return { label, value, text: row => value(row) ?? '–', isText: true };
}

/** Milliseconds. */
export function timeColumn<Row>(label: string, value: Get<Row>): IColumn<Row> {
  return { label, value, text: row => formatMilliseconds(value(row)) };
}

/** Bytes. */
export function sizeColumn<Row>(label: string, value: Get<Row>): IColumn<Row> {
  return { label, value, text: row => formatBytes(value(row)) };
}

export function countColumn<Row>(label: string, value: Get<Row>): IColumn<Row> {
  return { label, value, text: row => formatCount(value(row)) };
}

/** A fraction of 1. */
export function shareColumn<Row>(label: string, value: Get<Row>): IColumn<Row> {
  return { label, value, text: row => formatShare(value(row)) };
}

/** With a unit as records have it: `us`, `GB/s`. */
export function quantityColumn<Row>(
  label: string,
  unit: string,
  value: Get<Row>
): IColumn<Row> {
  return { label, value, text: row => formatQuantity(value(row), unit) };
}
