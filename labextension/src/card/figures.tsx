import React from 'react';

/** A name and its value. */
export type Figure = [label: string, value: string];

/** Some numbers, the first of them large. */
export function Figures(props: {
  figures: Figure[];
  children?: React.ReactNode;
}): React.JSX.Element | null {
  if (props.figures.length === 0) {
    return null;
  }
  return (
    <div className="jx-figures">
      <dl>
        {props.figures.map(([label, value], index) => (
          <div key={label} className={index ? 'jx-small' : undefined}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {props.children}
    </div>
  );
}

/** A part of a whole; `tone` is its colour's number. */
export interface IShare {
  label: string;
  value: string;
  part: number;
  tone: number;
}

/** A whole in its parts, as one bar and a legend that says the same. */
export function Shares(props: { shares: IShare[] }): React.JSX.Element {
  const shares = props.shares.filter(({ part }) => part > 0);
  const total = shares.reduce((sum, { part }) => sum + part, 0);
  return (
    <>
      <div className="jx-shares" aria-hidden="true">
        {shares.map(({ label, value, part, tone }) => (
          <span
            key={label}
            className={`jx-tone${tone}`}
            style={{ width: `${(part / total) * 100}%` }}
            title={`${label}: ${value}`}
          />
        ))}
      </div>
      <ul className="jx-legend">
        {shares.map(({ label, value, tone }) => (
          <li key={label}>
            <span className={`jx-swatch jx-tone${tone}`} /> {label}{' '}
            <strong>{value}</strong>
          </li>
        ))}
      </ul>
    </>
  );
}

/** A value as a bar beside others. */
export interface IBar {
  label: string;
  value: string;
  length: number;
  remark?: string;
}

/** Values as bars below each other, on one scale. */
export function Bars(props: { bars: IBar[] }): React.JSX.Element {
  const longest = Math.max(...props.bars.map(({ length }) => length)) || 1;
  return (
    <table className="jx-bars">
      <tbody>
        {props.bars.map(({ label, value, length, remark }, index) => (
          <React.Fragment key={index}>
            <tr>
              <th scope="row">
                <bdi>{label}</bdi>
              </th>
              <td>{value}</td>
              <td className="jx-length">
                <div
                  style={{
                    width: `${Math.max((length / longest) * 100, 0.5)}%`
                  }}
                />
              </td>
            </tr>
            {remark && (
              <tr className="jx-note">
                <td colSpan={3}>{remark}</td>
              </tr>
            )}
          </React.Fragment>
        ))}
      </tbody>
    </table>
  );
}
