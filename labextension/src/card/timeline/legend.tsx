import React from 'react';

import { formatMilliseconds } from '../../format';
import { useTrans } from '../actions';
import type { ICause } from './lanes';

const SHOWN = 4;

/** What the colours of the gaps mean, and how much time each cause took. */
export function Legend(props: { causes: ICause[] }): React.JSX.Element | null {
  const { causes } = props;
  const trans = useTrans();
  if (causes.length === 0) {
    return null;
  }
  const rest = causes.slice(SHOWN);
  const shown = causes.slice(0, SHOWN);
  if (rest.length > 0) {
    shown.push({
      name: trans.__('other causes'),
      total_ms: rest.reduce((sum, { total_ms: total }) => sum + total, 0),
      gaps: rest.reduce((sum, { gaps }) => sum + gaps, 0),
      tone: SHOWN
    });
  }
  return (
    <ul className="jx-legend">
      <li>{trans.__('idle gaps:')}</li>
      {shown.map(({ name, total_ms: total, gaps, tone }) => (
        <li key={name}>
          <span className={`jx-swatch jx-gap${tone}`} />{' '}
          {name || trans.__('cause not known')}{' '}
          <strong>
            {gaps === 1
              ? formatMilliseconds(total)
              : trans.__('%1 in %2 gaps', formatMilliseconds(total), gaps)}
          </strong>
        </li>
      ))}
    </ul>
  );
}
