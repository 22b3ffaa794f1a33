import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { jaxprofIcon } from '../icons';

/** The line that the empty panel teaches. */
export const EXAMPLE_LINE = '%%jaxtrace';

/** No capture yet: what to do, in three lines. */
export function EmptyState(props: {
  trans: TranslationBundle;
  onCopy: () => void;
  /** Put the line above the active cell; null when no notebook is open. */
  onInsert: (() => void) | null;
}): React.JSX.Element {
  const { trans, onCopy, onInsert } = props;
  return (
    <div className="jp-JaxProf-message jp-mod-empty">
      <jaxprofIcon.react tag="div" className="jp-JaxProf-bigIcon" />
      <h3>{trans.__('No captures yet')}</h3>
      <ol>
        <li>
          {trans.__('Put this line above the code of a notebook cell:')}
          <pre>
            {EXAMPLE_LINE} <i>{trans.__('a name')}</i>
          </pre>
        </li>
        <li>{trans.__('Run the cell. It runs once, as it always does.')}</li>
        <li>
          {trans.__(
            'The trace appears here. Double-click it to see what it says, and from there read it in XProf.'
          )}
        </li>
      </ol>
      <p>
        {trans.__(
          'Or drop a trace (*.xplane.pb) or an Nsight report (*.nsys-rep, *.sqlite) here.'
        )}
      </p>
      <div className="jp-JaxProf-buttons">
        {onInsert && (
          <button
            className="jp-JaxProf-button jp-mod-primary"
            onClick={onInsert}
          >
            {trans.__('Put it above the active cell')}
          </button>
        )}
        <button className="jp-JaxProf-button" onClick={onCopy}>
          {trans.__('Copy')}
        </button>
      </div>
    </div>
  );
}

/** Nothing fits the filters. */
export function NothingFound(props: {
  trans: TranslationBundle;
  onClear: () => void;
}): React.JSX.Element {
  const { trans, onClear } = props;
  return (
    <div className="jp-JaxProf-message">
      <h3>{trans.__('Nothing found')}</h3>
      <p>
        {trans.__(
          'No capture fits the search and the filters. The search looks at names, notes, notebooks and code.'
        )}
      </p>
      <button className="jp-JaxProf-button" onClick={onClear}>
        {trans.__('Show all')}
      </button>
    </div>
  );
}

/** The first answer is on its way. */
export function Loading(props: {
  trans: TranslationBundle;
}): React.JSX.Element {
  return (
    <div className="jp-JaxProf-message" aria-busy="true">
      <p>{props.trans.__('Loading…')}</p>
    </div>
  );
}
