import React from 'react';

import type { IView } from './viewport';
import { fractionOf, ticksOf } from './viewport';

/** Near an end a tick's label stands beside it, to stay in sight. */
const EDGE = 0.06;

/** The times below the lanes, and above them where a finding's ranges are. */
export function Axis(props: {
  view: IView;
  ranges: IView[];
}): React.JSX.Element {
  const { view, ranges } = props;
  const { step, ticks } = ticksOf(view);
  const decimals = Math.max(-Math.floor(Math.log10(step)), 0);
  return (
    <div className="jx-lane">
      <span />
      <span className="jx-axis">
        {ranges.map(({ start, end }, index) => {
          const left = Math.max(fractionOf(start, view), 0);
          const right = Math.min(fractionOf(end, view), 1);
          return (
            left < 1 &&
            right > 0 && (
              <span
                key={index}
                className="jx-place"
                style={{
                  left: `${left * 100}%`,
                  width: `${(right - left) * 100}%`
                }}
              />
            )
          );
        })}
        {ticks.map(tick => {
          const at = fractionOf(tick, view);
          const shift = at < EDGE ? 0 : at > 1 - EDGE ? -100 : -50;
          return (
            <span
              key={tick}
              className="jx-tick"
              style={{ left: `${at * 100}%` }}
            >
              <span style={{ transform: `translateX(${shift}%)` }}>
                {tick.toLocaleString('en-US', {
                  minimumFractionDigits: decimals,
                  maximumFractionDigits: decimals
                })}
              </span>
            </span>
          );
        })}
      </span>
      <span className="jx-lane-value">ms</span>
    </div>
  );
}
