import React from 'react';

import type { ICaptureRecord, IRecordEnvironment } from '../api/record';
import { baseName, formatBytes } from '../format';
import { useTrans } from './actions';
import { More, Sentence } from './text';

const MAX_FILES = 8;

/** Where it ran and lies, the notices, and the environment in a disclosure. */
export function Facts(props: { record: ICaptureRecord }): React.JSX.Element {
  const { record } = props;
  const trans = useTrans();
  const devices = devicesOf(record.environment);
  return (
    <>
      <dl>
        {devices && (
          <>
            <dt>{trans.__('Devices')}</dt>
            <dd>
              <bdi>{devices}</bdi>
            </dd>
          </>
        )}
        {record.files.length > 0 && (
          <>
            <dt>{trans.__('Files')}</dt>
            <dd>
              <Files record={record} />
            </dd>
          </>
        )}
        {record.directory && (
          <>
            <dt>{trans.__('Stored in')}</dt>
            <dd>
              <code>{record.directory}</code>
            </dd>
          </>
        )}
      </dl>
      {record.notices.length > 0 && (
        <ul className="jx-notices">
          {record.notices.map((notice, index) => (
            <li key={index}>
              <Sentence text={notice} />
            </li>
          ))}
        </ul>
      )}
      <Environment record={record} />
    </>
  );
}

function Files(props: { record: ICaptureRecord }): React.JSX.Element {
  const { files } = props.record;
  const trans = useTrans();
  const total = files.reduce((sum, { size_bytes: size }) => sum + size, 0);
  const shown = files.slice(0, MAX_FILES);
  const more = files.length - shown.length;
  return (
    <>
      {trans._n('%1 file', '%1 files', files.length)}, {formatBytes(total)}
      <table>
        <tbody>
          {shown.map(({ path, size_bytes: size }) => (
            <tr key={path}>
              <td title={path}>
                <bdi>{baseName(path)}</bdi>
              </td>
              <td>{formatBytes(size)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {more > 0 && trans._n('and %1 more', 'and %1 more', more)}
    </>
  );
}

/** How it was run, and with which versions: what one needs to run it again. */
function Environment(props: {
  record: ICaptureRecord;
}): React.JSX.Element | null {
  const { notebook, magic, cell, environment } = props.record;
  const trans = useTrans();
  const values = Object.entries(environment).filter(
    ([, value]) =>
      (typeof value === 'string' && value !== '') ||
      typeof value === 'number' ||
      typeof value === 'boolean'
  );
  return (
    <More title={trans.__('Cell and environment')}>
      {() => (
        <>
          {cell && <pre className="jx-cell">{`${magic}\n${cell}`.trim()}</pre>}
          <dl className="jx-environment">
            {notebook && (
              <>
                <dt>{trans.__('Notebook')}</dt>
                <dd>{notebook}</dd>
              </>
            )}
            {values.map(([name, value]) => (
              <React.Fragment key={name}>
                <dt>{name}</dt>
                <dd>{String(value)}</dd>
              </React.Fragment>
            ))}
          </dl>
        </>
      )}
    </More>
  );
}

/** '8 × NVIDIA H200', one part for each kind of device. */
function devicesOf({ devices }: IRecordEnvironment): string {
  const counts = new Map<string, number>();
  for (const { kind, platform } of devices ?? []) {
    const name =
      !kind || kind.toLowerCase() === platform?.toLowerCase()
        ? (platform ?? '').toUpperCase()
        : kind;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts]
    .map(([name, count]) => (count === 1 ? name : `${count} × ${name}`))
    .join(', ');
}
