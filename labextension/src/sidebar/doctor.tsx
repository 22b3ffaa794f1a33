import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';

import type { Client } from '../api/client';
import type { IEnvironmentProblem } from '../api/types';
import { CommandLine, wordsOf } from './problem';

/** Ask the server what is amiss in its environment, and show that with what mends it. */
export async function showDoctor(
  client: Client,
  trans: TranslationBundle
): Promise<void> {
  let body: React.JSX.Element;
  try {
    const problems = await client.environmentProblems();
    body = <Problems problems={problems} trans={trans} />;
  } catch (error) {
    body = <p role="alert">{wordsOf(error, trans)}</p>;
  }
  await showDialog({
    title: trans.__('The server’s installation'),
    body: ReactWidget.create(body),
    buttons: [Dialog.okButton({ label: trans.__('Close') })]
  });
}

function Problems(props: {
  problems: readonly IEnvironmentProblem[];
  trans: TranslationBundle;
}): React.JSX.Element {
  const { problems, trans } = props;
  const inKernel = trans.__(
    'The kernel’s own environment, and JAX in it, is looked at by %1 in a cell.',
    '%jaxprof doctor'
  );
  return (
    <div className="jp-JaxProf-doctor">
      {problems.length === 0 && (
        <p>{trans.__('All that is used here is as it should be.')}</p>
      )}
      {problems.map(problem => (
        <section key={problem.what}>
          <h3>
            {problem.needed && <strong>{trans.__('Needed: ')}</strong>}
            {problem.what}
          </h3>
          <p>{problem.remedy}</p>
          {problem.command && (
            <CommandLine command={problem.command} trans={trans} />
          )}
        </section>
      ))}
      <p>{inKernel}</p>
    </div>
  );
}
