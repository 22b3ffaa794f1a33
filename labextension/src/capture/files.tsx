import type { TranslationBundle } from '@jupyterlab/translation';
import { copyIcon, downloadIcon } from '@jupyterlab/ui-components';
import React from 'react';

import type { IStoredRecord } from '../api/record';
import { formatBytes } from '../format';
import type { Actions } from '../sidebar/actions';
import { Path } from '../sidebar/path';

/** The files of a capture: what each is for, its size, and a download; and where they lie. */
export function Files(props: {
  record: IStoredRecord;
  actions: Actions;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { record, actions, trans } = props;
  const { files } = record;
  return (
    <>
      {files.length === 0 ? (
        <p>
          {trans.__('It has no files: all that was measured is in its record.')}
        </p>
      ) : (
        <table className="jp-JaxProf-history">
          <thead>
            <tr>
              <th scope="col">{trans.__('File')}</th>
              <th scope="col">{trans.__('What it is')}</th>
              <th scope="col">{trans.__('Size')}</th>
              <th scope="col">
                <span className="jp-JaxProf-announcer">
                  {trans.__('Download')}
                </span>
              </th>
            </tr>
          </thead>
          <tbody>
            {files.map(({ path, role, size_bytes: size }) => (
              <tr key={path}>
                <td className="jp-mod-path">
                  <Path path={path} />
                </td>
                <td>{roleName(role, trans)}</td>
                <td className="jp-JaxProf-number">{formatBytes(size)}</td>
                <td>
                  <button
                    className="jp-JaxProf-iconButton"
                    title={trans.__('Download')}
                    aria-label={trans.__('Download %1', path)}
                    onClick={() => {
                      actions.downloadFile(record, path);
                    }}
                  >
                    <downloadIcon.react tag="span" />
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {files.length > 1 && (
        <p>
          <button
            className="jp-JaxProf-button"
            onClick={() => {
              actions.downloadArchive(record);
            }}
          >
            {trans.__('Download all as a zip')}
          </button>
        </p>
      )}
      <p className="jp-JaxProf-withButton">
        {trans.__('On the server’s disk, %1:', formatBytes(record.disk_bytes))}
        &nbsp;
        <code>{record.directory}</code>
        <button
          className="jp-JaxProf-iconButton"
          title={trans.__('Copy the path')}
          aria-label={trans.__('Copy the path')}
          onClick={() => {
            actions.copy(record.directory, trans.__('Path copied'));
          }}
        >
          <copyIcon.react tag="span" />
        </button>
      </p>
    </>
  );
}

function roleName(role: string, trans: TranslationBundle): string {
  switch (role) {
    case 'xplane':
      return trans.__('Trace, for XProf');
    case 'trace_json':
      return trans.__('Trace as JSON');
    case 'perfetto':
      return trans.__('Trace for Perfetto');
    case 'nsys':
      return trans.__('Report of Nsight Systems');
    default:
      return trans.__('Other');
  }
}
