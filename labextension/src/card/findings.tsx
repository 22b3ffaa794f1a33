import type { LabIcon } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useState } from 'react';

import type { IFinding, IFindingRange } from '../api/record';
import { formatInstant, formatMilliseconds, formatShare } from '../format';
import { fineIcon, noteIcon, warningIcon } from '../icons';
import { useTrans } from './actions';
import { Heading, Sentence } from './text';

const MAX_PLACES = 5;

interface ILevel {
  name: string;
  icon: LabIcon;
  label: string;
}

function levelOf(finding: IFinding, trans: TranslationBundle): ILevel {
  switch (finding.level) {
    case 'problem':
      return { name: 'problem', icon: warningIcon, label: trans.__('Problem') };
    case 'fine':
      return { name: 'fine', icon: fineIcon, label: trans.__('Fine') };
    default:
      return { name: 'note', icon: noteIcon, label: trans.__('Note') };
  }
}

interface IFindingsProps {
  findings: IFinding[];
  /** Show ranges in the timeline; null where none is drawn. */
  onShow: ((ranges: IFindingRange[]) => void) | null;
  onOpenPattern: ((pattern: string) => void) | null;
}

/** What was found, the most costly first; the first that is no mere note is open. */
export function Findings(props: IFindingsProps): React.JSX.Element | null {
  const { findings } = props;
  const trans = useTrans();
  if (findings.length === 0) {
    return null;
  }
  const first = findings.findIndex(
    ({ level }) => level === 'problem' || level === 'fine'
  );
  return (
    <>
      <Heading text={trans.__('Findings')} />
      {findings.map((finding, index) => (
        <Finding
          key={index}
          {...props}
          finding={finding}
          initiallyOpen={index === first}
        />
      ))}
    </>
  );
}

function Finding(
  props: IFindingsProps & { finding: IFinding; initiallyOpen: boolean }
): React.JSX.Element {
  const { finding } = props;
  const trans = useTrans();
  const [open, setOpen] = useState(props.initiallyOpen);
  const { name, icon: Icon, label } = levelOf(finding, trans);
  const title = finding.title ?? finding.id ?? '';
  const [brief = ''] = finding.evidence ?? [];
  const cost = costsOf(finding).filter(part => !title.includes(plain(part)));
  return (
    <details
      className={`jx-finding jx-${name}`}
      open={open}
      onToggle={event => {
        setOpen(event.currentTarget.open);
      }}
    >
      <summary>
        <span className="jx-level" title={label}>
          <Icon.react tag="span" aria-hidden="true" />
          <span className="jx-level-name">{label}</span>
        </span>
        <strong className="jx-finding-title">
          <Sentence text={title} />
        </strong>
        {cost.length > 0 && <span className="jx-cost">{cost.join(', ')}</span>}
        <span className="jx-brief">
          <Sentence text={brief} />
        </span>
      </summary>
      {open && <Told {...props} />}
    </details>
  );
}

/** What is told of a finding below its title. */
function Told(
  props: IFindingsProps & { finding: IFinding }
): React.JSX.Element {
  const { finding, onShow, onOpenPattern } = props;
  const trans = useTrans();
  const { evidence, meaning, next, doc } = finding;
  const ranges = finding.ranges ?? [];
  const pattern = doc?.split('/').pop() ?? '';
  return (
    <div className="jx-told">
      {evidence?.slice(1).map((text, index) => (
        <p key={index} className="jx-brief">
          <Sentence text={text} />
        </p>
      ))}
      {meaning && (
        <p>
          <Sentence text={meaning} />
        </p>
      )}
      {next && next.length > 0 && (
        <>
          <p className="jx-label">{trans.__('What to try')}</p>
          <ul>
            {next.map((text, index) => (
              <li key={index}>
                <Sentence text={text} />
              </li>
            ))}
          </ul>
        </>
      )}
      {ranges.length > 0 && (
        <>
          <p className="jx-label">
            {ranges.length < MAX_PLACES
              ? trans.__('Where in the trace')
              : trans.__('Where in the trace, the longest %1', MAX_PLACES)}
          </p>
          <p className="jx-places">{placesOf(ranges).join('; ')}</p>
        </>
      )}
      <p className="jx-actions">
        {onShow && ranges.length > 0 && (
          <button
            className="jx-button"
            onClick={() => {
              onShow(ranges);
            }}
          >
            {trans.__('Show in the timeline')}
          </button>
        )}
        {onOpenPattern && pattern && (
          <button
            className="jx-button"
            onClick={() => {
              onOpenPattern(pattern);
            }}
          >
            {trans.__('About this pattern')}
          </button>
        )}
        {!onOpenPattern && pattern && (
          <span className="jx-document">
            {trans.__('More on this:')}{' '}
            <code>{`%jaxprof explain ${pattern}`}</code>
          </span>
        )}
      </p>
    </div>
  );
}

function costsOf({ lost_ms: lost, share }: IFinding): string[] {
  return [
    ...(lost ? [formatMilliseconds(lost)] : []),
    ...(share ? [formatShare(share)] : [])
  ];
}

/** With plain spaces, as the record's own sentences have them. */
function plain(text: string): string {
  return text.replaceAll('\u00a0', ' ');
}

/** The first ranges in words, those of one label together. */
function placesOf(ranges: IFindingRange[]): string[] {
  const places = new Map<string, string[]>();
  for (const range of ranges.slice(0, MAX_PLACES)) {
    const { start_ms: start, end_ms: end, label } = range;
    if (typeof start !== 'number' || typeof end !== 'number') {
      continue;
    }
    // A short range needs more digits; a moment is told to the microsecond.
    const fine = end > start ? (end - start) * 10 : 1;
    const told = [...new Set([start, end].map(at => formatInstant(at, fine)))];
    const name = label ?? '';
    places.set(name, [...(places.get(name) ?? []), told.join(' – ')]);
  }
  return [...places].map(([label, told]) =>
    label ? `${label}: ${told.join(', ')}` : told.join(', ')
  );
}
