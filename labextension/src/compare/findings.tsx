import type { TranslationBundle } from '@jupyterlab/translation';
import { classes } from '@jupyterlab/ui-components';
import React from 'react';

import type { IComparedFinding, IFindingRow } from '../api/compare';
import { useTrans } from '../card/actions';
import { Sentence } from '../card/text';
import { formatMilliseconds } from '../format';
import { MeasureTable } from './measures';

/** Wide enough for a sentence. */
const LABEL_PX = 310;

/** The findings of all: what came and what went. */
export function ComparedFindings(props: {
  findings: IFindingRow[];
  names: string[];
  perStep: boolean;
}): React.JSX.Element | null {
  const { findings, names, perStep } = props;
  const trans = useTrans();
  if (findings.length === 0) {
    return null;
  }
  const title = perStep
    ? trans.__('Findings, and what each costs a step on average')
    : trans.__('Findings, and what each costs in the whole trace');
  return (
    <MeasureTable title={title} names={names} labelPx={LABEL_PX}>
      <tbody>
        {findings.map(row => (
          <tr key={row.id}>
            <th scope="row">
              {row.id}
              <Titles row={row} names={names} />
            </th>
            {row.cells.map((cell, index) => (
              <td key={index}>
                <Cell cell={cell} once={row.once} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </MeasureTable>
  );
}

/** What the finding says: once where it says the same of all that have it. */
function Titles(props: {
  row: IFindingRow;
  names: string[];
}): React.JSX.Element {
  const told = props.row.cells.flatMap((cell, index) =>
    cell?.title ? [[props.names[index] ?? '', cell.title] as const] : []
  );
  const isOne = new Set(told.map(([, title]) => title)).size < 2;
  return (
    <>
      {(isOne ? told.slice(0, 1) : told).map(([name, title], index) => (
        <small key={index}>
          {!isOne && <b>{name}: </b>}
          <Sentence text={title} />
        </small>
      ))}
    </>
  );
}

function Cell(props: {
  cell: IComparedFinding | null;
  once: boolean;
}): React.JSX.Element {
  const { cell, once } = props;
  const trans = useTrans();
  if (!cell) {
    return <span className="jp-JaxProf-none">–</span>;
  }
  const cost =
    cell.lost_ms === null
      ? levelName(cell.level, trans)
      : formatMilliseconds(cell.lost_ms);
  const word = stateName(cell, trans);
  return (
    <>
      {cell.level !== null && (
        <span className="jp-JaxProf-value" title={cell.title}>
          {once && cell.lost_ms !== null ? trans.__('%1 in all', cost) : cost}
        </span>
      )}
      {word && (
        <span
          className={classes(
            'jp-JaxProf-verdict',
            cell.state === 'gone' && 'jp-mod-faster',
            cell.state === 'new' && cell.level === 'problem' && 'jp-mod-slower'
          )}
        >
          {word}
        </span>
      )}
    </>
  );
}

function stateName(
  { state, level }: IComparedFinding,
  trans: TranslationBundle
): string {
  switch (state) {
    case 'new':
      return trans.__('new');
    case 'gone':
      return trans.__('gone');
    case 'unknown':
      return level === null ? trans.__('can’t be told') : trans.__('only here');
    default:
      return '';
  }
}

function levelName(level: string | null, trans: TranslationBundle): string {
  switch (level) {
    case 'problem':
      return trans.__('problem');
    case 'note':
      return trans.__('note');
    case 'fine':
      return trans.__('fine');
    default:
      return level ?? '';
  }
}
