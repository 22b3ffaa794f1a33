import { Token } from '@lumino/coreutils';
import type React from 'react';

import type { Server } from './api/server';
import type { ViewerName } from './api/types';
import type { Actions } from './sidebar/actions';
import type { CapturesModel } from './sidebar/model';

/** The server's half, as the plugins share it. */
export const IServer = new Token<Server>(
  'jupyterlab-jaxprof:IServer',
  'The server half of jupyterlab-jaxprof: its REST client and its status.'
);

/** The sidebar, for what stands above its list or is dropped on it. */
export interface ICapturesSidebar {
  readonly node: HTMLElement;
  readonly model: CapturesModel;
  readonly actions: Actions;
  readonly isVisible: boolean;
  /** Show a section between the header and the list. */
  addSection(section: React.ComponentType): void;
}

export const ICapturesSidebar = new Token<ICapturesSidebar>(
  'jupyterlab-jaxprof:ICapturesSidebar',
  'The sidebar that lists the captures.'
);

export namespace CommandIDs {
  export const show = 'jaxprof:show';
  export const refresh = 'jaxprof:refresh';
  export const doctor = 'jaxprof:doctor';
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
  export const importFile = 'jaxprof:import';
  export const importFromBrowser = 'jaxprof:import-from-browser';
  export const toggleStrip = 'jaxprof:toggle-strip';
  export const reveal = 'jaxprof:reveal';
  export const stopXprof = 'jaxprof:stop-xprof';
}

/** The commands that open a viewer, at `{run, tool, host}` or at none. */
export const OPEN_VIEWER: Record<ViewerName, string> = {
  xprof: CommandIDs.openXprof,
  tensorboard: CommandIDs.openTensorboard
};
