import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILayoutRestorer } from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import type { Server } from '../api/server';
import { CompareTabs } from '../compare/tabs';
import { compareIcon } from '../icons';
import { CommandIDs, ICapturesSidebar, IServer } from '../tokens';
import { capturesOf } from './selected';

/**
 * Captures side by side, and the command that shows them: `{ids}`, by default the selected ones.
 *
 * The first is the baseline. Of those selected in the sidebar, newest first, that is the oldest.
 */
export const comparePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-jaxprof:compare',
  description: 'Compares captures.',
  autoStart: true,
  requires: [IServer, ICapturesSidebar],
  optional: [ITranslator, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    server: Server,
    { model }: ICapturesSidebar,
    translator: ITranslator | null,
    restorer: ILayoutRestorer | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_jaxprof');
    const tabs = new CompareTabs(app, {
      server,
      openCapture: id =>
        void app.commands.execute(CommandIDs.openCapture, { id }),
      trans
    });
    app.commands.addCommand(CommandIDs.compare, {
      label: args => {
        const count = capturesOf(args, model).length;
        return count > 1
          ? trans.__('Compare %1 Captures', count)
          : trans.__('Compare With…');
      },
      caption: trans.__('Show captures side by side'),
      icon: compareIcon,
      isEnabled: args => capturesOf(args, model).length > 0,
      isVisible: args => capturesOf(args, model).length > 0,
      execute: args => {
        const ids = capturesOf(args, model);
        if (ids.length > 0) {
          const id = typeof args.id === 'string' ? args.id : undefined;
          tabs.open(args.ids === undefined ? [...ids].reverse() : ids, id);
        }
      }
    });
    tabs.restore(restorer, CommandIDs.compare);
  }
};
