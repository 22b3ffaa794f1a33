import type { TranslationBundle } from '@jupyterlab/translation';
import { classes } from '@jupyterlab/ui-components';
import React, { useLayoutEffect, useRef, useState } from 'react';

import type { IHistoryEntry } from '../api/compare';
import { formatQuantity } from '../format';

const MOST_WIDTH = 640;
const LEAST_WIDTH = 240;
const HEIGHT = 190;
const LEFT = 64;
const RIGHT = 16;
const TOP = 12;
const BOTTOM = 24;

export interface IPoint {
  entry: IHistoryEntry;
  value: number;
}

/** The values of a cell's captures, the oldest first. Each point opens its capture. */
export function Trend(props: {
  points: IPoint[];
  label: string;
  unit: string;
  trans: TranslationBundle;
  onOpen: (id: string) => void;
}): React.JSX.Element {
  const { points, label, unit, trans, onOpen } = props;
  const [svg, width] = useWidth();
  const top = ceiling(Math.max(...points.map(({ value }) => value)));
  const x = (index: number): number =>
    points.length === 1
      ? (LEFT + width - RIGHT) / 2
      : LEFT + ((width - LEFT - RIGHT) * index) / (points.length - 1);
  const y = (value: number): number =>
    HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * value) / top;
  const line = points.map(({ value }, index) => `${x(index)},${y(value)}`);
  return (
    <svg
      ref={svg}
      className="jp-JaxProf-trend"
      viewBox={`0 0 ${width} ${HEIGHT}`}
      height={HEIGHT}
      role="group"
      aria-label={trans.__('%1 of each capture, the oldest first', label)}
    >
      {[0, top / 2, top].map(value => (
        <g key={value} aria-hidden>
          <line
            className="jp-JaxProf-grid"
            x1={LEFT}
            x2={width - RIGHT}
            y1={y(value)}
            y2={y(value)}
          />
          <text x={LEFT - 8} y={y(value) + 4} textAnchor="end">
            {formatQuantity(value, unit)}
          </text>
        </g>
      ))}
      <g aria-hidden>
        <text x={LEFT} y={HEIGHT - 4}>
          {dateOf(points[0])}
        </text>
        {points.length > 1 && (
          <text x={width - RIGHT} y={HEIGHT - 4} textAnchor="end">
            {dateOf(points.at(-1))}
          </text>
        )}
        <polyline className="jp-JaxProf-trendLine" points={line.join(' ')} />
      </g>
      {points.map(({ entry, value }, index) => {
        const isThis = entry.match === 'this';
        const told = trans.__(
          '%1, %2: %3',
          entry.name,
          new Date(entry.created).toLocaleString(),
          formatQuantity(value, unit)
        );
        const open = (): void => {
          onOpen(entry.id);
        };
        return (
          <g
            key={entry.id}
            className={classes(
              'jp-JaxProf-point',
              isThis && 'jp-mod-this',
              entry.match === 'similar' && 'jp-mod-similar'
            )}
            role="link"
            tabIndex={0}
            aria-label={isThis ? trans.__('%1 (this capture)', told) : told}
            aria-current={isThis || undefined}
            onClick={open}
            onKeyDown={event => {
              if (event.key === 'Enter') {
                open();
              }
            }}
          >
            <title>{told}</title>
            {/* What can be hit is larger than what is drawn. */}
            <circle
              className="jp-mod-target"
              cx={x(index)}
              cy={y(value)}
              r={11}
            />
            <circle cx={x(index)} cy={y(value)} r={isThis ? 6 : 4} />
          </g>
        );
      })}
    </svg>
  );
}

/** The width that there is, in CSS pixels: drawn at its own scale, text and points stay as large as elsewhere. */
function useWidth(): [React.RefObject<SVGSVGElement>, number] {
  const svg = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(MOST_WIDTH);
  useLayoutEffect(() => {
    const node = svg.current;
    if (!node) {
      return;
    }
    const read = (): void => {
      const { clientWidth } = node;
      setWidth(Math.min(Math.max(clientWidth, LEAST_WIDTH), MOST_WIDTH));
    };
    const observer = new ResizeObserver(read);
    observer.observe(node);
    return () => {
      observer.disconnect();
    };
  }, []);
  return [svg, width];
}

function dateOf(point: IPoint | undefined): string {
  return point
    ? new Date(point.entry.created).toLocaleString(undefined, {
        dateStyle: 'medium',
        timeStyle: 'short'
      })
    : '';
}

/** A round number that is no less than `value`, so that the axis is easy to read. */
function ceiling(value: number): number {
  if (value <= 0) {
    return 1;
  }
  const size = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find(
    factor => factor * size >= value
  );
  return (step ?? 10) * size;
}
