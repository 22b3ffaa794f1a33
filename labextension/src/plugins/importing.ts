import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';
import { fileUploadIcon } from '@jupyterlab/ui-components';
import React from 'react';

import type { Server } from '../api/server';
import { jaxprofIcon, nsysIcon, traceIcon } from '../icons';
import { FileModelFactory, ImportFactory } from '../importing/document';
import { takeDrops } from '../importing/drop';
import { fileSource } from '../importing/gather';
import type { IOutcome } from '../importing/model';
import { ImportsModel } from '../importing/model';
import { ImportsSection } from '../importing/section';
import { followSetting } from '../settings';
import { wordsOf } from '../sidebar/problem';
import { CommandIDs, ICapturesSidebar, IServer } from '../tokens';

const ID = 'jupyterlab-jaxprof:importing';
const ACCEPTED = '.pb,.nsys-rep,.qdstrm,.sqlite,.zip';

/** Makes captures of traces and reports: dropped on the sidebar, chosen, or opened in the file browser. */
export const importingPlugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Imports traces and reports as captures.',
  autoStart: true,
  requires: [IServer, ICapturesSidebar],
  optional: [
    ITranslator,
    IFileBrowserFactory,
    ISettingRegistry,
    ICommandPalette
  ],
  activate: (
    app: JupyterFrontEnd,
    server: Server,
    sidebar: ICapturesSidebar,
    translator: ITranslator | null,
    browsers: IFileBrowserFactory | null,
    settings: ISettingRegistry | null,
    palette: ICommandPalette | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_jaxprof');
    const model = new ImportsModel(server.client, trans);
    const teller = new Teller(app, sidebar, settings, trans);
    const importPaths = async (paths: readonly string[]): Promise<void> => {
      await Promise.all(
        paths.map(async path => {
          teller.tell(await importPath(app, model, path, trans));
        })
      );
    };
    sidebar.addSection(() =>
      React.createElement(ImportsSection, {
        model,
        trans,
        reveal: id => void app.commands.execute(CommandIDs.reveal, { id })
      })
    );
    takeDrops(sidebar.node, {
      upload: sources => {
        sources
          .then(all => {
            for (const source of all) {
              void model.upload(source).then(outcome => {
                teller.tell(outcome);
              });
            }
          })
          .catch((error: unknown) => {
            Notification.error(wordsOf(error, trans), { autoClose: 8000 });
          });
      },
      importPaths: paths => void importPaths(paths)
    });
    addCommands(app, sidebar, model, teller, browsers, importPaths, trans);
    addFileTypes(app, model, teller, trans);
    palette?.addItem({ command: CommandIDs.importFile, category: 'JaxProf' });
  }
};

/** Import a path of the file browser; one on another drive can't be read by the server. */
async function importPath(
  app: JupyterFrontEnd,
  model: ImportsModel,
  path: string,
  trans: TranslationBundle
): Promise<IOutcome | null> {
  const { contents } = app.serviceManager;
  const drive = contents.driveName(path);
  const local = contents.localPath(path);
  // jupyter-collaboration shows the server's own files under this name
  if (drive && drive !== 'RTC') {
    const message = trans.__(
      'It is on the drive %1, which the server does not read: download it, and drop it on the sidebar.',
      drive
    );
    return { title: local, capture: null, existing: null, message };
  }
  return model.importPath(local);
}

/** Tells how an import ended, where the sidebar doesn't show it. */
class Teller {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _sidebar: ICapturesSidebar,
    settings: ISettingRegistry | null,
    private readonly _trans: TranslationBundle
  ) {
    void followSetting(settings, ID, 'notify', value => {
      this._notify = value !== false;
    });
  }

  tell(outcome: IOutcome | null): void {
    if (!outcome) {
      return;
    }
    const { title, capture, message } = outcome;
    const visible = this._sidebar.model.isVisible;
    if (capture !== null) {
      const text = this._trans.__('Imported %1', title);
      if (visible) {
        void this._sidebar.model.reveal(capture, false);
        this._sidebar.model.announce(text);
      } else if (this._notify) {
        Notification.success(text, {
          autoClose: 8000,
          actions: [
            {
              label: this._trans.__('Show'),
              callback: () => {
                this.reveal(capture);
              }
            }
          ]
        });
      }
    } else if (!visible && this._notify) {
      Notification.error(`${title}: ${message}`, { autoClose: 8000 });
    }
  }

  reveal(id: string): void {
    void this._app.commands.execute(CommandIDs.reveal, { id });
  }

  private _notify = true;
}

function addCommands(
  app: JupyterFrontEnd,
  sidebar: ICapturesSidebar,
  model: ImportsModel,
  teller: Teller,
  browsers: IFileBrowserFactory | null,
  importPaths: (paths: readonly string[]) => Promise<void>,
  trans: TranslationBundle
): void {
  app.commands.addCommand(CommandIDs.reveal, {
    label: trans.__('Show a Capture in the List'),
    isVisible: () => false,
    execute: async args => {
      await app.commands.execute(CommandIDs.show);
      await sidebar.model.reveal(args.id as string);
    }
  });
  app.commands.addCommand(CommandIDs.importFile, {
    label: trans.__('Import a Trace or Report…'),
    caption: trans.__(
      'Make a capture of a trace (*.xplane.pb), an Nsight report (*.nsys-rep, *.sqlite) or a capture’s zip'
    ),
    icon: fileUploadIcon,
    execute: () => {
      const input = document.createElement('input');
      input.type = 'file';
      input.multiple = true;
      input.accept = ACCEPTED;
      input.addEventListener('change', () => {
        for (const file of Array.from(input.files ?? [])) {
          void model.upload(fileSource(file)).then(outcome => {
            teller.tell(outcome);
          });
        }
      });
      input.click();
    }
  });
  if (browsers) {
    app.commands.addCommand(CommandIDs.importFromBrowser, {
      label: trans.__('Import into JaxProf'),
      icon: jaxprofIcon,
      execute: async () => {
        const chosen = browsers.tracker.currentWidget?.selectedItems() ?? [];
        await app.commands.execute(CommandIDs.show);
        await importPaths(Array.from(chosen, ({ path }) => path));
      }
    });
  }
}

/** Let the file browser know traces and reports, and a double click import them. */
function addFileTypes(
  app: JupyterFrontEnd,
  model: ImportsModel,
  teller: Teller,
  trans: TranslationBundle
): void {
  const registry = app.docRegistry;
  const add = (
    name: string,
    displayName: string,
    icon: LabIcon,
    extensions: string[]
  ): void => {
    registry.addFileType({
      name,
      displayName,
      icon,
      extensions,
      mimeTypes: ['application/octet-stream'],
      contentType: 'file',
      fileFormat: 'base64'
    });
  };
  const report = trans.__('Nsight Systems Report');
  add('jaxprof-xplane', trans.__('JAX Trace'), traceIcon, ['.xplane.pb']);
  add('jaxprof-nsys', report, nsysIcon, ['.nsys-rep', '.qdstrm']);
  const modelFactory = new FileModelFactory();
  registry.addModelFactory(modelFactory);
  const addFactory = (name: string, types: string[]): void => {
    const options = {
      name,
      label: trans.__('JaxProf (import)'),
      modelName: modelFactory.name,
      fileTypes: types,
      defaultFor: types,
      readOnly: true
    };
    const run = async (path: string): Promise<string> => {
      const outcome = await importPath(app, model, path, trans);
      const id = outcome?.capture ?? outcome?.existing;
      if (id) {
        teller.reveal(id);
      }
      return id ? '' : (outcome?.message ?? '');
    };
    const reading = trans.__('Importing it as a capture…');
    const factory = new ImportFactory(options, reading, run);
    registry.addWidgetFactory(factory as DocumentRegistry.WidgetFactory);
  };
  addFactory('jaxprof-import', ['jaxprof-xplane', 'jaxprof-nsys']);
  // Databases of all kinds end so: another extension that shows them goes first.
  void app.restored.then(() => {
    const known = registry.getFileTypesForPath('x.sqlite');
    if (!known.some(({ extensions }) => extensions.includes('.sqlite'))) {
      add('jaxprof-sqlite', report, nsysIcon, ['.sqlite']);
      addFactory('jaxprof-import-sqlite', ['jaxprof-sqlite']);
    }
  });
}
