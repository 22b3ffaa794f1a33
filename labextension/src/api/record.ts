/**
 * The record of a capture, as the REST route gives it and as a notebook keeps it.
 *
 * These are the shapes of captures/shapes.py. Anything of the summary may be missing or null.
 */

import type {
  ISamples,
  IFirstRun,
  ICompile,
  ITransfer,
  IMemory,
  IComparison,
  ISweep,
  IWatch,
  IVariable
} from './measured';
import type { ICaptureFields, Maybe } from './types';

/** The version of the record's form that this front end knows whole. */
export const RECORD_SCHEMA = 1;

export interface IRecordHeadline {
  label?: Maybe<string>;
  value?: Maybe<number>;
  unit?: Maybe<string>;
}

/** The parts of the median step. */
export interface IStepParts {
  compute_ms?: Maybe<number>;
  copy_ms?: Maybe<number>;
  collective_ms?: Maybe<number>;
  host_ms?: Maybe<number>;
  idle_ms?: Maybe<number>;
}

export interface ISlowStep {
  number?: Maybe<number>;
  duration_ms?: Maybe<number>;
  why?: Maybe<string>;
}

export interface IRecordSteps {
  name?: Maybe<string>;
  count?: Maybe<number>;
  median_ms?: Maybe<number>;
  min_ms?: Maybe<number>;
  max_ms?: Maybe<number>;
  device_ms?: Maybe<number>;
  /** The markers end before the devices' work does; null: no device is in the trace, which could tell. */
  marks_dispatch?: Maybe<boolean>;
  others?: Maybe<
    { name?: Maybe<string>; count?: Maybe<number>; median_ms?: Maybe<number> }[]
  >;
  durations_ms?: Maybe<Maybe<number>[]>;
  slowest?: Maybe<ISlowStep[]>;
  parts?: Maybe<IStepParts>;
}

export interface IDeviceTimes {
  device?: Maybe<string>;
  busy_ms?: Maybe<number>;
  busy_share?: Maybe<number>;
  compute_ms?: Maybe<number>;
  copy_ms?: Maybe<number>;
  collective_ms?: Maybe<number>;
  idle_ms?: Maybe<number>;
  ops?: Maybe<number>;
}

/** `[start_ms, end_ms]` or `[start_ms, end_ms, label]`, in the file's own time. */
export type IRecordInterval = [number, number, string?];

export interface IRecordLane {
  label?: Maybe<string>;
  /** `steps`, `compiles`, `device`, `copies`, `collectives` or `host`. */
  kind?: Maybe<string>;
  intervals?: Maybe<IRecordInterval[]>;
}

export interface IRecordGap {
  start_ms?: Maybe<number>;
  end_ms?: Maybe<number>;
  device?: Maybe<string>;
  cause?: Maybe<string>;
}

export interface IRecordDrawing {
  start_ms?: Maybe<number>;
  end_ms?: Maybe<number>;
  lanes?: Maybe<IRecordLane[]>;
  gaps?: Maybe<IRecordGap[]>;
}

export interface IRecordTimeline {
  source?: Maybe<string>;
  /** A sentence: which part of the file was judged. */
  window?: Maybe<string>;
  window_ms?: Maybe<number>;
  busy_share?: Maybe<number>;
  steps_in_window?: Maybe<number>;
  partial?: Maybe<boolean>;
  /** What the recorder could not see. */
  blind?: Maybe<string[]>;
  devices?: Maybe<IDeviceTimes[]>;
  drawing?: Maybe<IRecordDrawing>;
}

/** A row of any of the tables; which keys a table has stands in `captures/shapes.py`. */
export interface ITableRow {
  name?: Maybe<string>;
  device?: Maybe<string>;
  module?: Maybe<string>;
  scope?: Maybe<string>;
  source?: Maybe<string>;
  kind?: Maybe<string>;
  memory?: Maybe<string>;
  count?: Maybe<number>;
  bytes?: Maybe<number>;
  total_ms?: Maybe<number>;
  device_ms?: Maybe<number>;
  median_us?: Maybe<number>;
  max_us?: Maybe<number>;
  gb_per_s?: Maybe<number>;
  /** Fractions of 1. */
  share_device?: Maybe<number>;
  share_wall?: Maybe<number>;
  /** Of counters: what `mean` and `max` are in. */
  unit?: Maybe<string>;
  mean?: Maybe<number>;
  max?: Maybe<number>;
}

export type TableName =
  | 'kernels'
  | 'hlo_ops'
  | 'copies'
  | 'annotations'
  | 'calls'
  | 'system_calls'
  | 'modules'
  | 'counters';

export interface IRecordSummary {
  headline?: Maybe<IRecordHeadline>;
  wall_ms?: Maybe<number>;
  /** The file name (its last part) that the cell's lines are told of, and the line there of its first. */
  place?: Maybe<{ file?: Maybe<string>; line?: Maybe<number> }>;
  steps?: Maybe<IRecordSteps>;
  timeline?: Maybe<IRecordTimeline>;
  tables?: Maybe<Partial<Record<TableName, Maybe<ITableRow[]>>>>;
  tables_left_out?: Maybe<Partial<Record<TableName, Maybe<number>>>>;
  sentence?: Maybe<string>;
  first?: Maybe<IFirstRun>;
  autotuning?: Maybe<boolean>;
  cached?: Maybe<ISamples>;
  cached_returned?: Maybe<ISamples>;
  repeats?: Maybe<{
    loops?: Maybe<number>;
    left_out?: Maybe<number>;
    gc_ms?: Maybe<number>;
    stopped?: Maybe<string>;
  }>;
  compiles?: Maybe<ICompile[]>;
  compiles_left_out?: Maybe<{
    count?: Maybe<number>;
    total_ms?: Maybe<number>;
  }>;
  transfers?: Maybe<ITransfer[]>;
  transfers_left_out?: Maybe<number>;
  memory?: Maybe<IMemory>;
  comparison?: Maybe<IComparison[]>;
  sweep?: Maybe<ISweep>;
  process_bytes?: Maybe<number>;
  remarks?: Maybe<string[]>;
  variables?: Maybe<IVariable[]>;
  watch?: Maybe<IWatch>;
}

export interface IFindingRange {
  start_ms?: Maybe<number>;
  end_ms?: Maybe<number>;
  label?: Maybe<string>;
}

export interface IFinding {
  id?: Maybe<string>;
  title?: Maybe<string>;
  /** `problem`, `note` or `fine`. */
  level?: Maybe<string>;
  /** What mending it alone would win. */
  lost_ms?: Maybe<number>;
  share?: Maybe<number>;
  evidence?: Maybe<string[]>;
  ranges?: Maybe<IFindingRange[]>;
  meaning?: Maybe<string>;
  next?: Maybe<string[]>;
  /** Its page below docs/, as `patterns/device-idle`. */
  doc?: Maybe<string>;
}

export interface IRecordDevice {
  id?: Maybe<number>;
  platform?: Maybe<string>;
  kind?: Maybe<string>;
  process_index?: Maybe<number>;
}

/** Texts, but for `devices`; a later version may add anything. */
export interface IRecordEnvironment {
  devices?: Maybe<IRecordDevice[]>;
  [key: string]: unknown;
}

export interface ICaptureRecord extends ICaptureFields {
  schema: number;
  cell: string;
  environment: IRecordEnvironment;
  summary: IRecordSummary;
  findings: IFinding[];
  size_bytes?: number;
  /** Where it lies; on the kernel's machine in a card, on the server's in an answer. */
  directory?: string;
  /** False for one that went elsewhere than into the store; only a card tells. */
  in_store?: boolean;
}

/** A record as the server gives it. */
export interface IStoredRecord extends ICaptureRecord {
  size_bytes: number;
  disk_bytes: number;
  directory: string;
}
