import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import type { Client } from '../api/client';
import type { CaptureChanges } from '../api/types';
import { archiveUrl, fileUrl, viewerUrl } from '../api/urls';
import { download } from '../sidebar/actions';
import { wordsOf } from '../sidebar/problem';
import { CommandIDs } from '../tokens';
import type { ICardActions } from './actions';

export interface IActionsOptions {
  client: Client;
  commands: CommandRegistry;
  trans: TranslationBundle;
  /** Called when a capture's name or pin has changed. */
  onChanged: () => void;
}

/** What cards can have done, by the application's commands and the server. */
export function cardActions(options: IActionsOptions): ICardActions {
  const { client, commands, trans, onChanged } = options;
  const execute = (command: string, args: Record<string, string | string[]>) =>
    void commands.execute(command, args);
  const ifRegistered = (
    command: string,
    act: (value: string) => void
  ): ((value: string) => void) | null =>
    commands.hasCommand(command) ? act : null;
  const update = async (
    id: string,
    changes: CaptureChanges
  ): Promise<boolean> => {
    try {
      await client.update(id, changes);
    } catch (error) {
      tell(trans.__('The change was not saved.'), error, trans);
      return false;
    }
    onChanged();
    return true;
  };
  return {
    openXprof: target => {
      execute(CommandIDs.openXprof, { ...target });
    },
    xprofUrl: target =>
      viewerUrl(client.settings, 'xprof', { ...target, host: '' }),
    download: id => void downloadAll(client, id, trans),
    // Asked when a card is drawn: who provides a command may come later than the cards.
    get compare() {
      return ifRegistered(CommandIDs.compare, id => {
        execute(CommandIDs.compare, { ids: [id] });
      });
    },
    get openCapture() {
      return ifRegistered(CommandIDs.openCapture, id => {
        execute(CommandIDs.openCapture, { id });
      });
    },
    get openPattern() {
      return ifRegistered(CommandIDs.openPattern, pattern => {
        execute(CommandIDs.openPattern, { pattern });
      });
    },
    rename: (id, name) => update(id, { name }),
    setPinned: (id, pinned) => update(id, { pinned })
  };
}

/** Download the only file as it is, or all as a zip, as the sidebar does. */
async function downloadAll(
  client: Client,
  id: string,
  trans: TranslationBundle
): Promise<void> {
  try {
    const { files } = await client.capture(id);
    const only = files.length === 1 ? files[0] : undefined;
    download(
      only
        ? fileUrl(client.settings, id, only.path)
        : archiveUrl(client.settings, id)
    );
  } catch (error) {
    tell(trans.__('Nothing was downloaded.'), error, trans);
  }
}

function tell(what: string, error: unknown, trans: TranslationBundle): void {
  Notification.error(`${what} ${wordsOf(error, trans)}`, { autoClose: 8000 });
}
