import type { TranslationBundle } from '@jupyterlab/translation';
import { classes } from '@jupyterlab/ui-components';
import React from 'react';

import type {
  IJudgement,
  IMeasure,
  ISideBySide,
  Verdict as TVerdict
} from '../api/compare';
import { useTrans } from '../card/actions';
import { formatQuantity } from '../format';

/** How a value stands to the baseline's, and whether that tells anything: '19.6 × faster'. */
export function Verdict(props: {
  judgement: IJudgement | null;
  unit: string;
}): React.JSX.Element | null {
  const { judgement, unit } = props;
  const trans = useTrans();
  if (typeof judgement?.ratio !== 'number') {
    return null;
  }
  const { low, high } = judgement;
  const range =
    low !== null && high !== null
      ? trans.__(
          'most likely %1 to %2 times the baseline’s',
          ratioText(low),
          ratioText(high)
        )
      : '';
  return (
    <span
      className={classes('jp-JaxProf-verdict', `jp-mod-${judgement.verdict}`)}
      title={judgement.reason || range}
    >
      {wordsOf(judgement.verdict, judgement.ratio, unit, trans)}
    </span>
  );
}

/** What is faster is so many times as fast; `ratio` is that of the times. */
function wordsOf(
  verdict: TVerdict,
  ratio: number,
  unit: string,
  trans: TranslationBundle
): string {
  switch (verdict) {
    case 'faster':
      return trans.__('%1 × faster', ratioText(1 / ratio));
    case 'slower':
      return trans.__('%1 × slower', ratioText(ratio));
    case 'alike':
      return trans.__('no difference');
    case 'unknown':
      return unit === 'ms'
        ? trans.__('%1 × as long, not judged', ratioText(ratio))
        : trans.__('%1 × as much, not judged', ratioText(ratio));
  }
}

function ratioText(ratio: number): string {
  return String(Number(ratio.toPrecision(3)));
}

/** A sentence on each capture but the baseline: what the difference is, and whether it can be told. */
export function Verdicts(props: {
  found: ISideBySide;
  names: string[];
}): React.JSX.Element {
  const { found, names } = props;
  const trans = useTrans();
  return (
    <ul className="jp-JaxProf-verdicts">
      {names.slice(1).map((name, index) => (
        <li key={index}>{sentenceOf(found, names, name, index + 1, trans)}</li>
      ))}
    </ul>
  );
}

function sentenceOf(
  found: ISideBySide,
  names: string[],
  name: string,
  number: number,
  trans: TranslationBundle
): string {
  const nothing = found.shares_nothing[number];
  if (nothing) {
    return nothing;
  }
  const row = leading(found.measures, number);
  const judgement = row?.judgements[number];
  const base = names[0] ?? '';
  if (!row || typeof judgement?.ratio !== 'number') {
    const reason = judgementReason(found.measures, number);
    return reason
      ? trans.__(
          '%1 against %2: no difference is told: %3.',
          name,
          base,
          reason
        )
      : trans.__('%1 against %2: nothing of theirs can be judged.', name, base);
  }
  const told = trans.__(
    '%1 instead of %2',
    formatQuantity(row.values[number], row.unit),
    formatQuantity(row.values[0], row.unit)
  );
  switch (judgement.verdict) {
    case 'faster':
      return trans.__(
        '%1 is faster than %2: %3 (%4).',
        name,
        base,
        told,
        row.label
      );
    case 'slower':
      return trans.__(
        '%1 is slower than %2: %3 (%4).',
        name,
        base,
        told,
        row.label
      );
    case 'alike':
      return trans.__(
        '%1 against %2: %3 (%4), which is within the spread.',
        name,
        base,
        told,
        row.label
      );
    case 'unknown':
      return trans.__(
        '%1 against %2: %3 (%4), which tells no difference: %5.',
        name,
        base,
        told,
        row.label,
        judgement.reason
      );
  }
}

/** The time to speak of first: one that is judged, else the first that has a ratio. */
function leading(
  measures: readonly IMeasure[],
  number: number
): IMeasure | undefined {
  const told = measures.filter(
    ({ unit, judgements }) =>
      unit === 'ms' && typeof judgements[number]?.ratio === 'number'
  );
  return (
    told.find(({ judgements }) => judgements[number]?.verdict !== 'unknown') ??
    told[0]
  );
}

function judgementReason(
  measures: readonly IMeasure[],
  number: number
): string {
  const row = measures.find(({ judgements }) => judgements[number]?.reason);
  return row?.judgements[number]?.reason ?? '';
}
