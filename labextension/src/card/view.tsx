import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { ICaptureRecord } from '../api/record';
import { formatCount, formatMilliseconds, formatQuantity } from '../format';
import type { ICardActions, IStored } from './actions';
import { TranslationProvider, useTrans } from './actions';
import { Facts } from './facts';
import { Figures, type Figure } from './figures';
import { Findings } from './findings';
import { Header } from './header';
import { Sentence } from './text';

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

function Body(props: {
  record: ICaptureRecord;
  actions: ICardActions;
}): React.JSX.Element {
  const { record, actions } = props;
  return (
    <>
      <Findings
        findings={record.findings}
        onShow={null}
        onOpenPattern={actions.openPattern}
      />
      <Figures figures={figuresOf(record, useTrans())} />
    </>
  );
}

/** The steps, or else the headline; and the wall time. */
function figuresOf(
  { summary }: ICaptureRecord,
  trans: TranslationBundle
): Figure[] {
  const { headline, steps, wall_ms: wall } = summary;
  const figures: Figure[] = [];
  if (steps?.count) {
    const name = `${steps.name ?? trans.__('step')}${
      steps.marks_dispatch ? ` ${trans.__('(dispatch only)')}` : ''
    }`;
    const median = formatMilliseconds(steps.median_ms);
    if (steps.count > 1) {
      figures.push(
        [trans.__('%1, median', name), median],
        [trans.__('shortest'), formatMilliseconds(steps.min_ms)],
        [trans.__('longest'), formatMilliseconds(steps.max_ms)],
        [trans.__('steps'), formatCount(steps.count)]
      );
    } else {
      figures.push([name, median]);
    }
  } else if (headline) {
    const value = formatQuantity(headline.value, headline.unit ?? '');
    figures.push([headline.label ?? '', value]);
  }
  const wallTime = formatMilliseconds(wall);
  if (typeof wall === 'number' && figures[0]?.[1] !== wallTime) {
    figures.push([trans.__('wall time'), wallTime]);
  }
  return figures;
}
