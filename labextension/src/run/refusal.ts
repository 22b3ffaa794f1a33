import type { NotebookPanel } from '@jupyterlab/notebook';
import type { TranslationBundle } from '@jupyterlab/translation';

import { foreignMagic } from '../magics';

/** Say why the active cell can't be run under a magic; empty when it can. */
export function refusal(
  panel: NotebookPanel | null,
  trans: TranslationBundle
): string {
  const cell = panel?.content.activeCell?.model;
  if (!panel || cell?.type !== 'code') {
    return trans.__('Select a code cell first.');
  }
  const source = cell.sharedModel.getSource();
  if (!source.trim()) {
    return trans.__('This cell is empty.');
  }
  const magic = foreignMagic(source);
  if (magic !== null) {
    return trans.__(
      'This cell begins with %1, and a cell can have one magic only.',
      magic
    );
  }
  return kernelRefusal(panel, trans);
}

function kernelRefusal(
  { sessionContext }: NotebookPanel,
  trans: TranslationBundle
): string {
  const kernel = sessionContext.session?.kernel;
  if (!kernel) {
    // A run waits for a kernel that is on its way.
    return sessionContext.isReady
      ? trans.__('This notebook has no kernel: choose one first.')
      : '';
  }
  const { specs } = sessionContext.specsManager;
  const language = specs?.kernelspecs[kernel.name]?.language ?? 'python';
  return language.toLowerCase() === 'python'
    ? ''
    : trans.__('The kernel runs %1, and JAX needs Python.', language);
}
