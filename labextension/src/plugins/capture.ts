import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILayoutRestorer } from '@jupyterlab/application';
import { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Server } from '../api/server';
import { CaptureTabs } from '../capture/tabs';
import type { ICardActions } from '../card/actions';
import { cardActions } from '../card/commands';
import { CommandIDs, ICapturesSidebar, IServer } from '../tokens';
import { followChanges } from './changes';
import { capturesOf } from './selected';

/** A capture's own tab, and the command that opens it: `{id, section}`, by default at the selected capture. */
export const capturePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-jaxprof:capture',
  description: 'Shows a capture in a tab of its own.',
  autoStart: true,
  requires: [IServer, ICapturesSidebar],
  optional: [ITranslator, ILayoutRestorer, IEditorLanguageRegistry],
  activate: (
    app: JupyterFrontEnd,
    server: Server,
    { actions }: ICapturesSidebar,
    translator: ITranslator | null,
    restorer: ILayoutRestorer | null,
    languages: IEditorLanguageRegistry | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_jaxprof');
    const { model } = actions;
    const changed = (): void => {
      tabs.notify();
      model.notify();
    };
    const tabs = new CaptureTabs(app, {
      server,
      actions,
      cardActions: ownCardActions(app, server, changed, trans),
      languages,
      openCapture: id =>
        void app.commands.execute(CommandIDs.openCapture, { id }),
      compare: ids => void app.commands.execute(CommandIDs.compare, { ids }),
      trans
    });
    app.commands.addCommand(CommandIDs.openCapture, {
      label: trans.__('Open'),
      caption: trans.__('Show the capture in a tab of its own'),
      isEnabled: args => capturesOf(args, model).length === 1,
      isVisible: args => capturesOf(args, model).length === 1,
      execute: args => {
        const [id] = capturesOf(args, model);
        const row = model.selected;
        if (id === undefined) {
          return;
        }
        if (args.id === undefined && row) {
          actions.openCapture(row);
        } else {
          tabs.open(id, args);
        }
      }
    });
    tabs.restore(restorer, CommandIDs.openCapture);
    model.stateChanged.connect(() => {
      tabs.rename();
    });
    followChanges(app, () => {
      tabs.notify();
    });
  }
};

/** What a card can have done; in a capture's own tab it has no button that opens that. */
function ownCardActions(
  app: JupyterFrontEnd,
  { client }: Server,
  onChanged: () => void,
  trans: TranslationBundle
): ICardActions {
  const { commands } = app;
  const actions = cardActions({ client, commands, trans, onChanged });
  return Object.defineProperty(actions, 'openCapture', { value: null });
}
