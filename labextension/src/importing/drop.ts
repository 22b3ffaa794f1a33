import type { Drag } from '@lumino/dragdrop';

import type { ISource } from './gather';
import { droppedSources } from './gather';

/** Under which JupyterLab's file browser gives the paths that are dragged. */
const CONTENTS_MIME = 'application/x-jupyter-icontents';
const TARGET_CLASS = 'jp-mod-dropTarget';

export interface IDropActions {
  /** Files and folders of the user's own machine; it rejects where they can't be read. */
  upload: (sources: Promise<ISource[]>) => void;
  /** Paths of the file browser. */
  importPaths: (paths: string[]) => void;
}

/** Take files that are dropped on `node`, from the desktop and from JupyterLab's file browser. */
export function takeDrops(node: HTMLElement, actions: IDropActions): void {
  takeDesktopDrops(node, actions);
  takeBrowserDrops(node, actions);
}

function takeDesktopDrops(node: HTMLElement, actions: IDropActions): void {
  const over = (event: DragEvent): void => {
    if (event.dataTransfer?.types.includes('Files')) {
      event.preventDefault();
      event.stopPropagation();
      event.dataTransfer.dropEffect = 'copy';
      node.classList.add(TARGET_CLASS);
    }
  };
  node.addEventListener('dragenter', over);
  node.addEventListener('dragover', over);
  node.addEventListener('dragleave', event => {
    if (!node.contains(event.relatedTarget as Node | null)) {
      node.classList.remove(TARGET_CLASS);
    }
  });
  node.addEventListener('drop', event => {
    node.classList.remove(TARGET_CLASS);
    const data = event.dataTransfer;
    if (data?.types.includes('Files')) {
      event.preventDefault();
      event.stopPropagation();
      actions.upload(droppedSources(data));
    }
  });
}

function takeBrowserDrops(node: HTMLElement, actions: IDropActions): void {
  const listen = (name: string, take: (event: Drag.Event) => void): void => {
    // Lumino's events have names that the DOM's types don't know.
    node.addEventListener(name, (event: Event & Partial<Drag.Event>) => {
      const drag = event as unknown as Drag.Event;
      if (drag.mimeData.hasData(CONTENTS_MIME)) {
        drag.preventDefault();
        drag.stopPropagation();
        take(drag);
      }
    });
  };
  listen('lm-dragenter', () => {
    node.classList.add(TARGET_CLASS);
  });
  listen('lm-dragleave', event => {
    if (!node.contains(event.relatedTarget as Node | null)) {
      node.classList.remove(TARGET_CLASS);
    }
  });
  listen('lm-dragover', event => {
    event.dropAction = event.proposedAction;
  });
  listen('lm-drop', event => {
    node.classList.remove(TARGET_CLASS);
    // 'move' would have the file browser take the files away
    event.dropAction = 'none';
    actions.importPaths(event.mimeData.getData(CONTENTS_MIME) as string[]);
  });
}
