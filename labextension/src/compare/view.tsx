import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { IComparedCapture, ISideBySide } from '../api/compare';
import type { RequestProblem } from '../api/problem';
import type { Server } from '../api/server';
import type { Loader } from '../capture/loader';
import { TranslationProvider } from '../card/actions';
import { ProblemView } from '../sidebar/problem';
import { Around } from './around';
import { ComparedFindings } from './findings';
import { Heading } from './heading';
import { Measures } from './measures';
import { namesOf } from './names';
import { ComparedTables } from './tables';
import { Verdicts } from './verdict';

/** What is compared: at first no more than the captures themselves, where there is only one. */
export interface ICompared {
  captures: IComparedCapture[];
  found: ISideBySide | null;
}

export interface ICompareViewProps {
  ids: readonly string[];
  loader: Loader<ICompared>;
  server: Server;
  setIds: (ids: string[]) => void;
  openCapture: (id: string) => void;
  trans: TranslationBundle;
}

/** Captures side by side. */
export function CompareView(props: ICompareViewProps): React.JSX.Element {
  const { ids, loader, trans } = props;
  const { problem, value } = loader;
  if (problem) {
    return <Trouble {...props} problem={problem} />;
  }
  if (!value) {
    return (
      <div className="jp-JaxProf-message" aria-busy="true">
        <p>{trans.__('Comparing %1 captures…', ids.length)}</p>
      </div>
    );
  }
  const names = namesOf(value.captures);
  return (
    <TranslationProvider value={trans}>
      <Heading
        ids={ids}
        captures={value.captures}
        names={names}
        server={props.server}
        isLoading={loader.isLoading}
        setIds={props.setIds}
        openCapture={props.openCapture}
        onRefresh={() => void loader.load()}
      />
      {value.found ? (
        <Found found={value.found} names={names} />
      ) : (
        <p>
          {trans.__(
            'Choose a second capture above. Or select several in the JaxProf sidebar, with Ctrl or Shift, and choose Compare from their menu.'
          )}
        </p>
      )}
    </TranslationProvider>
  );
}

function Found(props: {
  found: ISideBySide;
  names: string[];
}): React.JSX.Element {
  const { found, names } = props;
  return (
    <>
      <Verdicts found={found} names={names} />
      <Measures measures={found.measures} names={names} />
      <ComparedFindings
        findings={found.findings}
        names={names}
        perStep={found.per_step}
      />
      <div className="jaxprof-card jx-live jp-JaxProf-tables">
        <ComparedTables found={found} names={names} />
      </div>
      <Around found={found} names={names} />
    </>
  );
}

/** Why there is nothing to see: what of it concerns these captures says so. */
function Trouble(
  props: ICompareViewProps & { problem: RequestProblem }
): React.JSX.Element {
  const { problem, loader, trans } = props;
  const retry = (): void => {
    void loader.load();
  };
  if (problem.kind !== 'failed') {
    return <ProblemView problem={problem} onRetry={retry} trans={trans} />;
  }
  return (
    <div className="jp-JaxProf-message" role="alert">
      <h3>{trans.__('These captures can’t be compared')}</h3>
      <p>{problem.message}</p>
      <button className="jp-JaxProf-button" onClick={retry}>
        {trans.__('Try again')}
      </button>
    </div>
  );
}
