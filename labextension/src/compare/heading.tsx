import { closeIcon, HTMLSelect, refreshIcon } from '@jupyterlab/ui-components';
import React, { useEffect, useState } from 'react';

import type { IComparedCapture } from '../api/compare';
import type { Server } from '../api/server';
import { useTrans } from '../card/actions';
import { formatAge } from '../format';
import { kindIcon } from '../icons';
import { kindName } from '../sidebar/row';

/** As many as the server compares at a time. */
const MOST = 12;
const OFFERED = 60;

export interface IHeadingProps {
  ids: readonly string[];
  /** Those that are known, in the order of `ids`. */
  captures: readonly IComparedCapture[];
  names: readonly string[];
  server: Server;
  isLoading: boolean;
  setIds: (ids: string[]) => void;
  openCapture: (id: string) => void;
  onRefresh: () => void;
}

/** Which captures are compared; the first is the baseline. */
export function Heading(props: IHeadingProps): React.JSX.Element {
  const { ids, captures, setIds, isLoading } = props;
  const trans = useTrans();
  return (
    <div className="jp-JaxProf-compareHead">
      <ol aria-label={trans.__('Captures that are compared')}>
        {captures.map((capture, index) => (
          <Capture
            key={capture.id}
            {...props}
            capture={capture}
            index={index}
          />
        ))}
      </ol>
      <div className="jp-JaxProf-buttons">
        {ids.length === 2 && (
          <button
            className="jp-JaxProf-button"
            onClick={() => {
              setIds([...ids].reverse());
            }}
          >
            {trans.__('Swap')}
          </button>
        )}
        {ids.length < MOST && <Add {...props} />}
        <button
          className="jp-JaxProf-iconButton"
          title={trans.__('Compare anew')}
          aria-label={trans.__('Compare anew')}
          onClick={props.onRefresh}
        >
          <refreshIcon.react tag="span" />
        </button>
        <span role="status">{isLoading ? trans.__('Comparing…') : ''}</span>
      </div>
    </div>
  );
}

function Capture(
  props: IHeadingProps & { capture: IComparedCapture; index: number }
): React.JSX.Element {
  const { ids, names, capture, index, setIds, openCapture } = props;
  const trans = useTrans();
  const Icon = kindIcon(capture.kind);
  const name = names[index] ?? capture.name;
  const rest = ids.filter(id => id !== capture.id);
  return (
    <li>
      <Icon.react tag="span" title={kindName(capture.kind, trans)} />
      <button
        className="jp-JaxProf-linkButton"
        title={trans.__('Open the capture')}
        onClick={() => {
          openCapture(capture.id);
        }}
      >
        {name}
      </button>
      <span title={new Date(capture.created).toLocaleString()}>
        {formatAge(new Date(capture.created), new Date())}
      </span>
      {capture.status !== 'ok' && (
        <span title={capture.reason}>{capture.status}</span>
      )}
      {index === 0 ? (
        <b>{trans.__('baseline')}</b>
      ) : (
        <button
          className="jp-JaxProf-linkButton"
          aria-label={trans.__('Make %1 the baseline', name)}
          onClick={() => {
            setIds([capture.id, ...rest]);
          }}
        >
          {trans.__('make baseline')}
        </button>
      )}
      {ids.length > 2 && (
        <button
          className="jp-JaxProf-iconButton"
          title={trans.__('Leave out')}
          aria-label={trans.__('Leave %1 out', name)}
          onClick={() => {
            setIds(rest);
          }}
        >
          <closeIcon.react tag="span" />
        </button>
      )}
    </li>
  );
}

interface IOffer {
  id: string;
  text: string;
}

/** Another capture: those of the same cell first, then the newest. */
function Add(props: IHeadingProps): React.JSX.Element {
  const { ids, server, setIds } = props;
  const trans = useTrans();
  const { same, others } = useOffers(ids, server);
  return (
    <HTMLSelect
      className="jp-JaxProf-add"
      aria-label={trans.__('Add a capture to the comparison')}
      value=""
      onChange={event => {
        setIds([...ids, event.currentTarget.value]);
      }}
    >
      <option value="">
        {ids.length < 2
          ? trans.__('Choose what to compare with…')
          : trans.__('Add a capture…')}
      </option>
      {same.length > 0 && (
        <optgroup label={trans.__('Of the same cell')}>
          {same.map(({ id, text }) => (
            <option key={id} value={id}>
              {text}
            </option>
          ))}
        </optgroup>
      )}
      {others.length > 0 && (
        <optgroup label={trans.__('The newest')}>
          {others.map(({ id, text }) => (
            <option key={id} value={id}>
              {text}
            </option>
          ))}
        </optgroup>
      )}
    </HTMLSelect>
  );
}

/** What may be added; nothing where the server doesn't say. */
function useOffers(
  ids: readonly string[],
  { client }: Server
): { same: IOffer[]; others: IOffer[] } {
  const trans = useTrans();
  const [offers, setOffers] = useState<{ same: IOffer[]; others: IOffer[] }>({
    same: [],
    others: []
  });
  const key = ids.join();
  useEffect(() => {
    let wanted = true;
    const taken = new Set(key.split(','));
    const now = new Date();
    const load = async (): Promise<void> => {
      const query = { kind: '', notebook: '', text: '' };
      const options = { background: true };
      const [history, page] = await Promise.all([
        client.history(key.split(',')[0] ?? '', options),
        client.captures(query, 0, OFFERED, options)
      ]);
      const offer = (one: {
        id: string;
        name: string;
        kind: string;
        created: string;
      }): IOffer => ({
        id: one.id,
        text: `${one.name} – ${kindName(one.kind, trans)}, ${formatAge(new Date(one.created), now)}`
      });
      const same = history.captures.filter(({ id }) => !taken.has(id));
      same.forEach(({ id }) => taken.add(id));
      const others = page.captures.filter(
        ({ id, schema }) => schema !== null && !taken.has(id)
      );
      if (wanted) {
        setOffers({ same: same.map(offer), others: others.map(offer) });
      }
    };
    load().catch((error: unknown) => {
      console.warn('No captures are offered for the comparison.', error);
    });
    return () => {
      wanted = false;
    };
  }, [key, client, trans]);
  return offers;
}
