import { classes } from '@jupyterlab/ui-components';
import React from 'react';

import type { ISideBySide } from '../api/compare';
import { useTrans } from '../card/actions';

/** What is not alike around the captures: versions, devices, flags, and the cell's code. */
export function Around(props: {
  found: ISideBySide;
  names: string[];
}): React.JSX.Element {
  const { found, names } = props;
  const trans = useTrans();
  return (
    <>
      <section>
        <h3>{trans.__('Environment')}</h3>
        {names.slice(1).map((name, index) => {
          const listed = found.differences[index + 1] ?? [];
          return (
            <React.Fragment key={index}>
              {names.length > 2 && <h4>{name}</h4>}
              {listed.length > 0 ? (
                <ul>
                  {listed.map(text => (
                    <li key={text}>{text}</li>
                  ))}
                </ul>
              ) : (
                <p>{trans.__('As far as both recorded it, it is the same.')}</p>
              )}
            </React.Fragment>
          );
        })}
      </section>
      <section>
        <h3>{trans.__('Code of the cell')}</h3>
        {names.slice(1).map((name, index) => (
          <React.Fragment key={index}>
            {names.length > 2 && <h4>{name}</h4>}
            <Cell cell={found.cells[index + 1] ?? null} name={name} />
          </React.Fragment>
        ))}
      </section>
    </>
  );
}

function Cell(props: {
  cell: ISideBySide['cells'][number];
  name: string;
}): React.JSX.Element {
  const { cell, name } = props;
  const trans = useTrans();
  if (cell?.same === true) {
    return <p>{trans.__('It is the same.')}</p>;
  }
  if (!cell?.diff) {
    return <p>{trans.__('Not both have the code of a cell.')}</p>;
  }
  return (
    <pre
      className="jp-JaxProf-diff"
      tabIndex={0}
      aria-label={trans.__('What differs in the code of %1', name)}
    >
      {cell.diff.split('\n').map((line, index) => (
        <code
          key={index}
          className={classes(
            line.startsWith('+') && 'jp-mod-new',
            line.startsWith('-') && 'jp-mod-gone',
            line.startsWith('@@') && 'jp-mod-place'
          )}
        >
          {line || ' '}
        </code>
      ))}
    </pre>
  );
}
