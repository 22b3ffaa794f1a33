import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ICommandPalette,
  ISessionContextDialogs,
  IToolbarWidgetRegistry
} from '@jupyterlab/apputils';
import type { Cell } from '@jupyterlab/cells';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import type { Server } from '../api/server';
import { cellButton, measureMenu, MenuButton } from '../run/button';
import { addRunCommands } from '../run/commands';
import { followDefaults } from '../run/defaults';
import { INSERT_COMMAND, magicsOf } from '../run/magics';
import { IServer } from '../tokens';

const ID = 'jupyterlab-jaxprof:run';
const TOOLBAR_ITEM = 'jaxprof-measure';

/** Runs cells under the magics without typing them, and gives the magics their default options. */
export const runPlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Runs cells under the magics without typing them.',
  autoStart: true,
  requires: [IServer],
  optional: [
    INotebookTracker,
    ITranslator,
    ICommandPalette,
    IToolbarWidgetRegistry,
    ISessionContextDialogs,
    ISettingRegistry
  ],
  activate: (
    app: JupyterFrontEnd,
    server: Server,
    notebooks: INotebookTracker | null,
    givenTranslator: ITranslator | null,
    palette: ICommandPalette | null,
    toolbars: IToolbarWidgetRegistry | null,
    dialogs: ISessionContextDialogs | null,
    settings: ISettingRegistry | null
  ) => {
    const translator = givenTranslator ?? nullTranslator;
    const trans = translator.load('jupyterlab_jaxprof');
    void settings
      ?.load(ID)
      .then(loaded => followDefaults(loaded, server, trans));
    if (!notebooks) {
      return;
    }
    const magics = magicsOf(trans);
    addRunCommands({
      app,
      notebooks,
      magics,
      dialogs: dialogs ?? undefined,
      translator,
      trans
    });
    for (const { command, inserted } of magics) {
      palette?.addItem({ command, category: 'JaxProf' });
      const args = { magic: inserted };
      palette?.addItem({ command: INSERT_COMMAND, args, category: 'JaxProf' });
    }
    const menu = measureMenu(app.commands, magics);
    toolbars?.addFactory<Cell>('Cell', TOOLBAR_ITEM, cell =>
      cellButton(cell, menu, notebooks, trans)
    );
    toolbars?.addFactory(
      'Notebook',
      TOOLBAR_ITEM,
      () => new MenuButton(menu, trans)
    );
  }
};
