import type { TranslationBundle } from '@jupyterlab/translation';

import type { ICaptureRow } from '../api/types';

/** One thing that is wrong with a capture. */
export interface ITrouble {
  /** A word for it. */
  name: string;
  /** Sentences, or empty. */
  reason: string;
  isError: boolean;
}

/** Whether there is a record to change and to ask for; of another only the name and the size are known. */
export function isReadable(row: ICaptureRow): boolean {
  return row.schema !== null;
}

/** What is wrong with a capture, the worst first; empty when all is well. */
export function troublesOf(
  row: ICaptureRow,
  trans: TranslationBundle
): ITrouble[] {
  const { problem, reason } = row;
  if (!isReadable(row)) {
    const name = trans.__('Unreadable');
    return [{ name, reason: problem ?? '', isError: true }];
  }
  const troubles: ITrouble[] = [];
  if (problem !== null) {
    troubles.push({
      name: trans.__('Damaged'),
      reason: problem,
      isError: true
    });
  }
  if (row.status !== 'ok') {
    const name = {
      partial: trans.__('Partial'),
      failed: trans.__('Failed'),
      interrupted: trans.__('Interrupted')
    }[row.status];
    troubles.push({ name, reason, isError: row.status === 'failed' });
  }
  return troubles;
}

/** The troubles as one text: 'Failed. The cell raised …'. */
export function toldTroubles(troubles: readonly ITrouble[]): string {
  return troubles
    .map(({ name, reason }) => `${name}. ${reason}`.trim())
    .join(' ');
}
