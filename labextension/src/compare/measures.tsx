import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IMeasure } from '../api/compare';
import { useTrans } from '../card/actions';
import { formatQuantity } from '../format';
import { Verdict } from './verdict';

const LABEL_PX = 250;
const VALUE_PX = 215;
const LEAST_LABEL_PX = 120;
const LEAST_VALUE_PX = 130;
const GROUPS = ['steps', 'parts', 'run', 'memory', 'sweep'] as const;

/** All quantities, in groups: a row each, a column for each capture, a bar for each value. */
export function Measures(props: {
  measures: IMeasure[];
  names: string[];
}): React.JSX.Element {
  const { measures, names } = props;
  const trans = useTrans();
  return (
    <>
      {GROUPS.map(group => {
        const rows = measures.filter(row => row.group === group);
        return (
          rows.length > 0 && (
            <Group
              key={group}
              title={titleOf(group, trans)}
              rows={rows}
              names={names}
            />
          )
        );
      })}
    </>
  );
}

function titleOf(group: IMeasure['group'], trans: TranslationBundle): string {
  switch (group) {
    case 'steps':
      return trans.__('Steps');
    case 'parts':
      return trans.__('Where the time of the median step goes');
    case 'run':
      return trans.__('Runs');
    case 'memory':
      return trans.__('Memory');
    case 'sweep':
      return trans.__('Sweep, median of each point');
  }
}

function Group(props: {
  title: string;
  rows: IMeasure[];
  names: string[];
}): React.JSX.Element {
  const { title, rows, names } = props;
  return (
    <MeasureTable title={title} names={names}>
      <tbody>
        {rows.map(row => (
          <tr key={row.label}>
            <th scope="row">{row.label}</th>
            {row.values.map((value, index) => (
              <td key={index}>
                <Value row={row} value={value} />
                <Verdict
                  judgement={row.judgements[index] ?? null}
                  unit={row.unit}
                />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </MeasureTable>
  );
}

/** A section with a table: a column for each capture, below its name; the first is the baseline. */
export function MeasureTable(props: {
  title: string;
  names: string[];
  labelPx?: number;
  children: React.ReactNode;
}): React.JSX.Element {
  const { title, names, labelPx = LABEL_PX, children } = props;
  const widest = labelPx + names.length * VALUE_PX;
  const least = LEAST_LABEL_PX + names.length * LEAST_VALUE_PX;
  const share = `${(100 * labelPx) / widest}%`;
  return (
    <section>
      <h3>{title}</h3>
      <div className="jp-JaxProf-wide" tabIndex={0}>
        <table
          className="jp-JaxProf-measures"
          style={{ width: `clamp(${least}px, 100%, ${widest}px)` }}
          aria-label={title}
        >
          <colgroup>
            <col style={{ width: share }} />
            <col span={names.length} />
          </colgroup>
          <Heads names={names} />
          {children}
        </table>
      </div>
    </section>
  );
}

function Heads(props: { names: string[] }): React.JSX.Element {
  const trans = useTrans();
  return (
    <thead>
      <tr>
        <td />
        {props.names.map((name, index) => (
          <th key={index} scope="col">
            <bdi>{name}</bdi>
            {index === 0 && <small>{trans.__('baseline')}</small>}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Value(props: {
  row: IMeasure;
  value: number | null;
}): React.JSX.Element {
  const { row, value } = props;
  if (value === null) {
    return <span className="jp-JaxProf-none">–</span>;
  }
  const most = Math.max(...row.values.map(one => one ?? 0));
  return (
    <>
      {row.unit && (
        <span className="jp-JaxProf-track" aria-hidden>
          <span
            className="jp-JaxProf-bar"
            style={{ width: `${most > 0 ? (100 * value) / most : 0}%` }}
          />
        </span>
      )}
      <span className="jp-JaxProf-value">
        {formatQuantity(value, row.unit)}
      </span>
    </>
  );
}
