import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import type { TranslationBundle } from '@jupyterlab/translation';
import { classes } from '@jupyterlab/ui-components';
import React, { useEffect, useRef } from 'react';

import type { IStoredRecord } from '../api/record';
import type { ICardActions } from '../card/actions';
import { CaptureView } from '../card/view';
import type { Actions } from '../sidebar/actions';
import { Notes } from '../sidebar/notes';
import { ProblemView } from '../sidebar/problem';
import { Code } from './code';
import { Environment } from './environment';
import { Files } from './files';
import { History } from './history';
import type { Loader } from './loader';

export const SECTIONS = [
  'card',
  'code',
  'history',
  'environment',
  'files'
] as const;
export type Section = (typeof SECTIONS)[number];

export interface IPageProps {
  id: string;
  loader: Loader<IStoredRecord>;
  section: Section;
  setSection: (section: Section) => void;
  /** Grows with each answer: what hangs on the store is asked for anew. */
  version: number;
  actions: Actions;
  cardActions: ICardActions;
  languages: IEditorLanguageRegistry | null;
  openCapture: (id: string) => void;
  compare: (ids: string[]) => void;
  trans: TranslationBundle;
}

/** A capture's own page: sections with tabs, of which one is in sight. */
export function Page(props: IPageProps): React.JSX.Element {
  const { loader, trans, section, id } = props;
  const { problem, value: record } = loader;
  if (problem?.status === 404) {
    return (
      <div className="jp-JaxProf-message" role="alert">
        <h3>{trans.__('This capture is gone')}</h3>
        <p>
          {record
            ? trans.__(
                '“%1” was deleted, here or elsewhere. Close this tab.',
                record.name
              )
            : trans.__(
                'There is no capture %1 in the store any more: it was deleted, or this server has another store. Close this tab.',
                id
              )}
        </p>
      </div>
    );
  }
  if (problem && !record) {
    return (
      <ProblemView
        problem={problem}
        onRetry={() => void loader.load()}
        trans={trans}
      />
    );
  }
  if (!record) {
    return (
      <div className="jp-JaxProf-message" aria-busy="true">
        <p>{trans.__('Loading…')}</p>
      </div>
    );
  }
  return (
    <>
      <TabList {...props} record={record} />
      <div
        className="jp-JaxProf-section"
        role="tabpanel"
        id={panelId(id)}
        aria-labelledby={tabId(id, section)}
        tabIndex={0}
      >
        <SectionView {...props} record={record} />
      </div>
    </>
  );
}

interface IRecordProps extends IPageProps {
  record: IStoredRecord;
}

function TabList(props: IRecordProps): React.JSX.Element {
  const { id, record, section, setSection, trans } = props;
  const list = useRef<HTMLDivElement>(null);
  const names: Record<Section, string> = {
    card: trans.__('Card'),
    code: trans.__('Code'),
    history: trans.__('History'),
    environment: trans.__('Environment'),
    files: trans.__('Files (%1)', record.files.length)
  };
  useEffect(() => {
    // The tab was given the keyboard before there was anything in it.
    const widget = list.current?.closest('.jp-JaxProf-capture');
    if (widget && widget === document.activeElement) {
      list.current?.querySelector<HTMLElement>('[aria-selected=true]')?.focus();
    }
  }, []);
  const onKeyDown = (event: React.KeyboardEvent): void => {
    const index = SECTIONS.indexOf(section);
    const last = SECTIONS.length - 1;
    const targets: Record<string, number> = {
      ArrowRight: index === last ? 0 : index + 1,
      ArrowLeft: index === 0 ? last : index - 1,
      Home: 0,
      End: last
    };
    const next = SECTIONS[targets[event.key] ?? -1];
    if (next) {
      event.preventDefault();
      setSection(next);
      list.current
        ?.querySelector<HTMLElement>(`[data-section=${next}]`)
        ?.focus();
    }
  };
  return (
    <div
      ref={list}
      className="jp-JaxProf-tabList"
      role="tablist"
      aria-label={trans.__('Sections of %1', record.name)}
      onKeyDown={onKeyDown}
    >
      {SECTIONS.map(name => (
        <button
          key={name}
          id={tabId(id, name)}
          data-section={name}
          role="tab"
          className={classes(
            'jp-JaxProf-sectionTab',
            name === section && 'jp-mod-selected'
          )}
          aria-selected={name === section}
          aria-controls={panelId(id)}
          tabIndex={name === section ? 0 : -1}
          onClick={() => {
            setSection(name);
          }}
        >
          {names[name]}
        </button>
      ))}
    </div>
  );
}

function SectionView(props: IRecordProps): React.JSX.Element {
  const { record, trans, actions, section } = props;
  switch (section) {
    case 'card':
      return <Card {...props} />;
    case 'code':
      return <Code record={record} languages={props.languages} trans={trans} />;
    case 'history':
      return (
        <History
          id={props.id}
          hasCell={record.cell.trim() !== ''}
          version={props.version}
          server={props.loader.server}
          trans={trans}
          onOpen={props.openCapture}
          onCompare={props.compare}
        />
      );
    case 'environment':
      return <Environment record={record} trans={trans} />;
    case 'files':
      return <Files record={record} actions={actions} trans={trans} />;
  }
}

/** The card, and the user's notes. */
function Card(props: IRecordProps): React.JSX.Element {
  const { record, actions, cardActions, trans } = props;
  return (
    <>
      <CaptureView record={record} actions={cardActions} trans={trans} />
      <div className="jp-JaxProf-ownNotes">
        <Notes key={record.id} row={record} actions={actions} trans={trans} />
      </div>
    </>
  );
}

function tabId(id: string, section: Section): string {
  return `jaxprof-${id}-${section}`;
}

function panelId(id: string): string {
  return `jaxprof-${id}-section`;
}
