import type { TranslationBundle } from '@jupyterlab/translation';
import { classes } from '@jupyterlab/ui-components';
import React, { useEffect, useState } from 'react';

import type { IHistory, IHistoryEntry } from '../api/compare';
import type { Server } from '../api/server';
import { formatAge, formatPercent, formatQuantity } from '../format';
import { wordsOf } from '../sidebar/problem';
import { kindName } from '../sidebar/row';
import type { IPoint } from './trend';
import { Trend } from './trend';

export interface IHistoryProps {
  id: string;
  /** Whether it was taken of a cell, which an import was not. */
  hasCell: boolean;
  /** Changes whenever the store has changed. */
  version: number;
  server: Server;
  trans: TranslationBundle;
  onOpen: (id: string) => void;
  onCompare: (ids: string[]) => void;
}

/** The captures of the same cell: their value over time, and each with what it is. */
export function History(props: IHistoryProps): React.JSX.Element {
  const { trans, onOpen } = props;
  const { history, failure } = useHistory(props);
  if (failure) {
    return (
      <p role="alert">
        {trans.__('The history could not be loaded. %1', failure)}
      </p>
    );
  }
  if (!history) {
    return <p aria-busy>{trans.__('Loading…')}</p>;
  }
  if (history.captures.length < 2) {
    return (
      <p>
        {props.hasCell
          ? trans.__(
              'There is no other capture of this cell in this notebook. Run the cell again under the magic, and each run is a point here.'
            )
          : trans.__(
              'The history is that of a notebook’s cell, and this capture was not taken of one. To set it beside others, select them in the JaxProf sidebar and choose Compare.'
            )}
      </p>
    );
  }
  const points = pointsOf(history);
  return (
    <>
      <h3>
        {history.label &&
          trans.__('%1, the oldest capture first', history.label)}
      </h3>
      {points.length > 1 ? (
        <Trend
          points={points}
          label={history.label}
          unit={history.unit}
          trans={trans}
          onOpen={onOpen}
        />
      ) : (
        <p>
          {trans.__(
            'No chart is drawn: no other capture has a value that can be compared with this one’s.'
          )}
        </p>
      )}
      {history.searched !== null && (
        <p className="jp-JaxProf-notice">
          {trans.__(
            'The newest %1 captures of the notebook were looked through; it has more.',
            history.searched
          )}
        </p>
      )}
      <Entries {...props} history={history} />
    </>
  );
}

function Entries(
  props: IHistoryProps & { history: IHistory }
): React.JSX.Element {
  const { history, trans, id, onOpen, onCompare } = props;
  const own = history.captures.find(({ match }) => match === 'this');
  const now = new Date();
  return (
    <table className="jp-JaxProf-history">
      <thead>
        <tr>
          <th scope="col">{trans.__('Capture')}</th>
          <th scope="col">{trans.__('Taken')}</th>
          <th scope="col">{trans.__('Value')}</th>
          <th scope="col">{trans.__('Against this one')}</th>
          <th scope="col">{trans.__('Cell')}</th>
          <th scope="col">
            <span className="jp-JaxProf-announcer">{trans.__('Compare')}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {history.captures.map(entry => (
          <tr
            key={entry.id}
            className={classes(entry.match === 'this' && 'jp-mod-this')}
          >
            <td>
              <button
                className="jp-JaxProf-linkButton"
                onClick={() => {
                  onOpen(entry.id);
                }}
              >
                {entry.name}
              </button>
            </td>
            <td title={new Date(entry.created).toLocaleString()}>
              {formatAge(new Date(entry.created), now)}
            </td>
            <td className="jp-JaxProf-number">
              {entry.left_out ? '' : formatQuantity(entry.value, history.unit)}
            </td>
            <td>{entry.left_out || changeOf(entry, own, trans)}</td>
            <td>{matchOf(entry, trans)}</td>
            <td>
              {entry.match !== 'this' && (
                <button
                  className="jp-JaxProf-linkButton"
                  aria-label={trans.__('Compare %1 with this', entry.name)}
                  onClick={() => {
                    // The earlier one is the baseline: identifiers begin with the time.
                    onCompare([entry.id, id].sort());
                  }}
                >
                  {trans.__('Compare')}
                </button>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** How much more or less it was than this capture's; no verdict, which a comparison gives. */
function changeOf(
  { value, match }: IHistoryEntry,
  own: IHistoryEntry | undefined,
  trans: TranslationBundle
): string {
  if (match === 'this' || value === null || !own?.value) {
    return match === 'this' ? '' : '–';
  }
  const ratio = value / own.value;
  if (ratio >= 2 || ratio <= 0.5) {
    return trans.__('%1 × as much', Number(ratio.toPrecision(3)));
  }
  const percent = (ratio - 1) * 100;
  if (Math.abs(percent) < 0.5) {
    return trans.__('as much');
  }
  return percent > 0
    ? trans.__('%1 more', formatPercent(percent))
    : trans.__('%1 less', formatPercent(-percent));
}

function matchOf(
  { match, kind }: IHistoryEntry,
  trans: TranslationBundle
): string {
  switch (match) {
    case 'this':
      return trans.__('this capture');
    case 'same':
      return trans.__('%1 of the same code', kindName(kind, trans));
    case 'similar':
      return trans.__('%1 of similar code', kindName(kind, trans));
  }
}

/** Those that can be compared, the oldest first. */
function pointsOf(history: IHistory): IPoint[] {
  return history.captures
    .filter(({ left_out: leftOut }) => !leftOut)
    .flatMap(entry =>
      entry.value === null ? [] : [{ entry, value: entry.value }]
    )
    .reverse();
}

function useHistory({ id, version, server, trans }: IHistoryProps): {
  history: IHistory | null;
  failure: string;
} {
  const [history, setHistory] = useState<IHistory | null>(null);
  const [failure, setFailure] = useState('');
  useEffect(() => {
    let wanted = true;
    server.client.history(id, { background: true }).then(
      answer => {
        if (wanted) {
          setHistory(answer);
          setFailure('');
        }
      },
      (error: unknown) => {
        if (wanted) {
          setFailure(wordsOf(error, trans));
        }
      }
    );
    return () => {
      wanted = false;
    };
  }, [server, id, version, trans]);
  return { history, failure };
}
