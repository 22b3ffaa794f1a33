import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IOverLimit } from '../api/types';
import { formatBytes } from '../format';
import type { Totals } from './model';

/** How many captures there are and how much of the disk they take, with an offer when it is too much. */
export function Footer(props: {
  totals: Totals;
  filtered: boolean;
  trans: TranslationBundle;
  onDeleteOldest: (over: IOverLimit) => void;
}): React.JSX.Element {
  const { totals, filtered, trans, onDeleteOldest } = props;
  const count = filtered
    ? trans.__('%1 of %2 captures', totals.matched, totals.total)
    : trans._n('%1 capture', '%1 captures', totals.total);
  const limit = totals.size_limit_bytes;
  const size = formatBytes(totals.size_bytes);
  const over = totals.over_limit;
  return (
    <div className="jp-JaxProf-footer">
      {over.bytes > 0 && (
        <div className="jp-JaxProf-over" role="status">
          <span>{trans.__('%1 over the limit.', formatBytes(over.bytes))}</span>
          {over.ids.length > 0 ? (
            <button
              className="jp-JaxProf-button"
              onClick={() => {
                onDeleteOldest(over);
              }}
            >
              {trans._n(
                'Delete the oldest one…',
                'Delete the oldest %1…',
                over.ids.length
              )}
            </button>
          ) : (
            <span>{trans.__('All captures are pinned.')}</span>
          )}
        </div>
      )}
      {limit !== null && (
        <meter
          className="jp-JaxProf-meter"
          min={0}
          max={limit}
          high={limit * 0.9}
          value={Math.min(totals.size_bytes, limit)}
          aria-label={trans.__('Disk space used by captures')}
        />
      )}
      <div className="jp-JaxProf-totals">
        <span>{count}</span>
        <span>
          {limit === null
            ? size
            : trans.__('%1 of %2', size, formatBytes(limit))}
        </span>
      </div>
    </div>
  );
}
