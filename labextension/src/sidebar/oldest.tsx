import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { ICaptureRow } from '../api/types';
import { formatAge, formatBytes } from '../format';

/** How many captures are listed before they are deleted. */
export const MAX_LISTED = 8;

/** What is told of a capture before it is deleted. */
export type Doomed = Pick<
  ICaptureRow,
  'id' | 'name' | 'created' | 'disk_bytes'
>;

/** Which captures will be deleted; `count` of them, of which the first few are given. No excess: the user chose them. */
export function Oldest(props: {
  captures: readonly Doomed[];
  count: number;
  excessBytes: number;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { captures, count, excessBytes, trans } = props;
  const now = new Date();
  const more = count - captures.length;
  return (
    <div className="jp-JaxProf-oldest">
      <p>
        {excessBytes > 0
          ? trans.__(
              'The captures take %1 more than the limit. Pinned captures are kept. What is deleted is gone for good.',
              formatBytes(excessBytes)
            )
          : trans.__('Their files are deleted from the disk for good.')}
      </p>
      <ul>
        {captures.map(({ id, name, created, disk_bytes }) => (
          <li key={id}>
            <span>{name}</span>
            <span className="jp-JaxProf-number">
              {formatAge(new Date(created), now)} · {formatBytes(disk_bytes)}
            </span>
          </li>
        ))}
      </ul>
      {more > 0 && <p>{trans.__('and %1 more', more)}</p>}
    </div>
  );
}
