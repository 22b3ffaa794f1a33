import type { TranslationBundle } from '@jupyterlab/translation';
import { downloadIcon, editIcon, launchIcon } from '@jupyterlab/ui-components';
import React, { useState } from 'react';

import type { ICaptureRecord } from '../api/record';
import { compareIcon, pinIcon } from '../icons';
import { RenameInput } from '../sidebar/rename';
import { kindName } from '../sidebar/row';
import type { ICardActions, IStored } from './actions';
import { useTrans } from './actions';
import { IconButton } from './buttons';
import { XprofMenu } from './tools';

interface IHeaderProps {
  record: ICaptureRecord;
  stored: IStored;
  actions: ICardActions;
}

/** What was captured when and how it went, and what can be done with it. */
export function Header(props: IHeaderProps): React.JSX.Element {
  const { record, stored, actions } = props;
  const trans = useTrans();
  const [renaming, setRenaming] = useState(false);
  return (
    <header>
      <div>
        <span className="jx-kind">{kindName(record.kind, trans)}</span>{' '}
        {renaming ? (
          <RenameInput
            name={stored.name}
            label={trans.__('New name')}
            onEnd={name => {
              setRenaming(false);
              if (name !== null && name !== stored.name) {
                void actions.rename(record.id, name);
              }
            }}
          />
        ) : (
          <strong className="jx-name">
            <bdi>{stored.name}</bdi>
          </strong>
        )}{' '}
        <span className={`jx-status jx-${record.status}`}>
          {statusName(record.status, trans)}
        </span>{' '}
        <time className="jx-when" dateTime={record.created}>
          {moment(record.created)}
        </time>
      </div>
      {stored.lost ? (
        <span className="jx-lost">{stored.lost}</span>
      ) : (
        <Buttons
          {...props}
          onRename={() => {
            setRenaming(true);
          }}
        />
      )}
    </header>
  );
}

function Buttons(
  props: IHeaderProps & { onRename: () => void }
): React.JSX.Element {
  const { record, stored, actions, onRename } = props;
  const { compare, openCapture } = actions;
  const { id } = record;
  const trans = useTrans();
  return (
    <div
      className="jx-buttons"
      role="toolbar"
      aria-label={trans.__('Capture %1', stored.name)}
    >
      {record.xprof_run && (
        <XprofMenu run={record.xprof_run} actions={actions} />
      )}
      {openCapture && (
        <IconButton
          icon={launchIcon}
          label={trans.__('Open in a tab of its own')}
          onClick={() => {
            openCapture(id);
          }}
        />
      )}
      {compare && (
        <IconButton
          icon={compareIcon}
          label={trans.__('Compare with others')}
          onClick={() => {
            compare(id);
          }}
        />
      )}
      {record.files.length > 0 && (
        <IconButton
          icon={downloadIcon}
          label={
            record.files.length === 1
              ? trans.__('Download the file')
              : trans.__('Download all files (zip)')
          }
          onClick={() => {
            actions.download(id);
          }}
        />
      )}
      <IconButton
        icon={editIcon}
        label={trans.__('Rename')}
        onClick={onRename}
      />
      <IconButton
        icon={pinIcon}
        label={
          stored.pinned ? trans.__('Unpin') : trans.__('Pin: keep this capture')
        }
        pressed={stored.pinned}
        onClick={() => {
          void actions.setPinned(id, !stored.pinned);
        }}
      />
    </div>
  );
}

function statusName(status: string, trans: TranslationBundle): string {
  switch (status) {
    case 'ok':
      return trans.__('ok');
    case 'partial':
      return trans.__('partial');
    case 'failed':
      return trans.__('failed');
    case 'interrupted':
      return trans.__('interrupted');
    default:
      return status;
  }
}

/** When it was made, in the reader's own time; as it stands where it is no time. */
function moment(created: string): string {
  const date = new Date(created);
  return Number.isNaN(date.getTime())
    ? created
    : date.toLocaleString(undefined, {
        dateStyle: 'medium',
        timeStyle: 'short'
      });
}
