/** What part of a time is in sight. Times are milliseconds of the file. */

export interface IView {
  start: number;
  end: number;
}

/** Nobody needs to see less than this part of the whole, nor less than some nanoseconds. */
const LEAST_SHARE = 1e-5;
const LEAST_MS = 1e-5;
/** What is fitted has this much room around it, as a part of its own length. */
const MARGIN = 0.15;
const MOST_TICKS = 6;

/** Where a time stands, from 0 at the left to 1 at the right. */
export function fractionOf(time: number, { start, end }: IView): number {
  return (time - start) / (end - start);
}

export function isWhole(view: IView, whole: IView): boolean {
  return view.start <= whole.start && view.end >= whole.end;
}

/** Show `factor` times as much, with what is at `fraction` staying there. */
export function zoomed(
  view: IView,
  factor: number,
  fraction: number,
  whole: IView
): IView {
  const length = view.end - view.start;
  const least = Math.max((whole.end - whole.start) * LEAST_SHARE, LEAST_MS);
  const wanted = Math.max(length * factor, Math.min(least, length));
  const start = view.start + (length - wanted) * fraction;
  return within({ start, end: start + wanted }, whole);
}

/** Move by a part of what is in sight. */
export function panned(view: IView, fraction: number, whole: IView): IView {
  const by = (view.end - view.start) * fraction;
  return within({ start: view.start + by, end: view.end + by }, whole);
}

/** Show this time with some room around it. */
export function fitted(part: IView, whole: IView): IView {
  const least = Math.max((whole.end - whole.start) * LEAST_SHARE, LEAST_MS);
  const margin = Math.max((part.end - part.start) * MARGIN, least);
  return within({ start: part.start - margin, end: part.end + margin }, whole);
}

/** Move as little as shows this time; what is longer than the view shows its beginning. */
export function following(view: IView, part: IView, whole: IView): IView {
  const length = view.end - view.start;
  if (part.start >= view.start && part.end <= view.end) {
    return view;
  }
  const center = (part.start + Math.min(part.end, part.start + length)) / 2;
  return within(
    { start: center - length / 2, end: center + length / 2 },
    whole
  );
}

/** Round times for an axis, some of them, and how far they are apart. */
export function ticksOf(view: IView): { step: number; ticks: number[] } {
  const rough = (view.end - view.start) / MOST_TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find(one => one * power >= rough) ?? 10);
  const ticks: number[] = [];
  for (let at = Math.ceil(view.start / step); at * step <= view.end; at += 1) {
    ticks.push(at * step);
  }
  return { step, ticks };
}

/** Move, and at last shorten, a view that would show what is outside the whole. */
function within({ start, end }: IView, whole: IView): IView {
  const length = Math.min(end - start, whole.end - whole.start);
  const first = Math.min(Math.max(start, whole.start), whole.end - length);
  return { start: first, end: first + length };
}
