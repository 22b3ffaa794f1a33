import { classes } from '@jupyterlab/ui-components';
import React, { useState } from 'react';

/** So many columns are wide, and stand apart. */
const FEW = 24;

/** One column: its part of the highest, and what it stands for. */
export interface IColumnMark {
  height: number;
  label: string;
  /** Higher than the chart. */
  beyond?: boolean;
}

/** A named part of a chart's width, as fractions of it. */
export interface IStretch {
  label: string;
  start: number;
  end: number;
}

/**
 * Numbers as columns beside each other. What is pointed at is told below them; with the keyboard arrows go along.
 */
export function Columns(props: {
  label: string;
  columns: IColumnMark[];
  /** What stands above it, and below its ends. */
  top?: string;
  low?: string;
  high?: string;
  stretches?: IStretch[];
  kind?: string;
}): React.JSX.Element {
  const { label, columns, top, low, high, stretches, kind } = props;
  const [chosen, setChosen] = useState<number | null>(null);
  const told = chosen === null ? undefined : columns[chosen]?.label;
  const onKeyDown = (event: React.KeyboardEvent): void => {
    const last = columns.length - 1;
    const next = {
      ArrowLeft: Math.max((chosen ?? columns.length) - 1, 0),
      ArrowRight: Math.min((chosen ?? -1) + 1, last),
      Home: 0,
      End: last,
      Escape: null
    }[event.key];
    if (next !== undefined) {
      setChosen(next);
      event.preventDefault();
    }
  };
  return (
    <div className={classes('jx-columns', kind)}>
      {top && <div className="jx-ends">{top}</div>}
      <div
        className={classes('jx-chart', columns.length > FEW && 'jx-many')}
        // As a slider that changes nothing: arrows go along, and each value is said.
        role="slider"
        aria-label={label}
        aria-readonly="true"
        aria-valuemin={0}
        aria-valuemax={columns.length - 1}
        aria-valuenow={chosen ?? 0}
        aria-valuetext={told ?? label}
        tabIndex={0}
        onKeyDown={onKeyDown}
        onPointerLeave={() => {
          setChosen(null);
        }}
        onBlur={() => {
          setChosen(null);
        }}
      >
        {columns.map(({ height, beyond }, index) => (
          <span
            key={index}
            className="jx-column"
            onPointerEnter={() => {
              setChosen(index);
            }}
          >
            <span
              className={classes(
                beyond && 'jx-beyond',
                index === chosen && 'jx-chosen'
              )}
              style={{ height: height ? `${Math.max(height * 100, 3)}%` : 0 }}
            />
          </span>
        ))}
      </div>
      {stretches && stretches.length > 0 && <Stretches stretches={stretches} />}
      <div className="jx-ends">
        {told ? (
          <span className="jx-told-column">{told}</span>
        ) : (
          <>
            <span>{low ?? '\u00a0'}</span> <span>{high}</span>
          </>
        )}
      </div>
    </div>
  );
}

function Stretches(props: { stretches: IStretch[] }): React.JSX.Element {
  let reached = 0;
  return (
    <div className="jx-stretches" aria-hidden="true">
      {props.stretches.map(({ label, start, end }, index) => {
        const gap = start - reached;
        reached = end;
        return (
          <React.Fragment key={index}>
            <span style={{ width: `${gap * 100}%` }} />
            <span
              className="jx-stretch"
              style={{ width: `${(end - start) * 100}%` }}
              title={label}
            >
              {label}
            </span>
          </React.Fragment>
        );
      })}
    </div>
  );
}
