import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { ICaptureRecord } from '../api/record';
import type { ICardActions, IStored } from './actions';
import { TranslationProvider } from './actions';
import { Facts } from './facts';
import { Header } from './header';
import { Memory } from './memory';
import { Sweep } from './sweep';
import { Sentence } from './text';
import { Timed } from './timed';
import { Traced } from './traced';

export interface ICaptureViewProps {
  record: ICaptureRecord;
  actions: ICardActions;
  trans: TranslationBundle;
  /** What the store says of it now; by default what the record says. */
  stored?: IStored;
}

/** A capture, whole: what was found, where the time and the memory went, and what can be done with it. */
export function CaptureView(props: ICaptureViewProps): React.JSX.Element {
  const { record, actions, trans } = props;
  const stored = props.stored ?? {
    name: record.name,
    pinned: record.pinned,
    lost: ''
  };
  const { sentence } = record.summary;
  return (
    <TranslationProvider value={trans}>
      <section
        className="jaxprof-card jx-live"
        aria-label={trans.__('Capture %1', stored.name)}
      >
        {sentence && (
          <p className="jx-sentence">
            <Sentence text={sentence} />
          </p>
        )}
        <Header record={record} stored={stored} actions={actions} />
        {record.reason && (
          <p className="jx-reason">
            <Sentence text={record.reason} />
          </p>
        )}
        <Body record={record} actions={actions} />
        <Facts record={record} />
      </section>
    </TranslationProvider>
  );
}

/** What is peculiar to the kind; a kind of a later version shows what it has of a trace's parts. */
function Body(props: {
  record: ICaptureRecord;
  actions: ICardActions;
}): React.JSX.Element {
  const { record, actions } = props;
  const { summary } = record;
  switch (record.kind) {
    case 'time':
      return <Timed summary={summary} />;
    case 'memory':
      return <Memory summary={summary} />;
    case 'sweep':
      return <Sweep sweep={summary.sweep ?? {}} />;
    default:
      return <Traced record={record} actions={actions} />;
  }
}
