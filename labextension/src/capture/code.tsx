import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import type { TranslationBundle } from '@jupyterlab/translation';
import { classes } from '@jupyterlab/ui-components';
import React, { useEffect, useRef } from 'react';

import type { ICaptureRecord } from '../api/record';
import { formatMilliseconds } from '../format';
import type { ILineColumn } from './lines';
import { lineTimes } from './lines';

const MOST_NAMED = 6;

interface ICodeProps {
  record: ICaptureRecord;
  /** Colours code; null where the front end has none. */
  languages: IEditorLanguageRegistry | null;
  trans: TranslationBundle;
}

/** The cell's code, with where its time went beside each line. */
export function Code(props: ICodeProps): React.JSX.Element {
  const { record, languages, trans } = props;
  const { magic, cell } = record;
  if (!cell.trim()) {
    return (
      <p>
        {magic
          ? trans.__(
              'The capture has no code of a cell, only its line: %1',
              magic
            )
          : trans.__('The capture has no code: it was not taken of a cell.')}
      </p>
    );
  }
  const { columns, remarks } = lineTimes(record, trans);
  const code = cell.replace(/\n+$/, '');
  const count = code.split('\n').length;
  // As tracebacks and cards count: the magic's own line is the first, where nothing else is told.
  const first = record.summary.place?.line ?? (magic.startsWith('%%') ? 2 : 1);
  return (
    <>
      {magic && <p className="jp-JaxProf-magic">{magic}</p>}
      <div
        className={classes(
          'jp-JaxProf-code',
          columns.length === 0 && 'jp-mod-untimed'
        )}
      >
        {columns.map(column => (
          <Gutter
            key={column.label}
            column={column}
            first={first}
            count={count}
            trans={trans}
          />
        ))}
        <Numbers first={first} count={count} />
        <Coloured
          code={code}
          languages={languages}
          label={trans.__('The cell’s code')}
        />
      </div>
      {remarks.map(text => (
        <p key={text} className="jp-JaxProf-notice">
          {text}
        </p>
      ))}
    </>
  );
}

/** A time and a bar for each line that has one. */
function Gutter(props: {
  column: ILineColumn;
  first: number;
  count: number;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { column, first, count, trans } = props;
  const most = Math.max(...[...column.lines.values()].map(({ ms }) => ms));
  return (
    <div
      className="jp-JaxProf-gutter"
      role="list"
      aria-label={trans.__('%1 by line', column.label)}
    >
      <div className="jp-JaxProf-gutterHead" aria-hidden>
        {column.label}
      </div>
      {Array.from({ length: count }, (_, line) => {
        const told = column.lines.get(line);
        if (!told) {
          return <div key={line} aria-hidden />;
        }
        const time = formatMilliseconds(told.ms);
        const what = told.what.slice(0, MOST_NAMED).join(', ');
        return (
          <div
            key={line}
            role="listitem"
            aria-label={trans.__('Line %1: %2, %3', line + first, time, what)}
            title={what}
          >
            <span
              className="jp-JaxProf-bar"
              style={{ width: `${(100 * told.ms) / most}%` }}
            />
            <span>{time}</span>
          </div>
        );
      })}
    </div>
  );
}

function Numbers(props: { first: number; count: number }): React.JSX.Element {
  return (
    <div className="jp-JaxProf-gutter jp-mod-numbers" aria-hidden>
      <div className="jp-JaxProf-gutterHead" />
      {Array.from({ length: props.count }, (_, line) => (
        <div key={line}>{line + props.first}</div>
      ))}
    </div>
  );
}

/** Python, coloured as in JupyterLab's editors; plain until that is done. */
function Coloured(props: {
  code: string;
  languages: IEditorLanguageRegistry | null;
  label: string;
}): React.JSX.Element {
  const { code, languages, label } = props;
  const node = useRef<HTMLElement>(null);
  useEffect(() => {
    let wanted = true;
    const place = node.current;
    if (!place) {
      return;
    }
    place.textContent = code;
    const python = languages?.findBest('python') ?? null;
    if (languages && python) {
      const coloured = document.createElement('code');
      languages.highlight(code, python, coloured).then(
        () => {
          if (wanted) {
            place.replaceChildren(...coloured.childNodes);
          }
        },
        (error: unknown) => {
          console.warn('The code is shown without colours.', error);
        }
      );
    }
    return () => {
      wanted = false;
    };
  }, [code, languages]);
  return (
    <pre tabIndex={0} aria-label={label}>
      <code ref={node} className="jp-JaxProf-lines" />
    </pre>
  );
}
