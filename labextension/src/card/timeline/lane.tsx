import React, { memo } from 'react';

import { formatShare } from '../../format';
import type { ICause, ILane, ISpan } from './lanes';
import type { IView } from './viewport';
import { fractionOf } from './viewport';

const WIDTH = 1000;
const HEIGHT = 12;
/** What is shorter would not be seen. */
const LEAST = 1.5;
/** What is closer together is drawn as one. */
const FINEST = 0.7;
/** Lanes of many short spans that are drawn as one are paler. */
const DENSE = 0.95;
const PALEST = 0.3;
/** A name is written into what has this part of the width for each of its characters, and for more of them. */
const CHARACTER = 0.011;
const FEWEST = 3;
const KINDS = ['steps', 'compiles', 'device', 'copies', 'collectives', 'host'];
/** Kinds whose spans have names. */
const NAMED = ['steps', 'compiles', 'host'];

interface ILaneProps {
  lane: ILane;
  view: IView;
  causes: ICause[];
  /** What is pointed at or has the keyboard. */
  marked: ISpan | null;
  /** Times that a finding speaks of. */
  ranges: IView[];
  /** With where in the width something happened, from 0 to 1. */
  onPointer: (lane: ILane, event: React.PointerEvent<HTMLElement>) => void;
}

/** One lane: what it is called, what it did when, and how busy it was. */
export const Lane = memo(function Lane(props: ILaneProps) {
  const { lane, view, onPointer } = props;
  const report = (event: React.PointerEvent<HTMLElement>): void => {
    onPointer(lane, event);
  };
  return (
    <div className="jx-lane">
      <span
        className={`jx-lane-name${lane.isPart ? ' jx-part' : ''}`}
        title={lane.label}
      >
        <bdi>{lane.shortLabel}</bdi>
      </span>
      <div
        className="jx-track"
        onPointerDown={report}
        onPointerMove={report}
        onPointerUp={report}
        onPointerCancel={report}
        onPointerLeave={report}
      >
        <Shapes {...props} />
        {NAMED.includes(lane.kind) &&
          namesOf(lane.spans, view).map(({ span, left, width }) => (
            <span
              key={span.start}
              className="jx-lane-label"
              style={{ left: `${left * 100}%`, width: `${width * 100}%` }}
            >
              {nameOf(lane, span)}
            </span>
          ))}
      </div>
      <span className="jx-lane-value">
        {lane.busyShare === null ? '' : formatShare(lane.busyShare)}
      </span>
    </div>
  );
});

function Shapes(props: ILaneProps): React.JSX.Element {
  const { lane, view, causes, marked, ranges } = props;
  const kind = KINDS.includes(lane.kind) ? lane.kind : 'host';
  const tones = new Map(causes.map(({ name, tone }) => [name, tone]));
  const shade =
    lane.density < DENSE ? Math.max(lane.density, PALEST) : undefined;
  return (
    <svg
      className={`jx-${kind}`}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {lane.gaps.map(gap => (
        <Box
          key={gap.start}
          span={gap}
          view={view}
          kind={`jx-gap${tones.get(gap.cause ?? '') ?? ''}`}
        />
      ))}
      {pathsOf(lane, view).map((path, index) => (
        <path
          key={index}
          d={path}
          className={index ? 'jx-other' : undefined}
          opacity={shade}
        />
      ))}
      {ranges.map((range, index) => (
        <Box key={index} span={range} view={view} kind="jx-range" />
      ))}
      {marked && <Box span={marked} view={view} kind="jx-marked" />}
    </svg>
  );
}

function Box(props: {
  span: IView;
  view: IView;
  kind: string;
}): React.JSX.Element | null {
  const place = placeOf(props.span, props.view);
  return (
    place && (
      <rect
        className={props.kind}
        x={place.x}
        y={0}
        width={place.width}
        height={HEIGHT}
      />
    )
  );
}

/** Where a span is drawn; null where it is out of sight. */
function placeOf(
  span: IView,
  view: IView
): { x: number; width: number } | null {
  const first = fractionOf(span.start, view);
  const last = fractionOf(span.end, view);
  if (last < 0 || first > 1) {
    return null;
  }
  const x = Math.min(Math.max(first, 0) * WIDTH, WIDTH - LEAST);
  return { x, width: Math.max(Math.min(last, 1) * WIDTH - x, LEAST) };
}

/** All spans as one path, or as two where neighbours must be told apart. */
function pathsOf(lane: ILane, view: IView): string[] {
  const apart = lane.kind === 'steps';
  const paths: string[][] = apart ? [[], []] : [[]];
  let [from, to, count] = [0, -1, 0];
  const draw = (): void => {
    if (to >= 0) {
      const length = Math.max(to - from, LEAST);
      paths[count % paths.length]?.push(
        `M${from.toFixed(2)} 6h${length.toFixed(2)}`
      );
      count += 1;
    }
  };
  for (const [index, span] of lane.spans.entries()) {
    const place = placeOf(span, view);
    if (!place) {
      continue;
    }
    const end = place.x + place.width;
    if (
      to >= 0 &&
      place.x - to < FINEST &&
      (!apart || end - from < LEAST * 2)
    ) {
      to = Math.max(to, end);
    } else {
      draw();
      [from, to] = [place.x, end];
      // A step keeps its shade wherever the view begins.
      count = apart ? index : count;
    }
  }
  draw();
  return paths.map(path => path.join(''));
}

/** The spans with room for their names, none of them in another's way. */
function namesOf(
  spans: ISpan[],
  view: IView
): { span: ISpan; left: number; width: number }[] {
  const found: { span: ISpan; left: number; width: number }[] = [];
  let reached = 0;
  for (const span of spans) {
    const left = Math.max(fractionOf(span.start, view), 0);
    const width = Math.min(fractionOf(span.end, view), 1) - left;
    const room = Math.min(span.label.length, FEWEST) * CHARACTER;
    if (span.label && left >= reached && width > room) {
      found.push({ span, left, width });
      reached = left + width;
    }
  }
  return found;
}

/** A step's number alone where there is no room for more than that. */
function nameOf(lane: ILane, { label }: ISpan): string {
  return lane.kind === 'steps' ? label.slice(lane.label.length + 1) : label;
}
