/** Captures side by side, and a cell's history: the answers of `GET compare` and `GET captures/<id>/history`. */

import type { TableName } from './record';
import type { CaptureStatus } from './types';

/** A capture among those that are compared. */
export interface IComparedCapture {
  id: string;
  name: string;
  kind: string;
  created: string;
  status: CaptureStatus;
  reason: string;
  magic: string;
  notebook: string;
}

export type Verdict = 'faster' | 'slower' | 'alike' | 'unknown';

/** What the difference from the baseline tells; `reason` is half a sentence on why nothing is told. */
export interface IJudgement {
  ratio: number | null;
  low: number | null;
  high: number | null;
  verdict: Verdict;
  reason: string;
}

/** One quantity; lists have an entry for each capture, the baseline first. */
export interface IMeasure {
  group: 'steps' | 'parts' | 'run' | 'memory' | 'sweep';
  label: string;
  unit: string;
  values: (number | null)[];
  judgements: (IJudgement | null)[];
}

export interface IComparedFinding {
  level: string | null;
  lost_ms: number | null;
  /** Empty for the baseline's own. */
  state: '' | 'both' | 'new' | 'gone' | 'unknown';
  title: string;
}

export interface IFindingRow {
  id: string;
  once: boolean;
  cells: (IComparedFinding | null)[];
}

export interface INameRow {
  name: string;
  ms: (number | null)[];
  counts: (number | null)[];
  changes_ms: (number | null)[];
  alike: (boolean | null)[];
}

export type ComparedTable = 'kernels' | 'hlo_ops' | 'copies';

export interface ISideBySide {
  captures: IComparedCapture[];
  per_step: boolean;
  measures: IMeasure[];
  findings: IFindingRow[];
  tables: Record<ComparedTable, INameRow[]>;
  tables_left_out: Partial<Record<TableName, number>>[];
  /** Sentences, empty where there is nothing to say. */
  not_compared: string[];
  shares_nothing: string[];
  differences: string[][];
  cells: ({ same: boolean | null; diff: string } | null)[];
}

/** A capture of a cell; `left_out` is a sentence on why its value can't be compared with this one's. */
export interface IHistoryEntry {
  id: string;
  name: string;
  kind: string;
  created: string;
  pinned: boolean;
  status: CaptureStatus;
  match: 'this' | 'same' | 'similar';
  value: number | null;
  left_out: string;
}

/** Newest first. `searched`: so many of the notebook's captures were looked through, where it has more. */
export interface IHistory {
  captures: IHistoryEntry[];
  label: string;
  unit: string;
  searched: number | null;
}
