import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import type { Server } from '../api/server';
import { wordsOf } from '../sidebar/problem';
import { CommandIDs, IServer } from '../tokens';

const ID = 'jupyterlab-jaxprof:store';

/** The settings of the store, which the server keeps: whoever writes them here has them obeyed everywhere. */
export const storePlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Keeps the settings of the store of captures.',
  autoStart: true,
  requires: [IServer, ISettingRegistry],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    server: Server,
    settings: ISettingRegistry,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_jaxprof');
    // The user says where the captures lie by a variable of the server; the settings can only show it.
    settings.transform(ID, {
      fetch: plugin => {
        const path = server.status?.store.path;
        if (path) {
          plugin.schema.description = trans.__(
            'Captures are kept in %1, which the Jupyter server’s configuration chooses (JaxProfApp.directory or JAXPROF_DIR).',
            path
          );
        }
        return plugin;
      }
    });
    void server
      .check({ background: true })
      .then(() => settings.load(ID))
      .then(loaded => {
        let kept = loaded.user.sizeLimit;
        loaded.changed.connect(() => {
          const limit = loaded.user.sizeLimit;
          if (limit === kept) {
            return;
          }
          kept = limit;
          server.client
            .putSettings({ size_limit: typeof limit === 'string' ? limit : '' })
            .then(() => app.commands.execute(CommandIDs.refresh))
            .catch((error: unknown) => {
              Notification.error(wordsOf(error, trans), { autoClose: 8000 });
            });
        });
      })
      .catch(() => undefined);
  }
};
