import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IRecordSummary } from '../api/record';
import { formatCount, formatMilliseconds, formatQuantity } from '../format';
import { useTrans } from './actions';
import { Columns } from './chart';
import { Figures, type Figure } from './figures';

const MAX_BARS = 60;
/** The chart's scale ends at so many medians: a slow first step can't flatten the others. */
const MAX_MEDIANS = 3;

/** The steps, or else the headline, and the wall time; with the steps' durations as a chart. */
export function StepFigures(props: {
  summary: IRecordSummary;
}): React.JSX.Element {
  const { summary } = props;
  const trans = useTrans();
  const durations = summary.steps?.durations_ms ?? [];
  return (
    <Figures figures={figuresOf(summary, trans)}>
      <Durations durations={durations} />
    </Figures>
  );
}

function figuresOf(
  { headline, steps, wall_ms: wall }: IRecordSummary,
  trans: TranslationBundle
): Figure[] {
  const figures: Figure[] = [];
  if (steps?.count) {
    const marker = steps.name ?? trans.__('step');
    const name = steps.marks_dispatch
      ? trans.__('%1 (dispatch only)', marker)
      : marker;
    const median = formatMilliseconds(steps.median_ms);
    if (steps.count > 1) {
      figures.push(
        [trans.__('%1, median', name), median],
        [trans.__('shortest'), formatMilliseconds(steps.min_ms)],
        [trans.__('longest'), formatMilliseconds(steps.max_ms)],
        [trans.__('steps'), formatCount(steps.count)]
      );
    } else {
      figures.push([name, median]);
    }
  } else if (headline) {
    const value = formatQuantity(headline.value, headline.unit ?? '');
    figures.push([headline.label ?? '', value]);
  }
  const wallTime = formatMilliseconds(wall);
  if (typeof wall === 'number' && figures[0]?.[1] !== wallTime) {
    figures.push([trans.__('wall time'), wallTime]);
  }
  return figures;
}

/** The durations of the steps in their order, the medians of neighbours where there are many. */
function Durations(props: {
  durations: (number | null | undefined)[];
}): React.JSX.Element | null {
  const trans = useTrans();
  const known = props.durations.flatMap((value, number) =>
    typeof value === 'number' ? [{ number, value }] : []
  );
  if (known.length < 2 || !known.some(({ value }) => value > 0)) {
    return null;
  }
  const width = Math.ceil(known.length / MAX_BARS);
  const groups = Array.from(
    { length: Math.ceil(known.length / width) },
    (_, index) => known.slice(index * width, (index + 1) * width)
  );
  const heights = groups.map(group => median(group.map(({ value }) => value)));
  const usual = MAX_MEDIANS * median(known.map(({ value }) => value));
  const top = Math.min(Math.max(...heights), usual) || Math.max(...heights);
  return (
    <Columns
      label={trans.__('The durations of %1 steps in order', known.length)}
      columns={groups.map((group, index) => ({
        height: Math.min((heights[index] ?? 0) / top, 1),
        beyond: (heights[index] ?? 0) > top,
        label: toldOf(group, trans)
      }))}
    />
  );
}

function toldOf(
  group: { number: number; value: number }[],
  trans: TranslationBundle
): string {
  const [first, last] = [group[0]?.number ?? 0, group.at(-1)?.number ?? 0];
  const values = group.map(({ value }) => value);
  const usual = formatMilliseconds(median(values));
  return group.length === 1
    ? trans.__('step %1: %2', first, usual)
    : trans.__(
        'steps %1 to %2: median %3, longest %4',
        first,
        last,
        usual,
        formatMilliseconds(Math.max(...values))
      );
}

function median(values: number[]): number {
  const order = [...values].sort((one, other) => one - other);
  const middle = order.length / 2;
  return order.length % 2
    ? (order[Math.floor(middle)] ?? 0)
    : ((order[middle - 1] ?? 0) + (order[middle] ?? 0)) / 2;
}
