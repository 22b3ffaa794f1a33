import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import { Client } from '../api/client';
import { Server } from '../api/server';
import { IServer } from '../tokens';

/** Provides the server's half to the other plugins. */
export const serverPlugin: JupyterFrontEndPlugin<Server> = {
  id: 'jupyterlab-jaxprof:server',
  description: 'Talks to the server half of jupyterlab-jaxprof.',
  provides: IServer,
  activate: (app: JupyterFrontEnd) =>
    new Server(new Client(app.serviceManager.serverSettings))
};
