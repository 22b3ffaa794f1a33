import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import type { Server } from '../api/server';
import { CAPTURES_EVENT } from '../api/types';
import { cardActions } from '../card/commands';
import { keepKeys } from '../card/keys';
import { CAPTURE_MIME, CardRenderer } from '../card/renderer';
import { StoredStates } from '../card/stored';
import { IServer } from '../tokens';

/** Before `text/html`, whose rank is 50. */
const RANK = 45;

/** Shows a capture's card in a notebook, live. */
export const cardPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-jaxprof:card',
  description: 'Shows captures in notebooks.',
  autoStart: true,
  requires: [IServer, IRenderMimeRegistry],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    server: Server,
    rendermime: IRenderMimeRegistry,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_jaxprof');
    const states = new StoredStates(server, trans);
    const { commands } = app;
    const actions = cardActions({
      client: server.client,
      commands,
      trans,
      onChanged: () => {
        states.refresh();
      }
    });
    rendermime.addFactory({
      safe: true,
      mimeTypes: [CAPTURE_MIME],
      defaultRank: RANK,
      createRenderer: ({ sanitizer }) =>
        new CardRenderer(sanitizer, { actions, states, trans })
    });
    app.serviceManager.events.stream.connect((_, event) => {
      if (event.schema_id === CAPTURES_EVENT) {
        states.refresh();
      }
    });
    keepKeys();
  }
};
