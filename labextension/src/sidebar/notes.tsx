import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useEffect, useRef, useState } from 'react';

import type { Actions, INoted } from './actions';

interface INotesProps {
  row: INoted;
  actions: Actions;
  trans: TranslationBundle;
}

/**
 * The user's notes, saved when the field is left or goes away.
 *
 * A draft that the server refuses stays in the field. Until somebody writes, the field follows what is saved
 * elsewhere, in another browser tab say.
 */
export function Notes(props: INotesProps): React.JSX.Element {
  const { row, actions, trans } = props;
  const [draft, setDraft] = useState<string | null>(null);
  // The notes that the draft was begun from, and what of it was sent: all else was written elsewhere meanwhile.
  const known = useRef(new Set<string>());
  const save = (): void => {
    if (draft === null) {
      return;
    }
    const text = known.current.has(row.notes)
      ? draft
      : joined(row.notes, draft);
    known.current.add(text);
    void actions.saveNotes(row, text).then(saved => {
      if (saved) {
        setDraft(latest => (latest === draft ? null : latest));
      }
    });
  };
  useWhenGone(save);
  return (
    <>
      <h4>{trans.__('Notes')}</h4>
      <textarea
        className="jp-JaxProf-notes jp-mod-styled"
        aria-label={trans.__('Notes')}
        placeholder={trans.__('What was this run about?')}
        value={draft ?? row.notes}
        rows={3}
        onChange={event => {
          if (draft === null) {
            known.current = new Set([row.notes]);
          }
          setDraft(event.currentTarget.value);
        }}
        onBlur={save}
      />
    </>
  );
}

/** Two notes as one, neither lost. */
function joined(first: string, second: string): string {
  return first === second || first === '' ? second : `${first}\n\n${second}`;
}

/** Call the latest `action` when the component goes away: the field that goes with it tells of no blur. */
function useWhenGone(action: () => void): void {
  const latest = useRef(action);
  useEffect(() => {
    latest.current = action;
  });
  useEffect(
    () => () => {
      latest.current();
    },
    []
  );
}
