import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { WidgetTracker } from '@jupyterlab/apputils';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { addToMain } from '../area';
import type { ICaptureTabOptions } from './tab';
import { CaptureTab, readSection } from './tab';

/** The tabs of captures: one for each. */
export class CaptureTabs {
  constructor(
    private readonly _app: JupyterFrontEnd,
    private readonly _options: Omit<
      ICaptureTabOptions,
      'captureId' | 'kind' | 'section'
    >
  ) {}

  /** Have the tabs come back after a reload of the page, where they were last. */
  restore(restorer: ILayoutRestorer | null, command: string): void {
    void restorer?.restore(this._tracker, {
      command,
      args: ({ captureId, kind, section }) => ({
        id: captureId,
        kind,
        section
      }),
      name: ({ captureId }) => captureId
    });
  }

  /** A capture may have another name in the list, which a hidden tab's label shall have too. */
  rename(): void {
    const { model } = this._options.actions;
    this._tracker.forEach(tab => {
      const name = model.row(tab.captureId)?.name;
      if (name !== undefined && name !== tab.title.label) {
        tab.title.label = name;
      }
    });
  }

  /** The store has changed. */
  notify(): void {
    this._tracker.forEach(tab => {
      tab.notify();
    });
  }

  /** Show a capture: in its tab if it has one. */
  open(captureId: string, args: ReadonlyPartialJSONObject): void {
    const tab =
      this._tracker.find(one => one.captureId === captureId) ??
      this._add(captureId, args);
    this._app.shell.activateById(tab.id);
  }

  private _add(captureId: string, args: ReadonlyPartialJSONObject): CaptureTab {
    const section = readSection(args.section);
    const row = this._options.actions.model.row(captureId);
    const kind = row?.kind ?? (typeof args.kind === 'string' ? args.kind : '');
    const tab = new CaptureTab({ ...this._options, captureId, kind, section });
    tab.id = `jaxprof-capture-${captureId}`;
    tab.sectionChanged.connect(() => void this._tracker.save(tab));
    void this._tracker.add(tab);
    addToMain(this._app, tab, 'JaxProf Capture');
    return tab;
  }

  private readonly _tracker = new WidgetTracker<CaptureTab>({
    namespace: 'jaxprof-capture'
  });
}
