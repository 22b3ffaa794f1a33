import {
  Clipboard,
  Dialog,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type {
  CaptureChanges,
  ICaptureRow,
  IOverLimit,
  ViewerName
} from '../api/types';
import { archiveUrl, fileUrl } from '../api/urls';
import { formatBytes } from '../format';
import type { CapturesModel } from './model';
import type { Doomed } from './oldest';
import { MAX_LISTED, Oldest } from './oldest';
import { wordsOf } from './problem';
import { isReadable, toldTroubles, troublesOf } from './troubles';

/** What has notes. */
export type INoted = Pick<ICaptureRow, 'id' | 'notes'>;

/** Open a viewer at a run. */
export type OpenRun = (
  viewer: ViewerName,
  run: string,
  another: boolean
) => void;

/** What can be done with a capture. A failure is told in a notification; nothing rejects. */
export class Actions {
  constructor(
    readonly model: CapturesModel,
    private readonly _openRun: OpenRun,
    private readonly _openCapture: (id: string) => void,
    private readonly _trans: TranslationBundle
  ) {}

  /** Open the capture's own tab; one whose record can't be read shows its details, which say why. */
  openCapture(row: ICaptureRow): void {
    if (isReadable(row)) {
      this._openCapture(row.id);
    } else {
      this._showDetails(row);
    }
  }

  /** Open the capture in XProf; one that XProf can't read shows its details instead, and says what is wrong. */
  open(row: ICaptureRow, another = false): void {
    if (row.xprof_run) {
      this._openRun('xprof', row.xprof_run, another);
    } else {
      this._showDetails(row);
    }
  }

  private _showDetails(row: ICaptureRow): void {
    this.model.setDetailsOpen(true);
    this.model.announce(
      toldTroubles(troublesOf(row, this._trans)) ||
        this._trans.__('Details of %1', row.name)
    );
  }

  openInTensorboard(row: ICaptureRow): void {
    if (row.xprof_run) {
      this._openRun('tensorboard', row.xprof_run, false);
    }
  }

  /** Let the browser download one file; a capture without a second file needs no zip. */
  download(row: ICaptureRow): void {
    const only = row.files.length === 1 ? row.files[0] : undefined;
    if (only) {
      this.downloadFile(row, only.path);
    } else {
      this.downloadArchive(row);
    }
  }

  downloadFile({ id }: { id: string }, path: string): void {
    download(fileUrl(this.model.server.client.settings, id, path));
  }

  downloadArchive({ id }: { id: string }): void {
    download(archiveUrl(this.model.server.client.settings, id));
  }

  /** A name that won't do, an empty one too, is refused by the server with its reason. */
  async rename(row: ICaptureRow, name: string): Promise<void> {
    if (name !== row.name) {
      await this._update(row, { name }, this._trans.__('Renamed to %1', name));
    }
  }

  async togglePin(row: ICaptureRow): Promise<void> {
    const message = row.pinned
      ? this._trans.__('Unpinned %1', row.name)
      : this._trans.__('Pinned %1', row.name);
    await this._update(row, { pinned: !row.pinned }, message);
  }

  /** Whether the notes are in the store now. */
  async saveNotes(row: INoted, notes: string): Promise<boolean> {
    return (
      notes === row.notes ||
      this._update(row, { notes }, this._trans.__('Notes saved'))
    );
  }

  async delete(row: ICaptureRow): Promise<void> {
    const trans = this._trans;
    const body = row.pinned
      ? trans.__(
          'It is pinned. Its files (%1) are deleted from the disk for good.',
          formatBytes(row.disk_bytes)
        )
      : trans.__(
          'Its files (%1) are deleted from the disk for good.',
          formatBytes(row.disk_bytes)
        );
    if (await this._confirm(trans.__('Delete “%1”?', row.name), body)) {
      await this._delete([row.id], trans.__('Deleted %1', row.name));
    }
  }

  /** Delete all selected captures, after asking once. */
  async deleteSelected(): Promise<void> {
    const { selectedIds: ids, selectedRows: rows } = this.model;
    const title = this._trans.__('Delete %1 captures?', ids.length);
    await this._deleteListed(title, ids, rows.slice(0, MAX_LISTED), 0);
  }

  /** Delete what the server names as the oldest captures that are not pinned. */
  async deleteOldest(over: IOverLimit): Promise<void> {
    const trans = this._trans;
    const title = trans._n(
      'Delete the oldest capture?',
      'Delete the oldest %1 captures?',
      over.ids.length
    );
    let captures: Doomed[];
    try {
      const { client } = this.model.server;
      captures = await Promise.all(
        over.ids.slice(0, MAX_LISTED).map(id => client.capture(id))
      );
    } catch (error) {
      this._tell(trans.__('Nothing was deleted.'), error);
      return;
    }
    await this._deleteListed(title, over.ids, captures, over.bytes);
  }

  /** Ask, with a list of the first few, and delete them all. */
  private async _deleteListed(
    title: string,
    ids: readonly string[],
    captures: readonly Doomed[],
    excessBytes: number
  ): Promise<void> {
    const trans = this._trans;
    const body = React.createElement(Oldest, {
      captures,
      count: ids.length,
      excessBytes,
      trans
    });
    if (await this._confirm(title, body)) {
      await this._delete(
        ids,
        trans._n('Deleted one capture', 'Deleted %1 captures', ids.length)
      );
    }
  }

  async copyPath(row: ICaptureRow): Promise<void> {
    try {
      const { directory } = await this.model.server.client.capture(row.id);
      this.copy(directory, this._trans.__('Path copied'));
    } catch (error) {
      this._tell(this._trans.__('The path could not be got.'), error);
    }
  }

  copyRun(row: ICaptureRow): void {
    if (row.xprof_run) {
      this.copy(row.xprof_run, this._trans.__('Run name copied'));
    }
  }

  copy(text: string, message: string): void {
    Clipboard.copyToSystem(text);
    this.model.announce(message);
  }

  private async _confirm(
    title: string,
    body: string | React.ReactElement
  ): Promise<boolean> {
    const trans = this._trans;
    const result = await showDialog({
      title,
      body,
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.warnButton({ label: trans.__('Delete') })
      ],
      defaultButton: 0
    });
    return result.button.accept;
  }

  private async _update(
    row: { id: string },
    changes: CaptureChanges,
    message: string
  ): Promise<boolean> {
    try {
      await this.model.update(row, changes);
      this.model.announce(message);
      return true;
    } catch (error) {
      this._tell(this._trans.__('The change was not saved.'), error);
      return false;
    }
  }

  private async _delete(
    ids: readonly string[],
    message: string
  ): Promise<void> {
    try {
      await this.model.delete(ids);
      this.model.announce(message);
    } catch (error) {
      this._tell(this._trans.__('Not everything was deleted.'), error);
    }
  }

  private _tell(what: string, error: unknown): void {
    Notification.error(`${what} ${wordsOf(error, this._trans)}`, {
      autoClose: 8000
    });
  }
}

/** A plain download by the browser: any size, and nothing of it in the page's memory. */
export function download(url: string): void {
  const link = document.createElement('a');
  link.href = url;
  link.download = '';
  document.body.appendChild(link);
  link.click();
  link.remove();
}
