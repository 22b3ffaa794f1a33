/** What is measured without a timeline, as a record keeps it: times, transfers, memory, sweeps. See captures/shapes.py. */

import type { Maybe } from './types';

/** Milliseconds of several runs. */
export interface ISamples {
  count?: Maybe<number>;
  minimum?: Maybe<number>;
  p20?: Maybe<number>;
  lower_quartile?: Maybe<number>;
  median?: Maybe<number>;
  upper_quartile?: Maybe<number>;
  maximum?: Maybe<number>;
  drift?: Maybe<number>;
  histogram?: Maybe<{
    edges?: Maybe<Maybe<number>[]>;
    counts?: Maybe<Maybe<number>[]>;
    beyond?: Maybe<number>;
  }>;
}

export interface IFirstRun {
  total_ms?: Maybe<number>;
  returned_ms?: Maybe<number>;
  trace_ms?: Maybe<number>;
  lower_ms?: Maybe<number>;
  compile_ms?: Maybe<number>;
  cache_read_ms?: Maybe<number>;
  run_ms?: Maybe<number>;
  gc_ms?: Maybe<number>;
}

export interface ICompile {
  name?: Maybe<string>;
  cache?: Maybe<string>;
  cause?: Maybe<string>;
  reason?: Maybe<string>;
  line?: Maybe<number>;
  trace_ms?: Maybe<number>;
  lower_ms?: Maybe<number>;
  compile_ms?: Maybe<number>;
  again?: Maybe<boolean>;
  operation?: Maybe<boolean>;
  arguments?: Maybe<string[]>;
}

export interface ITransfer {
  direction?: Maybe<string>;
  way?: Maybe<string>;
  line?: Maybe<number>;
  count?: Maybe<number>;
  bytes?: Maybe<number>;
  unsized?: Maybe<number>;
  waited_ms?: Maybe<number>;
}

export interface IDeviceMemory {
  device?: Maybe<string>;
  in_use_bytes?: Maybe<number>;
  peak_bytes?: Maybe<number>;
  limit_bytes?: Maybe<number>;
  pool_bytes?: Maybe<number>;
  largest_allocation_bytes?: Maybe<number>;
  largest_free_block_bytes?: Maybe<number>;
}

export interface IArray {
  shape?: Maybe<number[]>;
  dtype?: Maybe<string>;
  size_bytes?: Maybe<number>;
  holders?: Maybe<string[]>;
  new?: Maybe<boolean>;
}

export interface IProgram {
  name?: Maybe<string>;
  argument_bytes?: Maybe<number>;
  output_bytes?: Maybe<number>;
  temporary_bytes?: Maybe<number>;
  code_bytes?: Maybe<number>;
}

export interface IMemory {
  before?: Maybe<IDeviceMemory[]>;
  after?: Maybe<IDeviceMemory[]>;
  programs?: Maybe<IProgram[]>;
  arrays?: Maybe<IArray[]>;
  arrays_bytes?: Maybe<number>;
  arrays_count?: Maybe<number>;
}

export interface IComparison {
  name?: Maybe<string>;
  id?: Maybe<string>;
  /** `p20` or `first`: which figure is compared. */
  basis?: Maybe<string>;
  value_ms?: Maybe<number>;
  own_ms?: Maybe<number>;
  ratio?: Maybe<{
    value?: Maybe<number>;
    low?: Maybe<number>;
    high?: Maybe<number>;
    differs?: Maybe<boolean>;
  }>;
  differences?: Maybe<string[]>;
}

export interface ISweepPoint {
  value?: Maybe<string>;
  label?: Maybe<string>;
  /** `ok`, or how it ended instead. */
  ending?: Maybe<string>;
  error?: Maybe<string>;
  hint?: Maybe<string>;
  stopped?: Maybe<string>;
  median_ms?: Maybe<number>;
  lower_quartile_ms?: Maybe<number>;
  upper_quartile_ms?: Maybe<number>;
  samples?: Maybe<number>;
  first_ms?: Maybe<number>;
  compiling_ms?: Maybe<number>;
  cache_read_ms?: Maybe<number>;
  rate?: Maybe<number>;
  peak_bytes?: Maybe<number>;
  need_bytes?: Maybe<number>;
  knee?: Maybe<boolean>;
  peak_raised?: Maybe<boolean>;
  compiled_before?: Maybe<boolean>;
  peaks?: Maybe<
    {
      device?: Maybe<string>;
      peak_bytes?: Maybe<number>;
      raised?: Maybe<boolean>;
    }[]
  >;
  doubts?: Maybe<string[]>;
}

export interface ISweepSeries {
  label?: Maybe<string>;
  along?: Maybe<string>;
  verdict?: Maybe<string>;
  points?: Maybe<ISweepPoint[]>;
}

export interface ISweep {
  names?: Maybe<string[]>;
  rate_unit?: Maybe<string>;
  planned?: Maybe<number>;
  devices?: Maybe<number>;
  series?: Maybe<ISweepSeries[]>;
}

export interface IWatchSeries {
  label?: Maybe<string>;
  device?: Maybe<string>;
  least_bytes?: Maybe<number>;
  most_bytes?: Maybe<number>;
  limit_bytes?: Maybe<number>;
  columns?: Maybe<Maybe<number>[]>;
}

export interface IWatchedCell {
  label?: Maybe<string>;
  code?: Maybe<string>;
  start_ms?: Maybe<number>;
  end_ms?: Maybe<number>;
}

export interface IWatch {
  duration_ms?: Maybe<number>;
  samples?: Maybe<number>;
  interval_ms?: Maybe<number>;
  cost?: Maybe<number>;
  series?: Maybe<IWatchSeries[]>;
  cells?: Maybe<IWatchedCell[]>;
  cells_left_out?: Maybe<number>;
}

export interface IVariable {
  name?: Maybe<string>;
  value?: Maybe<string>;
  /** What JAX has read, and goes by. */
  read?: Maybe<string>;
  late?: Maybe<boolean>;
}
