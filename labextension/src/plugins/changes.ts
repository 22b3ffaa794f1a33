import type { JupyterFrontEnd } from '@jupyterlab/application';
import { NotebookActions } from '@jupyterlab/notebook';

import { CAPTURES_EVENT } from '../api/types';
import { usesMagics } from '../magics';
import { measuredCells } from '../run/measure';

/** Call `notify` when the server says that the store has changed, or when it may have while nobody heard. */
export function followChanges(app: JupyterFrontEnd, notify: () => void): void {
  app.serviceManager.events.stream.connect((_, event) => {
    if (event.schema_id === CAPTURES_EVENT) {
      notify();
    }
  });
  // The stream of events may be away (a proxy, a laptop that slept): these need no server to tell.
  NotebookActions.executed.connect((_, { cell }) => {
    const source = cell.model.sharedModel.getSource();
    if (usesMagics(source) || measuredCells.has(cell)) {
      notify();
    }
  });
  window.addEventListener('online', notify);
}
