import { Token } from '@lumino/coreutils';

import type { Server } from './api/server';
import type { ViewerName } from './api/types';

/** The server's half, as the plugins share it. */
export const IServer = new Token<Server>(
  'jupyterlab-jaxprof:IServer',
  'The server half of jupyterlab-jaxprof: its REST client and its status.'
);

export namespace CommandIDs {
  export const show = 'jaxprof:show';
  export const refresh = 'jaxprof:refresh';
  export const open = 'jaxprof:open';
  export const openAnother = 'jaxprof:open-another';
  export const openInTensorboard = 'jaxprof:open-in-tensorboard';
  export const download = 'jaxprof:download';
  export const downloadArchive = 'jaxprof:download-archive';
  export const rename = 'jaxprof:rename';
  export const pin = 'jaxprof:pin';
  export const details = 'jaxprof:details';
  export const copyPath = 'jaxprof:copy-path';
  export const copyRun = 'jaxprof:copy-run';
  export const remove = 'jaxprof:delete';
  /** With `{ids}`: show these captures side by side. */
  export const compare = 'jaxprof:compare';
  /** With `{id}`: show the capture in a tab of its own. */
  export const openCapture = 'jaxprof:open-capture';
  /** With `{pattern}`: show the page of the documentation about it. */
  export const openPattern = 'jaxprof:open-pattern';
  export const openXprof = 'jaxprof:open-xprof';
  export const openTensorboard = 'jaxprof:open-tensorboard';
  export const restartXprof = 'jaxprof:restart-xprof';
  export const stopXprof = 'jaxprof:stop-xprof';
}

/** The commands that open a viewer, at `{run, tool, host}` or at none. */
export const OPEN_VIEWER: Record<ViewerName, string> = {
  xprof: CommandIDs.openXprof,
  tensorboard: CommandIDs.openTensorboard
};
