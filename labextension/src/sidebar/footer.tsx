import type { TranslationBundle } from '@jupyterlab/translation';
import { copyIcon } from '@jupyterlab/ui-components';
import React from 'react';

import type { IOverLimit } from '../api/types';
import { formatBytes, formatCount } from '../format';
import type { Totals } from './model';
import { Path } from './path';

interface IFooterProps {
  totals: Totals;
  filtered: boolean;
  /** The store's directory; empty while it isn't known. */
  storePath: string;
  trans: TranslationBundle;
  onDeleteOldest: (over: IOverLimit) => void;
  onCopyPath: (path: string) => void;
}

/** How many captures there are, how much of the disk they take and where they lie. */
export function Footer(props: IFooterProps): React.JSX.Element {
  const { totals, filtered, storePath, trans, onCopyPath } = props;
  const count = filtered
    ? trans.__(
        '%1 of %2 captures',
        formatCount(totals.matched),
        formatCount(totals.total)
      )
    : totals.total === 1
      ? trans.__('1 capture')
      : trans.__('%1 captures', formatCount(totals.total));
  const limit = totals.size_limit_bytes;
  const size = formatBytes(totals.size_bytes);
  return (
    <div className="jp-JaxProf-footer">
      {totals.over_limit.bytes > 0 && <OverLimit {...props} />}
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
      {storePath && (
        <button
          className="jp-JaxProf-store"
          aria-label={trans.__('Copy the path %1', storePath)}
          onClick={() => {
            onCopyPath(storePath);
          }}
        >
          <Path path={storePath} />
          <copyIcon.react tag="span" />
        </button>
      )}
    </div>
  );
}

/** The captures take more than the limit: an offer to delete the oldest of those that may be deleted unseen. */
function OverLimit(props: IFooterProps): React.JSX.Element {
  const { totals, trans, onDeleteOldest } = props;
  const over = totals.over_limit;
  return (
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
        <span>{trans.__('All captures are pinned or unreadable.')}</span>
      )}
    </div>
  );
}
