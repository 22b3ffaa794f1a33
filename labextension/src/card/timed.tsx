import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IComparison, IFirstRun, ISamples } from '../api/measured';
import type { IRecordSummary } from '../api/record';
import { formatCount, formatMilliseconds } from '../format';
import { useTrans } from './actions';
import { Columns } from './chart';
import { Compiles, Transfers } from './compiles';
import type { IBar } from './figures';
import { Bars, Figures, Shares } from './figures';
import { MemoryChange } from './memory-change';
import { Heading, Remark } from './text';

/** The first run's parts, the cached runs, comparisons, compiles, transfers and memory. */
export function Timed(props: { summary: IRecordSummary }): React.JSX.Element {
  const { summary } = props;
  return (
    <>
      <FirstRun first={summary.first ?? {}} autotuning={!!summary.autotuning} />
      <Cached summary={summary} />
      <Compared rows={summary.comparison ?? []} />
      <Compiles summary={summary} />
      <Transfers summary={summary} />
      {summary.memory && <MemoryChange memory={summary.memory} />}
    </>
  );
}

function FirstRun(props: {
  first: IFirstRun;
  autotuning: boolean;
}): React.JSX.Element | null {
  const { first, autotuning } = props;
  const trans = useTrans();
  const compiling = autotuning
    ? trans.__('XLA compiling and autotuning')
    : trans.__('XLA compiling');
  const spent: [label: string, ms: number][] = [
    [trans.__('tracing'), first.trace_ms ?? 0],
    [trans.__('lowering'), first.lower_ms ?? 0],
    [compiling, first.compile_ms ?? 0],
    [trans.__('reading the compilation cache'), first.cache_read_ms ?? 0],
    [trans.__('running'), first.run_ms ?? 0]
  ];
  const total = spent.reduce((sum, [, ms]) => sum + ms, 0);
  if (total <= 0) {
    return null;
  }
  const pauses = first.gc_ms ?? 0;
  return (
    <>
      <Heading
        text={trans.__('First run, %1', formatMilliseconds(first.total_ms))}
      />
      <Shares
        shares={spent.map(([label, ms], tone) => ({
          label,
          value: formatMilliseconds(ms),
          part: ms,
          tone
        }))}
      />
      <Remark
        text={trans.__(
          'Returned to Python after %1, device done after %2.',
          formatMilliseconds(first.returned_ms),
          formatMilliseconds(first.total_ms)
        )}
      />
      {pauses > 0.05 * total && (
        <Remark
          text={trans.__(
            'Python’s garbage collector took %1 of it.',
            formatMilliseconds(pauses)
          )}
        />
      )}
    </>
  );
}

function Cached(props: { summary: IRecordSummary }): React.JSX.Element | null {
  const { cached, cached_returned: returned, repeats } = props.summary;
  const trans = useTrans();
  if (!cached) {
    return null;
  }
  const loops = repeats?.loops ?? 1;
  return (
    <>
      <Heading
        text={
          loops > 1
            ? trans.__('Run again, %1 runs a sample', formatCount(loops))
            : trans.__('Run again')
        }
      />
      <Figures
        figures={[
          [trans.__('median'), formatMilliseconds(cached.median)],
          [
            trans.__('interquartile range'),
            trans.__(
              '%1 to %2',
              formatMilliseconds(cached.lower_quartile),
              formatMilliseconds(cached.upper_quartile)
            )
          ],
          [trans.__('minimum'), formatMilliseconds(cached.minimum)],
          ['p20', formatMilliseconds(cached.p20)],
          [trans.__('samples'), formatCount(cached.count)]
        ]}
      />
      <Histogram cached={cached} />
      {returned && (
        <Remark
          text={trans.__(
            loops === 1
              ? 'Returned to Python after %1 a run, device done after %2 (medians).'
              : 'Returned to Python after %1 a run, device done after %2 (medians; %3 runs in a row, then the wait).',
            formatMilliseconds(returned.median),
            formatMilliseconds(cached.median),
            formatCount(loops)
          )}
        />
      )}
    </>
  );
}

function Histogram(props: { cached: ISamples }): React.JSX.Element | null {
  const { histogram, maximum } = props.cached;
  const trans = useTrans();
  const counts = (histogram?.counts ?? []).filter(
    count => typeof count === 'number'
  );
  const edges = histogram?.edges ?? [];
  const most = Math.max(...counts);
  if (counts.length < 2 || edges.length !== counts.length + 1 || most <= 0) {
    return null;
  }
  const low = formatMilliseconds(edges[0]);
  const high = formatMilliseconds(edges.at(-1));
  const beyond = histogram?.beyond ?? 0;
  return (
    <Columns
      kind="jx-histogram"
      label={trans.__('The samples from %1 to %2', low, high)}
      columns={counts.map((count, index) => ({
        height: count / most,
        label: trans.__(
          '%1 to %2: %3',
          formatMilliseconds(edges[index]),
          formatMilliseconds(edges[index + 1]),
          formatCount(count)
        )
      }))}
      low={low}
      high={
        beyond
          ? trans.__(
              '%1; %2 beyond, up to %3',
              high,
              formatCount(beyond),
              formatMilliseconds(maximum)
            )
          : high
      }
    />
  );
}

function Compared(props: { rows: IComparison[] }): React.JSX.Element | null {
  const { rows } = props;
  const trans = useTrans();
  if (rows.length === 0) {
    return null;
  }
  const bases = [...new Set(rows.map(({ basis }) => basis ?? ''))];
  const bars = bases.flatMap<IBar>(basis => {
    const same = rows.filter(row => (row.basis ?? '') === basis);
    const own = same[0]?.own_ms ?? 0;
    const told = bases.length > 1 ? basisName(basis, trans) : '';
    return [
      {
        label: told ? trans.__('this, %1', told) : trans.__('this'),
        value: formatMilliseconds(own),
        length: own
      },
      ...same.map(row => ({
        label: row.name ?? '',
        value: formatMilliseconds(row.value_ms ?? 0),
        length: row.value_ms ?? 0,
        remark: ratioOf(row, trans)
      }))
    ];
  });
  const only = bases.length === 1 ? basisName(bases[0] ?? '', trans) : '';
  return (
    <>
      <Heading
        text={only ? trans.__('Compared, %1', only) : trans.__('Compared')}
      />
      <Bars bars={bars} />
      {rows.map(
        ({ name, differences }, index) =>
          differences &&
          differences.length > 0 && (
            <Remark
              key={index}
              text={trans.__(
                'Not alike with %1: %2.',
                name ?? '',
                differences.join('; ')
              )}
            />
          )
      )}
    </>
  );
}

/** Which figure a comparison is of; earlier versions told none. */
function basisName(basis: string, trans: TranslationBundle): string {
  switch (basis) {
    case 'p20':
      return trans.__('by the 20th percentile of the runs');
    case 'first':
      return trans.__('by the first run');
    default:
      return '';
  }
}

function ratioOf(row: IComparison, trans: TranslationBundle): string {
  const { value, low, high, differs } = row.ratio ?? {};
  if (typeof value !== 'number') {
    return trans.__('took no time that could be measured');
  }
  const times = digits(value);
  if (typeof low !== 'number' || typeof high !== 'number') {
    return row.basis === 'p20'
      ? trans.__(
          'this takes %1 × as long; too few runs to tell by how much it may be off: -t 1, say, in both',
          times
        )
      : trans.__(
          'this takes %1 × as long; single first runs: use -r or -t in both to compare',
          times
        );
  }
  if (!differs) {
    return trans.__(
      'this takes %1 × as long (%2 to %3): no difference that can be told',
      times,
      digits(low),
      digits(high)
    );
  }
  return value < 1
    ? trans.__(
        'this is %1 × faster (%2 to %3)',
        digits(1 / value),
        digits(1 / high),
        digits(1 / low)
      )
    : trans.__(
        'this is %1 × slower (%2 to %3)',
        times,
        digits(low),
        digits(high)
      );
}

function digits(value: number): string {
  return String(Number(value.toPrecision(3)));
}
