/** A record's drawing, checked and made ready: which intervals, in which lanes, with which gaps. */

import type {
  IDeviceTimes,
  IRecordGap,
  IRecordLane,
  IRecordTimeline
} from '../../api/record';
import type { IView } from './viewport';

/** What one can point at. `cause` is a gap's; null for what is no gap. */
export interface ISpan {
  start: number;
  end: number;
  label: string;
  cause: string | null;
}

export interface ILane {
  label: string;
  /** Without the device's name where the lane stands below that device's own. */
  shortLabel: string;
  kind: string;
  isPart: boolean;
  /** How much of the window a device was busy; null for other lanes. */
  busyShare: number | null;
  spans: ISpan[];
  gaps: ISpan[];
  /** How much of the drawn time was really taken: many short ones are drawn as one. */
  density: number;
}

export interface ICause {
  name: string;
  total_ms: number;
  gaps: number;
  /** Its colour's number; those of the rest share the last. */
  tone: number;
}

export interface IDrawing {
  whole: IView;
  lanes: ILane[];
  causes: ICause[];
}

/** Tones for causes; one more is for the rest. */
const TONES = 4;
const TIMES = {
  device: 'busy_ms',
  copies: 'copy_ms',
  collectives: 'collective_ms'
} as const;

/** Give the drawing of a record's timeline; null where there is nothing to draw. */
export function readDrawing(timeline: IRecordTimeline): IDrawing | null {
  const { start_ms: start, end_ms: end, lanes, gaps } = timeline.drawing ?? {};
  if (!isTime(start) || !isTime(end) || end <= start) {
    return null;
  }
  const whole = { start, end };
  const devices = new Map(
    (timeline.devices ?? []).map(device => [device.device ?? '', device])
  );
  const shown: ILane[] = [];
  let device = '';
  for (const lane of lanes ?? []) {
    if (lane.kind === 'device') {
      device = lane.label ?? '';
    }
    shown.push(readLane(lane, device, gaps ?? [], devices, whole));
  }
  const drawn = shown.filter(({ spans }) => spans.length > 0);
  return drawn.length > 0
    ? { whole, lanes: drawn, causes: causesOf(drawn) }
    : null;
}

function readLane(
  lane: IRecordLane,
  device: string,
  gaps: IRecordGap[],
  devices: Map<string, IDeviceTimes>,
  whole: IView
): ILane {
  const kind = lane.kind ?? '';
  const label = lane.label ?? '';
  const isPart =
    (kind === 'copies' || kind === 'collectives') &&
    device !== '' &&
    label.startsWith(`${device} `);
  const times = devices.get(isPart ? device : label);
  const spans = readSpans(lane, whole);
  return {
    label,
    shortLabel: isPart ? label.slice(device.length + 1) : label,
    kind,
    isPart,
    busyShare: kind === 'device' ? (times?.busy_share ?? null) : null,
    spans,
    gaps:
      kind === 'device'
        ? readGaps(
            gaps.filter(gap => gap.device === label),
            whole
          )
        : [],
    density: densityOf(kind, spans, times)
  };
}

function readSpans(lane: IRecordLane, whole: IView): ISpan[] {
  const spans: ISpan[] = [];
  for (const [start, end, label] of lane.intervals ?? []) {
    // A step's label is its number.
    const name =
      label && lane.kind === 'steps' ? `${lane.label ?? ''} ${label}` : label;
    addSpan(spans, start, end, name ?? '', null, whole);
  }
  return spans.sort((one, other) => one.start - other.start);
}

function readGaps(gaps: IRecordGap[], whole: IView): ISpan[] {
  const spans: ISpan[] = [];
  for (const { start_ms: start, end_ms: end, cause } of gaps) {
    addSpan(spans, start, end, '', cause ?? '', whole);
  }
  return spans;
}

/** Add what of it is in sight at all. */
function addSpan(
  spans: ISpan[],
  start: unknown,
  end: unknown,
  label: string,
  cause: string | null,
  whole: IView
): void {
  if (
    isTime(start) &&
    isTime(end) &&
    start <= end &&
    end >= whole.start &&
    start <= whole.end
  ) {
    spans.push({ start, end, label, cause });
  }
}

function densityOf(
  kind: string,
  spans: ISpan[],
  times: IDeviceTimes | undefined
): number {
  const key = kind in TIMES ? TIMES[kind as keyof typeof TIMES] : null;
  const taken = key && times?.[key];
  const drawn = spans.reduce((sum, { start, end }) => sum + end - start, 0);
  return isTime(taken) && drawn > 0 ? Math.min(taken / drawn, 1) : 1;
}

/** Each cause with its tone, the costliest first; a cause has its own tone unless a costlier one has that. */
function causesOf(lanes: ILane[]): ICause[] {
  const causes = new Map<string, ICause>();
  for (const { cause, start, end } of lanes.flatMap(({ gaps }) => gaps)) {
    const name = cause ?? '';
    const known = causes.get(name) ?? {
      name,
      total_ms: 0,
      gaps: 0,
      tone: TONES
    };
    known.total_ms += end - start;
    known.gaps += 1;
    causes.set(name, known);
  }
  const order = [...causes.values()].sort(
    (one, other) => other.total_ms - one.total_ms
  );
  const free = new Set(Array.from({ length: TONES }, (_, tone) => tone));
  for (const cause of order.slice(0, TONES)) {
    let tone = hashOf(cause.name) % TONES;
    while (!free.delete(tone)) {
      tone = (tone + 1) % TONES;
    }
    cause.tone = tone;
  }
  return order;
}

function hashOf(text: string): number {
  let hash = 0;
  for (const character of text) {
    hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 65_521;
  }
  return hash;
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

/** Spans and gaps, in the order of time: what the keyboard goes along. */
export function stopsOf(lane: ILane): ISpan[] {
  return [...lane.spans, ...lane.gaps].sort(
    (one, other) => one.start - other.start || one.end - other.end
  );
}

/** What is at a time, or not farther from it than `near`: the shortest of those, and rather no gap. */
export function spanAt(lane: ILane, time: number, near: number): ISpan | null {
  const at = (spans: ISpan[]): ISpan | null => {
    let found: ISpan | null = null;
    for (const span of spans) {
      if (
        span.start - near <= time &&
        span.end + near >= time &&
        (!found || span.end - span.start < found.end - found.start)
      ) {
        found = span;
      }
    }
    return found;
  };
  return at(lane.spans) ?? at(lane.gaps);
}
