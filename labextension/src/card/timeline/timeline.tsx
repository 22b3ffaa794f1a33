import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useEffect, useMemo, useRef, useState } from 'react';

import type { IFindingRange, IRecordTimeline } from '../../api/record';
import { formatInstant, formatMilliseconds } from '../../format';
import { resetIcon, zoomInIcon, zoomOutIcon } from '../../icons';
import { useTrans } from '../actions';
import { IconButton } from '../buttons';
import { Axis } from './axis';
import { Lane } from './lane';
import { Legend } from './legend';
import type { IDrawing, ILane, ISpan } from './lanes';
import { readDrawing, spanAt, stopsOf } from './lanes';
import { usePointer } from './pointer';
import type { IView } from './viewport';
import { fitted, following, isWhole, panned, zoomed } from './viewport';

const STEP = 0.5;
const PAN = 0.25;
/** What is not farther than this from the pointer is meant. */
const NEAR_PX = 4;
/** Lanes in sight before more are asked for. */
const FEW_LANES = 16;

/** A finding's times, and how often it was asked to show them. */
export interface IShown {
  ranges: IFindingRange[];
}

interface IFocus {
  lane: ILane;
  span: ISpan;
}

/** The timeline of a trace or report; nothing where nothing was drawn. */
export function Timeline(props: {
  timeline: IRecordTimeline;
  shown: IShown | null;
}): React.JSX.Element | null {
  const drawing = useMemo(() => readDrawing(props.timeline), [props.timeline]);
  return drawing && <Drawing drawing={drawing} shown={props.shown} />;
}

function Drawing(props: {
  drawing: IDrawing;
  shown: IShown | null;
}): React.JSX.Element {
  const { drawing, shown } = props;
  const { whole, causes } = drawing;
  const trans = useTrans();
  const [view, setView] = useState(whole);
  const [all, setAll] = useState(false);
  const [focus, setFocus] = useState<IFocus | null>(null);
  const [hover, setHover] = useState<IFocus | null>(null);
  const element = useRef<HTMLDivElement>(null);
  const lanes = all ? drawing.lanes : drawing.lanes.slice(0, FEW_LANES);
  const ranges = useMemo(() => rangesOf(shown?.ranges ?? []), [shown]);

  useWheel(element, whole, setView);
  useEffect(() => {
    const [first] = ranges;
    if (first) {
      const end = Math.max(...ranges.map(range => range.end));
      setView(fitted({ start: first.start, end }, whole));
      element.current?.focus({ preventScroll: true });
      element.current?.scrollIntoView({ block: 'nearest' });
    }
  }, [ranges, whole]);

  const pointed = useRef<ILane | null>(null);
  const find = (fraction: number, width: number): IFocus | null => {
    const length = view.end - view.start;
    const lane = pointed.current;
    const time = view.start + fraction * length;
    const span = lane && spanAt(lane, time, (NEAR_PX / width) * length);
    return span && { lane, span };
  };
  const onPointer = usePointer({
    onDrag: fraction => {
      setView(now => panned(now, -fraction, whole));
    },
    onHover: (fraction, width) => {
      setHover(find(fraction, width));
    },
    onClick: (fraction, width) => {
      setFocus(find(fraction, width));
    },
    onLeave: () => {
      setHover(null);
    }
  });

  const zoom = (factor: number): void => {
    setView(now => zoomed(now, factor, 0.5, whole));
  };
  const stop = (next: IFocus | null): void => {
    setFocus(next);
    if (next) {
      setView(now => following(now, next.span, whole));
    }
  };
  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const { key, shiftKey: shift } = event;
    if (key === '+' || key === '=') {
      zoom(STEP);
    } else if (key === '-') {
      zoom(1 / STEP);
    } else if (key === '0') {
      setView(whole);
    } else if (shift && (key === 'ArrowLeft' || key === 'ArrowRight')) {
      setView(now => panned(now, key === 'ArrowLeft' ? -PAN : PAN, whole));
    } else if (key === 'Enter' && focus) {
      setView(fitted(focus.span, whole));
    } else if (key === 'Escape' && focus) {
      setFocus(null);
    } else if (key in MOVES) {
      stop(moved(lanes, focus, view, MOVES[key] ?? [0, 0]));
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  const told = hover ?? focus;
  return (
    <div className="jx-timeline">
      <div className="jx-timeline-head">
        <p className="jx-heading">{trans.__('Timeline')}</p>
        <Tools
          isWhole={isWhole(view, whole)}
          onZoom={zoom}
          onReset={() => {
            setView(whole);
          }}
        />
      </div>
      <div
        ref={element}
        className="jx-drawing"
        role="application"
        aria-roledescription={trans.__('timeline')}
        aria-label={trans.__(
          'Timeline of %1, in %2 lanes. Arrows go from one interval to the next and from lane to lane, plus and minus zoom, with Shift arrows move, Enter shows an interval alone, 0 shows all.',
          formatMilliseconds(whole.end - whole.start),
          lanes.length
        )}
        tabIndex={0}
        onKeyDown={onKeyDown}
        onDoubleClick={() => {
          if (focus) {
            setView(fitted(focus.span, whole));
          }
        }}
      >
        {lanes.map((lane, index) => (
          <Lane
            key={index}
            lane={lane}
            view={view}
            causes={causes}
            marked={told?.lane === lane ? told.span : null}
            ranges={ranges}
            onPointer={(which, event) => {
              pointed.current = which;
              onPointer(event);
            }}
          />
        ))}
        <Axis view={view} ranges={ranges} />
      </div>
      <p className="jx-detail" aria-live="polite">
        {told ? (
          toldOf(told, whole, trans)
        ) : (
          <span className="jx-hint">
            {trans.__(
              'Point at something to see what it is. Ctrl and the wheel zoom, dragging moves. Keys: + and − zoom, arrows go from one to the next, 0 shows all.'
            )}
          </span>
        )}
      </p>
      {drawing.lanes.length > FEW_LANES && (
        <button
          className="jx-link-button"
          onClick={() => {
            setAll(!all);
          }}
        >
          {all
            ? trans.__('Show the first %1 lanes', FEW_LANES)
            : trans.__('Show all %1 lanes', drawing.lanes.length)}
        </button>
      )}
      <Legend causes={causes} />
    </div>
  );
}

function Tools(props: {
  isWhole: boolean;
  onZoom: (factor: number) => void;
  onReset: () => void;
}): React.JSX.Element {
  const trans = useTrans();
  return (
    <div
      className="jx-buttons"
      role="toolbar"
      aria-label={trans.__('What of the timeline is in sight')}
    >
      <IconButton
        icon={zoomInIcon}
        label={trans.__('Zoom in (+)')}
        onClick={() => {
          props.onZoom(STEP);
        }}
      />
      <IconButton
        icon={zoomOutIcon}
        label={trans.__('Zoom out (−)')}
        disabled={props.isWhole}
        onClick={() => {
          props.onZoom(1 / STEP);
        }}
      />
      <IconButton
        icon={resetIcon}
        label={trans.__('Show all of it (0)')}
        disabled={props.isWhole}
        onClick={props.onReset}
      />
    </div>
  );
}

/** Zoom with Ctrl or Command, pan with Shift; a plain wheel scrolls the notebook. */
function useWheel(
  element: React.RefObject<HTMLElement>,
  whole: IView,
  setView: React.Dispatch<React.SetStateAction<IView>>
): void {
  useEffect(() => {
    const node = element.current;
    const onWheel = (event: WheelEvent): void => {
      const track = (event.target as Element).closest('.jx-track');
      const delta = event.deltaY || event.deltaX;
      if (!track || !(event.ctrlKey || event.metaKey || event.shiftKey)) {
        return;
      }
      event.preventDefault();
      const { left, width } = track.getBoundingClientRect();
      setView(now =>
        event.shiftKey
          ? panned(now, delta / width, whole)
          : zoomed(
              now,
              Math.exp(delta / 300),
              (event.clientX - left) / width,
              whole
            )
      );
    };
    // React's own listener is passive: it could not keep the page from zooming.
    node?.addEventListener('wheel', onWheel, { passive: false });
    return () => {
      node?.removeEventListener('wheel', onWheel);
    };
  }, [element, whole, setView]);
}

/** By how many lanes and intervals a key moves. */
const MOVES: Record<string, [lanes: number, spans: number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  Home: [0, -Infinity],
  End: [0, Infinity]
};

/** The interval that a key leads to; the first one in sight to begin with. */
function moved(
  lanes: ILane[],
  focus: IFocus | null,
  view: IView,
  [down, right]: [number, number]
): IFocus | null {
  const at = focus ? lanes.indexOf(focus.lane) : -1;
  const lane = lanes[Math.min(Math.max(at + down, 0), lanes.length - 1)];
  if (!lane) {
    return null;
  }
  const stops = stopsOf(lane);
  let index: number;
  if (!focus || down !== 0) {
    const near = focus?.span.start ?? view.start;
    index = Math.max(
      stops.findIndex(({ end }) => end >= near),
      0
    );
  } else {
    index = stops.indexOf(focus.span) + right;
  }
  const span = stops[Math.min(Math.max(index, 0), stops.length - 1)];
  return span ? { lane, span } : null;
}

/** 'GPU 0: idle 28.5 ms (load_data), 1,204.35 – 1,232.85 ms' */
function toldOf(
  { lane, span }: IFocus,
  whole: IView,
  trans: TranslationBundle
): string {
  const length = formatMilliseconds(span.end - span.start);
  const what =
    span.cause === null
      ? span.label
        ? trans.__('%1, %2', span.label, length)
        : trans.__('at work for %1', length)
      : trans.__('idle for %1, because of: %2', length, span.cause || '–');
  const fine = Math.max(
    Math.min((span.end - span.start) * 10, whole.end - whole.start),
    1e-3
  );
  return trans.__(
    '%1: %2, from %3 to %4',
    lane.label,
    what,
    formatInstant(span.start, fine),
    formatInstant(span.end, fine)
  );
}

/** A finding's ranges that are times, in their order. */
function rangesOf(ranges: IFindingRange[]): IView[] {
  const found: IView[] = [];
  for (const { start_ms: start, end_ms: end } of ranges) {
    if (typeof start === 'number' && typeof end === 'number' && start <= end) {
      found.push({ start, end });
    }
  }
  return found.sort((one, other) => one.start - other.start);
}
