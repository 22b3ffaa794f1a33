import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { Widget } from '@lumino/widgets';
import { SplitPanel } from '@lumino/widgets';

const LEAST_PX = 100;

/** Add a widget to the main area; below it in Notebook 7, whose main area holds one document and takes no other. */
export function addToMain(
  { shell }: JupyterFrontEnd,
  widget: Widget,
  type: string
): void {
  shell.add(widget, 'main', { type });
  if (widget.parent === null) {
    shell.add(widget, 'down', { type });
    requestAnimationFrame(() => {
      makeRoom(widget);
    });
  }
}

/** Notebook 7 gives what is below no height of its own at first. */
function makeRoom(widget: Widget): void {
  let parent = widget.parent;
  while (parent && !(parent instanceof SplitPanel)) {
    parent = parent.parent;
  }
  if (parent && widget.node.clientHeight < LEAST_PX) {
    parent.setRelativeSizes([2, 3]);
  }
}
