import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILabShell } from '@jupyterlab/application';
import { MainAreaWidget, Notification } from '@jupyterlab/apputils';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import type { Server } from '../api/server';
import { jaxprofIcon } from '../icons';
import { wordsOf } from '../sidebar/problem';
import { CommandIDs, IServer } from '../tokens';

const MARKDOWN = 'text/markdown';

/** Shows the documentation's page about a finding beside the notebook, where there is room for tabs. */
export const patternsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-jaxprof:patterns',
  description: 'Shows what a finding means.',
  autoStart: true,
  requires: [IServer, IRenderMimeRegistry],
  optional: [ILabShell, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    server: Server,
    rendermime: IRenderMimeRegistry,
    labShell: ILabShell | null,
    translator: ITranslator | null
  ) => {
    if (!labShell) {
      return;
    }
    const trans = (translator ?? nullTranslator).load('jupyterlab_jaxprof');
    const shown = new Map<string, MainAreaWidget>();
    app.commands.addCommand(CommandIDs.openPattern, {
      label: trans.__('About a Finding'),
      execute: async args => {
        const name = typeof args.pattern === 'string' ? args.pattern : '';
        const known = shown.get(name);
        if (known) {
          labShell.activateById(known.id);
          return;
        }
        try {
          const page = await pageOf(
            await server.client.pattern(name),
            rendermime
          );
          page.id = `jaxprof-pattern-${name}`;
          page.title.label = name;
          page.title.icon = jaxprofIcon;
          page.disposed.connect(() => shown.delete(name));
          shown.set(name, page);
          labShell.add(page, 'main', { mode: 'split-right' });
          labShell.activateById(page.id);
        } catch (error) {
          Notification.error(
            `${trans.__('The page could not be got.')} ${wordsOf(error, trans)}`,
            { autoClose: 8000 }
          );
        }
      }
    });
  }
};

async function pageOf(
  markdown: string,
  rendermime: IRenderMimeRegistry
): Promise<MainAreaWidget> {
  const content = rendermime.createRenderer(MARKDOWN);
  content.addClass('jp-JaxProf-page');
  await content.renderModel(
    rendermime.createModel({ data: { [MARKDOWN]: markdown } })
  );
  return new MainAreaWidget({ content });
}
