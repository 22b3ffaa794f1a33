import { Clipboard } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { copyIcon } from '@jupyterlab/ui-components';
import React from 'react';

import { problemOfError, type RequestProblem } from '../api/problem';
import { VERSION } from '../version';

interface IExplanation {
  title: string;
  lines: string[];
  commands: string[];
}

/** What a problem of the server's half means, and what mends it. */
function explain(
  problem: RequestProblem,
  trans: TranslationBundle
): IExplanation {
  switch (problem.kind) {
    case 'missing':
      return {
        title: trans.__('The server half is not running'),
        lines: [
          trans.__(
            'This Jupyter server does not have the server extension of jupyterlab-jaxprof: it was started before the package was installed, it runs in another environment, or the extension is disabled.'
          ),
          trans.__(
            'In the environment of the server run the commands below, then restart the server.'
          )
        ],
        commands: [
          'pip install -U jupyterlab-jaxprof',
          'jupyter server extension enable jupyterlab_jaxprof'
        ]
      };
    case 'outdated':
      return {
        title: trans.__('Two versions that do not fit'),
        lines: [
          trans.__(
            'The server runs jupyterlab-jaxprof %1, this page has %2.',
            problem.message,
            VERSION
          ),
          trans.__(
            'Update the package, restart the Jupyter server, then reload this page.'
          )
        ],
        commands: ['pip install -U jupyterlab-jaxprof']
      };
    case 'unreachable':
      return {
        title: trans.__('The Jupyter server does not answer'),
        lines: [
          trans.__('It may have stopped, or the connection is lost.'),
          trans.__('This page asks again by itself.')
        ],
        commands: []
      };
    case 'forbidden':
      return {
        title: trans.__('Not allowed'),
        lines: [problem.message],
        commands: []
      };
    case 'foreign':
      return {
        title: trans.__('Something else answered'),
        lines: [
          trans.__(
            'What came is a page, not an answer of the Jupyter server: a proxy’s, or one to log in at. Reload this page, and log in where it asks for that.'
          )
        ],
        commands: []
      };
    case 'failed':
      return {
        title: trans.__('The captures could not be loaded'),
        lines: [problem.message],
        commands: []
      };
  }
}

/** A failed request in words: the server's own, or ours where it gave none. */
export function wordsOf(error: unknown, trans: TranslationBundle): string {
  const problem = problemOfError(error);
  const { title, lines } = explain(problem, trans);
  return problem.message || `${title}. ${lines[0] ?? ''}`;
}

/** A command line with a button that copies it. */
export function CommandLine(props: {
  command: string;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { command, trans } = props;
  return (
    <div className="jp-JaxProf-command">
      <code>{command}</code>
      <button
        className="jp-JaxProf-iconButton"
        title={trans.__('Copy')}
        aria-label={trans.__('Copy “%1”', command)}
        onClick={() => {
          Clipboard.copyToSystem(command);
        }}
      >
        <copyIcon.react tag="span" />
      </button>
    </div>
  );
}

/** Why the server's half can't be used, and what to do; in the panel and in a viewer's tab. */
export function ProblemView(props: {
  problem: RequestProblem;
  onRetry: () => void;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { problem, onRetry, trans } = props;
  const { title, lines, commands } = explain(problem, trans);
  return (
    <div className="jp-JaxProf-message" role="alert">
      <h3>{title}</h3>
      {lines.map(line => (
        <p key={line}>{line}</p>
      ))}
      {commands.map(command => (
        <CommandLine key={command} command={command} trans={trans} />
      ))}
      <button className="jp-JaxProf-button" onClick={onRetry}>
        {trans.__('Try again')}
      </button>
    </div>
  );
}
