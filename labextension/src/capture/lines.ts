import type { TranslationBundle } from '@jupyterlab/translation';

import type { ICaptureRecord, IRecordSummary } from '../api/record';
import { formatMilliseconds } from '../format';

/** Times beside the lines of a cell, in milliseconds; what took them, for whoever asks. */
export interface ILineColumn {
  label: string;
  /** By the number of the line in the cell's code, from 0. */
  lines: Map<number, { ms: number; what: string[] }>;
}

export interface ILineTimes {
  columns: ILineColumn[];
  /** What else is to be known; sentences. */
  remarks: string[];
}

/** Where the time of a capture went by line of its cell, as far as it tells. */
export function lineTimes(
  record: ICaptureRecord,
  trans: TranslationBundle
): ILineTimes {
  const { file, line: first } = record.summary.place ?? {};
  if (!file || typeof first !== 'number') {
    const remark = trans.__(
      'No time is told by line: the capture does not tell which lines these are.'
    );
    return { columns: [], remarks: [remark] };
  }
  const { columns, remarks } =
    record.kind === 'time'
      ? timesOfTiming(record.summary, first, trans)
      : timesOfOperations(record.summary, file, first, trans);
  if (columns.length === 0 && remarks.length === 0) {
    remarks.push(trans.__('No time is told of a line of this cell.'));
  }
  return { columns, remarks };
}

/** What compiled where, and where the host waited for values. */
function timesOfTiming(
  summary: IRecordSummary,
  first: number,
  trans: TranslationBundle
): ILineTimes {
  const compiling = new Column(trans.__('Compiling'));
  for (const one of summary.compiles ?? []) {
    const ms =
      (one.trace_ms ?? 0) + (one.lower_ms ?? 0) + (one.compile_ms ?? 0);
    compiling.add(one.line, first, ms, one.name ?? '');
  }
  const waiting = new Column(trans.__('Waiting for values'));
  for (const one of summary.transfers ?? []) {
    waiting.add(one.line, first, one.waited_ms ?? 0, one.way ?? '');
  }
  const columns = [compiling, waiting].filter(({ lines }) => lines.size > 0);
  const count = summary.compiles_left_out?.count ?? 0;
  const remarks =
    count > 0
      ? [trans.__('%1 more compiles are not told by line.', count)]
      : [];
  return { columns, remarks };
}

/** What the devices did for each line: operations carry the line that they come from. */
function timesOfOperations(
  summary: IRecordSummary,
  file: string,
  first: number,
  trans: TranslationBundle
): ILineTimes {
  const operations = summary.tables?.hlo_ops ?? [];
  const column = new Column(trans.__('Device time'));
  const elsewhere = new Map<string, number>();
  let unknown = 0;
  for (const { source, name, total_ms: total } of operations) {
    const ms = total ?? 0;
    const split = /^(.*):(\d+)$/.exec(source ?? '');
    if (split?.[1] === file) {
      column.add(Number(split[2]), first, ms, name ?? '');
    } else if (split?.[1]) {
      elsewhere.set(split[1], (elsewhere.get(split[1]) ?? 0) + ms);
    } else {
      unknown += ms;
    }
  }
  const remarks: string[] = [];
  if (operations.length === 0) {
    remarks.push(
      trans.__(
        'No time is told by line: the capture has no operations of a device (a trace of a CPU never has).'
      )
    );
  }
  if (elsewhere.size > 0) {
    const told = [...elsewhere]
      .sort(([, a], [, b]) => b - a)
      .slice(0, 4)
      .map(([name, ms]) => `${name} (${formatMilliseconds(ms)})`);
    remarks.push(
      trans.__('Device time of code in other files: %1.', told.join(', '))
    );
  }
  if (unknown > 0) {
    remarks.push(
      trans.__(
        'Device time of operations without a line: %1.',
        formatMilliseconds(unknown)
      )
    );
  }
  const leftOut = summary.tables_left_out?.hlo_ops ?? 0;
  if (leftOut > 0) {
    remarks.push(
      trans.__('%1 smaller operations are not told by line.', leftOut)
    );
  }
  return { columns: column.lines.size > 0 ? [column] : [], remarks };
}

class Column implements ILineColumn {
  constructor(readonly label: string) {}

  readonly lines = new Map<number, { ms: number; what: string[] }>();

  /** Add to a line, which is counted from the cell's own first; `first` is that of its code. */
  add(
    line: number | null | undefined,
    first: number,
    ms: number,
    what: string
  ): void {
    if (typeof line !== 'number' || line < first || ms <= 0) {
      return;
    }
    const told = this.lines.get(line - first) ?? { ms: 0, what: [] };
    told.ms += ms;
    if (what && !told.what.includes(what)) {
      told.what.push(what);
    }
    this.lines.set(line - first, told);
  }
}
