import type { TranslationBundle } from '@jupyterlab/translation';
import { closeIcon, copyIcon, downloadIcon } from '@jupyterlab/ui-components';
import React, { useEffect, useState } from 'react';

import type { IStoredRecord } from '../api/record';
import type { ICaptureRow } from '../api/types';
import { baseName, formatBytes, formatMilliseconds } from '../format';
import type { Actions } from './actions';
import type { Fact } from './facts';
import { FactList, formatCreated, told } from './facts';
import { Notes } from './notes';
import { Path } from './path';
import { wordsOf } from './problem';
import { kindName } from './row';
import { isReadable, troublesOf } from './troubles';

interface IDetailsProps {
  row: ICaptureRow;
  actions: Actions;
  trans: TranslationBundle;
}

/** The selected capture: why it is not whole, what it measured, its files, and the user's notes. */
export function Details(props: IDetailsProps): React.JSX.Element {
  const { row, actions, trans } = props;
  const { capture, failure } = useCapture(row, actions, trans);
  return (
    <section
      className="jp-JaxProf-details"
      aria-label={trans.__('Details of %1', row.name)}
    >
      <header>
        <h3 title={row.name}>{row.name}</h3>
        <button
          className="jp-JaxProf-iconButton"
          title={trans.__('Close the details')}
          aria-label={trans.__('Close the details')}
          onClick={() => {
            actions.model.setDetailsOpen(false);
            actions.model.focusSelected();
          }}
        >
          <closeIcon.react tag="span" />
        </button>
      </header>
      {troublesOf(row, trans).map(({ name, reason }) => (
        <p key={name} className="jp-JaxProf-reason">
          <b>{name}.</b> {reason}
        </p>
      ))}
      {row.notices.map(notice => (
        <p key={notice} className="jp-JaxProf-notice">
          {notice}
        </p>
      ))}
      {failure && <p className="jp-JaxProf-notice">{failure}</p>}
      <Facts row={row} capture={capture} actions={actions} trans={trans} />
      <Files {...props} />
      {isReadable(row) && <Notes key={row.id} {...props} />}
    </section>
  );
}

/** Ask for the whole record; what of it may change stands in the row, which is always up to date. */
function useCapture(
  row: ICaptureRow,
  actions: Actions,
  trans: TranslationBundle
): { capture: IStoredRecord | null; failure: string } {
  const [capture, setCapture] = useState<IStoredRecord | null>(null);
  const [failure, setFailure] = useState('');
  const { client, problem } = actions.model.server;
  const readable = isReadable(row);
  useEffect(() => {
    let wanted = true;
    setFailure('');
    if (readable) {
      client.capture(row.id, { background: true }).then(
        answer => {
          if (wanted) {
            setCapture(answer);
          }
        },
        (error: unknown) => {
          if (wanted) {
            setFailure(wordsOf(error, trans));
          }
        }
      );
    }
    return () => {
      wanted = false;
    };
    // Asked again when the server is back.
  }, [client, problem, row.id, readable, trans]);
  return { capture: capture?.id === row.id ? capture : null, failure };
}

function Facts(props: {
  row: ICaptureRow;
  capture: IStoredRecord | null;
  actions: Actions;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { row, capture, actions, trans } = props;
  const facts = [...factsOfRow(row, trans), ...factsOfRun(capture, trans)];
  return (
    <FactList facts={facts}>
      {capture && (
        <>
          <dt>{trans.__('Directory')}</dt>
          <dd className="jp-JaxProf-withButton">
            <Path path={capture.directory} />
            <button
              className="jp-JaxProf-iconButton"
              title={trans.__('Copy the path')}
              aria-label={trans.__('Copy the path')}
              onClick={() => {
                actions.copy(capture.directory, trans.__('Path copied'));
              }}
            >
              <copyIcon.react tag="span" />
            </button>
          </dd>
        </>
      )}
    </FactList>
  );
}

/** What was run when, and what it measured. */
function factsOfRow(row: ICaptureRow, trans: TranslationBundle): Fact[] {
  const { wall_ms: wall, steps } = row.summary;
  return [
    [trans.__('Kind'), kindName(row.kind, trans)],
    [trans.__('Created'), formatCreated(row.created)],
    [trans.__('Notebook'), row.notebook && <Path path={row.notebook} />],
    [trans.__('Magic'), row.magic],
    [
      trans.__('Steps'),
      steps
        ? trans.__(
            '%1 × %2, median %3 (%4 to %5)',
            steps.count,
            steps.name,
            formatMilliseconds(steps.median_ms),
            formatMilliseconds(steps.min_ms),
            formatMilliseconds(steps.max_ms)
          )
        : ''
    ],
    [
      trans.__('Wall time'),
      typeof wall === 'number' ? formatMilliseconds(wall) : ''
    ]
  ];
}

/** Where it ran; empty until the whole record is there. */
function factsOfRun(
  capture: IStoredRecord | null,
  trans: TranslationBundle
): Fact[] {
  const environment = capture?.environment;
  return [
    [trans.__('Devices'), devicesOf(capture)],
    [trans.__('JAX'), told(environment?.jax)],
    [trans.__('Host'), told(environment?.host)]
  ];
}

/** '8 × NVIDIA H200', one part for each kind of device. */
function devicesOf(capture: IStoredRecord | null): string {
  const counts = new Map<string, number>();
  for (const { kind, platform } of capture?.environment.devices ?? []) {
    const name = [kind, platform].find(Boolean) ?? '';
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([name, count]) => `${count} × ${name}`).join(', ');
}

function Files(props: IDetailsProps): React.JSX.Element | null {
  const { row, actions, trans } = props;
  if (row.files.length === 0) {
    return null;
  }
  return (
    <>
      <h4>
        {trans.__('Files')}
        {row.files.length > 1 && (
          <button
            className="jp-JaxProf-linkButton"
            onClick={() => {
              actions.downloadArchive(row);
            }}
          >
            {trans.__('Download all (zip)')}
          </button>
        )}
      </h4>
      <ul className="jp-JaxProf-files">
        {row.files.map(({ path, size_bytes }) => (
          <li key={path}>
            <span className="jp-JaxProf-file" title={path}>
              {baseName(path)}
            </span>
            <span className="jp-JaxProf-number">{formatBytes(size_bytes)}</span>
            <button
              className="jp-JaxProf-iconButton"
              title={trans.__('Download')}
              aria-label={trans.__('Download %1', path)}
              onClick={() => {
                actions.downloadFile(row, path);
              }}
            >
              <downloadIcon.react tag="span" />
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
