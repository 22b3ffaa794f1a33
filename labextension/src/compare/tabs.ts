import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';

import { addToMain } from '../area';
import type { ICompareTabOptions } from './tab';
import { CompareTab } from './tab';

/** The tabs of comparisons: one for each set of captures. */
export class CompareTabs {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _options: Omit<ICompareTabOptions, 'ids'>
  ) {}

  /** Have the tabs come back after a reload of the page, where they were last. */
  restore(restorer: ILayoutRestorer | null, command: string): void {
    void restorer?.restore(this._tracker, {
      command,
      args: ({ ids, id }) => ({ ids: [...ids], id }),
      name: ({ id }) => id
    });
  }

  /** Compare captures, in the tab that has just these if there is one. */
  open(ids: readonly string[], id?: string): void {
    const same = (tab: CompareTab): boolean =>
      tab.ids.length === ids.length && ids.every(one => tab.ids.includes(one));
    const tab = this._tracker.find(same) ?? this._add(ids, id);
    this._app.shell.activateById(tab.id);
  }

  private _add(ids: readonly string[], id?: string): CompareTab {
    const tab = new CompareTab({ ...this._options, ids });
    tab.id =
      id ??
      `jaxprof-compare-${crypto.getRandomValues(new Uint32Array(1)).join('')}`;
    tab.idsChanged.connect(() => void this._tracker.save(tab));
    void this._tracker.add(tab);
    addToMain(this._app, tab, 'JaxProf Comparison');
    return tab;
  }

  private readonly _tracker = new WidgetTracker<CompareTab>({
    namespace: 'jaxprof-compare'
  });
}
