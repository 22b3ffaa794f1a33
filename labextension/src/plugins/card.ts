import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import type { Server } from '../api/server';
import { viewerUrl } from '../api/urls';
import { CAPTURE_MIME, CardRenderer } from '../card/renderer';
import { CommandIDs, IServer } from '../tokens';

/** Before `text/html`, whose rank is 50. */
const RANK = 45;

/** Shows a capture's card in a notebook, with live links. */
export const cardPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-jaxprof:card',
  description: 'Shows captures in notebooks.',
  autoStart: true,
  requires: [IServer, IRenderMimeRegistry],
  activate: (
    app: JupyterFrontEnd,
    server: Server,
    rendermime: IRenderMimeRegistry
  ) => {
    rendermime.addFactory({
      safe: true,
      mimeTypes: [CAPTURE_MIME],
      defaultRank: RANK,
      createRenderer: ({ sanitizer }) =>
        new CardRenderer(sanitizer, {
          open: target =>
            void app.commands.execute(CommandIDs.openXprof, { ...target }),
          urlOf: target => viewerUrl(server.client.settings, 'xprof', target)
        })
    });
  }
};
