/** The answers of the REST routes, as docs/architecture.md describes them. */

/** The version of the routes that this front end speaks. */
export const API = 1;

/** Where the server tells that the store has changed. */
export const CAPTURES_EVENT =
  'https://jupyterlab-jaxprof.readthedocs.io/events/captures/v1';

/** Where the server tells that a measurement or a viewer began, went on or ended. */
export const RUNNING_EVENT =
  'https://jupyterlab-jaxprof.readthedocs.io/events/running/v1';

/** What may be left out, or null. */
export type Maybe<T> = T | null | undefined;

export type CaptureStatus = 'ok' | 'partial' | 'failed' | 'interrupted';

export interface ICaptureFile {
  path: string;
  size_bytes: number;
  role: string;
}

export interface IHeadline {
  label: string;
  value: number | null;
  unit: string;
}

export interface ISteps {
  name: string;
  count: number;
  median_ms?: number | null;
  min_ms?: number | null;
  max_ms?: number | null;
}

/** Empty where the record can't be read. */
export interface ISummary {
  headline?: IHeadline | null;
  wall_ms?: number | null;
  steps?: ISteps | null;
}

/** What every form of a capture has. */
export interface ICaptureFields {
  id: string;
  kind: string;
  name: string;
  created: string;
  status: CaptureStatus;
  reason: string;
  notebook: string;
  magic: string;
  files: ICaptureFile[];
  notices: string[];
  xprof_run: string | null;
  notes: string;
  pinned: boolean;
}

/** A capture as the list shows it. */
export interface ICaptureRow extends ICaptureFields {
  summary: ISummary;
  size_bytes: number;
  disk_bytes: number;
  /** Why the record can't be read, or what is wrong with the files. */
  problem: string | null;
  /** Null when the record can't be read. */
  schema: number | null;
}

export interface IOverLimit {
  bytes: number;
  ids: string[];
}

export interface ICapturePage {
  captures: ICaptureRow[];
  matched: number;
  total: number;
  size_bytes: number;
  size_limit_bytes: number | null;
  over_limit: IOverLimit;
  problems: string[];
  /** Those of the whole store, sorted, whatever the filters. */
  kinds: string[];
  notebooks: string[];
}

/** Filters of the list; an empty string filters nothing. */
export interface ICaptureQuery {
  kind: string;
  notebook: string;
  text: string;
}

/** What a user may change after a capture is published. */
export type CaptureChanges = Partial<
  Pick<ICaptureRow, 'name' | 'notes' | 'pinned'>
>;

export type ViewerName = 'xprof' | 'tensorboard';
export type ViewerAction = 'start' | 'stop' | 'restart';

export interface IViewerState {
  name: ViewerName;
  available: boolean;
  state: 'stopped' | 'starting' | 'running' | 'failed';
  message: string;
  memory_bytes: number | null;
}

/** A measurement that goes on now. */
export interface IMeasurement {
  id: string;
  kind: string;
  name: string;
  magic: string;
  notebook: string;
  cell_id: string;
  /** Empty where this server can't interrupt it. */
  kernel_id: string;
  /** Whether an interrupt ends it. */
  interruptible: boolean;
  phase: string;
  /** Which part of all is done, 0 to 1. */
  fraction: number | null;
  elapsed_s: number;
}

export interface IRunning {
  running: IMeasurement[];
  viewers: IViewerState[];
}

export interface IUse {
  memory_bytes: number | null;
  total_bytes: number | null;
  /** 0 to 1. */
  busy_share: number | null;
}

export interface IDeviceUse extends IUse {
  name: string;
  /** Whether the memory is the kernel's alone; else it is all that is in use on the device. */
  own: boolean;
}

/** What a kernel uses; nobody looks while something is measured. */
export type KernelUsage =
  { paused: true } | { paused: false; process: IUse; devices: IDeviceUse[] };

export interface IImportState {
  id: string;
  title: string;
  state: 'uploading' | 'reading' | 'done' | 'failed';
  message: string;
  capture: string | null;
  /** The capture that holds the file already. */
  existing: string | null;
}

/** A file that is to be uploaded. */
export interface IUploadedFile {
  path: string;
  size_bytes: number;
  modified_s: number;
}

export interface IStoreSettings {
  settings: { size_limit?: string; defaults?: Record<string, string> };
  problem: string | null;
}

export interface IServerStatus {
  version: string;
  api: number;
  store: { path: string; writable: boolean; problem: string | null };
  viewers: Record<ViewerName, IViewerState>;
}

/** One thing that is amiss in the server's environment. */
export interface IEnvironmentProblem {
  what: string;
  remedy: string;
  /** The one command that mends it, or empty. */
  command: string;
  /** Something can't work before it is mended. */
  needed: boolean;
  /** It concerns only what `what` begins with. */
  note: boolean;
}
