import React from 'react';

import type { ComparedTable, INameRow, ISideBySide } from '../api/compare';
import { useTrans } from '../card/actions';
import type { IColumn } from '../card/table';
import { Table } from '../card/table';
import { formatCount, formatMilliseconds } from '../format';

/** What ran, matched by name: those that lost most time first. */
export function ComparedTables(props: {
  found: ISideBySide;
  names: string[];
}): React.JSX.Element {
  const { found, names } = props;
  const trans = useTrans();
  const titles: Record<ComparedTable, string> = {
    kernels: trans.__('Kernels'),
    hlo_ops: trans.__('HLO operations'),
    copies: trans.__('Copies')
  };
  const told = found.not_compared
    .map((sentence, index) => [names[index] ?? '', sentence] as const)
    .filter(([, sentence]) => sentence);
  return (
    <>
      {(['kernels', 'hlo_ops', 'copies'] as const).map(
        table =>
          found.tables[table].length > 0 && (
            <section key={table}>
              <h3>
                {found.per_step
                  ? trans.__(
                      '%1, per step: what got slower first',
                      titles[table]
                    )
                  : trans.__(
                      '%1, in the whole trace: what got slower first',
                      titles[table]
                    )}
              </h3>
              <NameTable
                title={titles[table]}
                table={table}
                found={found}
                names={names}
              />
            </section>
          )
      )}
      {told.map(([name, sentence]) => (
        <p key={name} className="jp-JaxProf-notice">
          {name}: {sentence}
        </p>
      ))}
    </>
  );
}

function NameTable(props: {
  title: string;
  table: ComparedTable;
  found: ISideBySide;
  names: string[];
}): React.JSX.Element {
  const { title, table, found, names } = props;
  const trans = useTrans();
  const others = names.slice(1);
  const columns: IColumn<INameRow>[] = [
    { label: trans.__('name'), value: ({ name }) => name },
    ...names.map((name, index): IColumn<INameRow> => ({
      label: name,
      value: ({ ms }) => ms[index] ?? null,
      text: ({ ms }) => formatMilliseconds(ms[index] ?? null)
    })),
    ...others.map((name, index): IColumn<INameRow> => ({
      label:
        others.length > 1 ? trans.__('change in %1', name) : trans.__('change'),
      value: ({ changes_ms: changes }) => changes[index + 1] ?? null,
      text: row => changeText(row, index + 1)
    })),
    ...(others.length > 1 ? [] : names).map((_, index): IColumn<INameRow> => ({
      label: index === 0 ? trans.__('count before') : trans.__('count after'),
      value: ({ counts }) => counts[index] ?? null,
      text: ({ counts }) => formatCount(counts[index] ?? null)
    }))
  ];
  const hidden = names.filter(
    (_, index) => (found.tables_left_out[index]?.[table] ?? 0) > 0
  );
  return (
    <Table
      label={title}
      columns={columns}
      rows={found.tables[table]}
      more={
        hidden.length > 0
          ? trans.__(
              '– may also mean that it is not among the largest that %1 lists.',
              hidden.join(', ')
            )
          : ''
      }
    />
  );
}

/** '▲ +4.42 µs': an arrow up is slower, none is no more than two runs of one program differ by. */
function changeText(row: INameRow, index: number): string {
  const change = row.changes_ms[index];
  if (change === null || change === undefined) {
    return '–';
  }
  const text = `${change > 0 ? '+' : ''}${formatMilliseconds(change)}`;
  return row.alike[index] || change === 0
    ? text
    : `${change > 0 ? '▲' : '▼'} ${text}`;
}
