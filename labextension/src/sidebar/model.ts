import { VDomModel } from '@jupyterlab/ui-components';
import { Throttler } from '@lumino/polling';

import type { Client, IRequestOptions } from '../api/client';
import { problemOfError } from '../api/problem';
import type { Server } from '../api/server';
import type {
  CaptureChanges,
  ICapturePage,
  ICaptureQuery,
  ICaptureRow
} from '../api/types';
import { Selection } from './selection';
import { PAGE_ROWS, RowWindow } from './window';

/** What is true of the whole store. */
export type Totals = Omit<ICapturePage, 'captures'>;

const NO_FILTER: ICaptureQuery = { kind: '', notebook: '', text: '' };
const EVENT_MS = 300;
const FIRST_RETRY_MS = 2000;
const LAST_RETRY_MS = 60_000;

/**
 * The captures as the panel shows them.
 *
 * Nothing is asked of the server while the panel is hidden; what changes meanwhile is one refresh when it is
 * shown again. An answer to an earlier question than the latest is dropped.
 */
export class CapturesModel extends VDomModel {
  constructor(readonly server: Server) {
    super();
    this._client = server.client;
    this._throttler = new Throttler(() => this.refresh({ background: true }), {
      limit: EVENT_MS,
      edge: 'trailing'
    });
    server.changed.connect(this._onServerChanged, this);
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    window.clearTimeout(this._retry);
    this._throttler.dispose();
    this.server.changed.disconnect(this._onServerChanged, this);
    super.dispose();
  }

  get rows(): RowWindow {
    return this._rows;
  }

  /** Null until the first answer. */
  get totals(): Totals | null {
    return this._totals;
  }

  get query(): ICaptureQuery {
    return this._query;
  }

  get isFiltered(): boolean {
    return Object.values(this._query).some(value => value !== '');
  }

  /** A question is on its way whose answer will replace what is shown. */
  get isLoading(): boolean {
    return this._loading > 0;
  }

  /** The selected capture; its row may be out of the loaded pages. */
  get selectedId(): string | null {
    return this._selectedId;
  }

  /** All that are selected, the latest one among them; in the list's order where it has loaded them. */
  get selectedIds(): readonly string[] {
    const places = this._selection.ids.map(
      id => [this._rows.indexOf(id), id] as const
    );
    return places.sort(([a], [b]) => a - b).map(([, id]) => id);
  }

  /** Those of the selected that are loaded. */
  get selectedRows(): ICaptureRow[] {
    return this.selectedIds
      .map(id => this.row(id))
      .filter(row => row !== undefined);
  }

  get hasSeveral(): boolean {
    return this._selection.size > 1;
  }

  isSelected(id: string): boolean {
    return this._selection.has(id);
  }

  /** The one that the keyboard is at. */
  get selected(): ICaptureRow | undefined {
    return this._selectedId === null ? undefined : this.row(this._selectedId);
  }

  /** A capture's row, if it is loaded. */
  row(id: string): ICaptureRow | undefined {
    return this._rows.get(this._rows.indexOf(id));
  }

  /** The capture whose name is being edited. */
  get renamingId(): string | null {
    return this._renamingId;
  }

  get detailsOpen(): boolean {
    return this._detailsOpen;
  }

  /** The latest result, as a screen reader shall say it. */
  get announcement(): string {
    return this._announcement;
  }

  /** The selected row shall get the keyboard; the list clears this when it has. */
  focusWanted = false;

  /** The selected row shall be in sight; the list clears this when it is. */
  revealWanted = false;

  get isVisible(): boolean {
    return this._visible;
  }

  set isVisible(visible: boolean) {
    if (visible === this._visible) {
      return;
    }
    this._visible = visible;
    if (visible) {
      void this.reload({ background: true });
    }
    this.stateChanged.emit();
  }

  /** The store has changed, or may have: refresh soon, once, and not while nobody looks. */
  notify(): void {
    if (this._visible) {
      void this._throttler.invoke();
    }
  }

  /** Ask for the server's status and the captures. */
  async reload(options?: IRequestOptions): Promise<void> {
    if ((await this.server.check(options)) === null) {
      await this.refresh(options);
    }
  }

  /** Load what is in sight anew. Resolves when that is shown, be it by a later call's answer. */
  async refresh(options?: IRequestOptions): Promise<void> {
    let latest = (this._latest = this._refresh(options));
    await latest;
    while (latest !== this._latest) {
      latest = this._latest;
      await latest;
    }
  }

  private async _refresh(options?: IRequestOptions): Promise<void> {
    const rows = new RowWindow();
    const [first, last] = this._sight;
    this._generation += 1;
    this._asked = new Set();
    const pages = RowWindow.pages(first, last);
    if (await this._load(rows, pages, options)) {
      this._rows = rows;
      this.stateChanged.emit();
      // The list may have become so short that nothing is in sight.
      this.show(...this._sight);
    }
  }

  /** Tell which rows are in sight; those that aren't loaded will be. */
  show(first: number, last: number): void {
    this._sight = [first, last];
    const missing = this._rows
      .missing(first, last)
      .filter(page => !this._asked.has(page));
    if (missing.length > 0) {
      void this._load(this._rows, missing).then(() => {
        this.stateChanged.emit();
      });
    }
  }

  /** Change the filters; the list starts at its top again. */
  async filter(changes: Partial<ICaptureQuery>): Promise<void> {
    this._query = { ...this._query, ...changes };
    this._sight = [0, 0];
    this.stateChanged.emit();
    await this.refresh();
    this.revealWanted = true;
    this.stateChanged.emit();
  }

  async clearFilters(): Promise<void> {
    await this.filter(NO_FILTER);
  }

  /** Show a capture, whatever is filtered out; it may be too far down the list to be there by itself. */
  async reveal(id: string, focus = true): Promise<void> {
    if (this._rows.indexOf(id) < 0) {
      await this.filter(NO_FILTER);
      await this._loadPageOf(id);
    }
    this.select(id);
    this.revealWanted = true;
    this.stateChanged.emit();
    if (focus) {
      this.focusSelected();
    }
  }

  /** Load the page that holds a capture, by halves: the list is in the order of identifiers, the newest first. */
  private async _loadPageOf(id: string): Promise<void> {
    const rows = this._rows;
    let low = 0;
    let high = Math.ceil(rows.length / PAGE_ROWS) - 1;
    while (low <= high && rows.indexOf(id) < 0) {
      const page = Math.floor((low + high) / 2);
      const start = page * PAGE_ROWS;
      if (!rows.get(start) && !(await this._load(rows, [page]))) {
        return;
      }
      if (id > (rows.get(start)?.id ?? '')) {
        high = page - 1;
      } else {
        low = page + 1;
      }
    }
  }

  /** Select this capture alone. */
  select(id: string | null): void {
    if (id !== this._selectedId || this._selection.size > 1) {
      this._selectedId = id;
      this._selection.only(id);
      this.stateChanged.emit();
    }
  }

  /** Take a capture into the selection, or out of it; it is the one that the keyboard is at in either case. */
  toggle(id: string): void {
    this._selection.toggle(id);
    this._selectedId = id;
    this.stateChanged.emit();
  }

  /** Select everything from where the selection began to this capture. */
  extendTo(id: string): void {
    const first = this._rows.indexOf(this._selection.anchor ?? id);
    const last = this._rows.indexOf(id);
    const from = first < 0 ? last : Math.min(first, last);
    const count = first < 0 ? 1 : Math.abs(last - first) + 1;
    const ids = Array.from(
      { length: count },
      (_, i) => this._rows.get(from + i)?.id
    );
    this._selection.replace(ids.filter(one => one !== undefined));
    this._selectedId = id;
    this.stateChanged.emit();
  }

  /** Give the keyboard to the selected row, as soon as it is drawn. */
  focusSelected(): void {
    this.focusWanted = true;
    this.stateChanged.emit();
  }

  startRenaming(id: string): void {
    this._selectedId = id;
    this._selection.only(id);
    this._renamingId = id;
    this.stateChanged.emit();
  }

  stopRenaming(): void {
    this._renamingId = null;
    this.focusWanted = true;
    this.stateChanged.emit();
  }

  setDetailsOpen(open: boolean): void {
    this._detailsOpen = open;
    this.stateChanged.emit();
  }

  announce(text: string): void {
    this._announcement = text;
    this.stateChanged.emit();
  }

  /** Change a capture; the row shows it at once, and the old values again if the server refuses. */
  async update({ id }: { id: string }, changes: CaptureChanges): Promise<void> {
    this._rows.replace(id, changes);
    this.stateChanged.emit();
    try {
      await this._client.update(id, changes);
    } catch (error) {
      await this.refresh();
      throw error;
    }
  }

  /** Delete captures, one request each. Rejects with the first failure, after the list was loaded anew. */
  async delete(ids: readonly string[]): Promise<void> {
    const next = this._neighbour(ids);
    try {
      for (const id of ids) {
        await this._client.delete(id);
      }
      this._selection.drop(ids);
      if (this._selectedId !== null && ids.includes(this._selectedId)) {
        this._selectedId = next;
        this._selection.only(next);
        this.focusWanted = next !== null;
      }
    } finally {
      await this.refresh();
    }
  }

  /** The capture that is selected after `ids` are gone: the next one, or the one before. */
  private _neighbour(ids: readonly string[]): string | null {
    const index =
      this._selectedId === null ? -1 : this._rows.indexOf(this._selectedId);
    const candidates = [this._rows.get(index + 1), this._rows.get(index - 1)];
    const next = candidates.find(row => row && !ids.includes(row.id));
    return next?.id ?? null;
  }

  /** Fill pages of `rows`. False when the answer came too late, or not at all. */
  private async _load(
    rows: RowWindow,
    pages: readonly number[],
    options?: IRequestOptions
  ): Promise<boolean> {
    const generation = this._generation;
    const asked = this._asked;
    pages.forEach(page => asked.add(page));
    this._loading += 1;
    try {
      for (const page of pages) {
        const answer = await this._client.captures(
          this._query,
          page * PAGE_ROWS,
          PAGE_ROWS,
          options
        );
        if (generation !== this._generation || this.isDisposed) {
          return false;
        }
        rows.set(page, answer);
        this._totals = answer;
      }
      this._retryMs = FIRST_RETRY_MS;
      return true;
    } catch (error) {
      if (generation === this._generation && !this.isDisposed) {
        this.server.report(problemOfError(error));
      }
      return false;
    } finally {
      this._loading -= 1;
      pages.forEach(page => asked.delete(page));
    }
  }

  /** A server that went away comes back: ask again, less and less often, while somebody looks. */
  private _onServerChanged(): void {
    window.clearTimeout(this._retry);
    if (this.server.problem?.kind === 'unreachable') {
      this._retry = window.setTimeout(() => {
        if (this._visible && !this.isDisposed) {
          void this.reload({ background: true });
        }
      }, this._retryMs);
      this._retryMs = Math.min(this._retryMs * 2, LAST_RETRY_MS);
    }
    this.stateChanged.emit();
  }

  private readonly _client: Client;
  private readonly _throttler: Throttler;
  private _rows = new RowWindow();
  private _totals: Totals | null = null;
  private _query = NO_FILTER;
  private _sight: [number, number] = [0, 0];
  private _generation = 0;
  private _latest: Promise<void> = Promise.resolve();
  private _asked = new Set<number>();
  private _loading = 0;
  private _visible = false;
  private _selectedId: string | null = null;
  private readonly _selection = new Selection();
  private _renamingId: string | null = null;
  private _detailsOpen = false;
  private _announcement = '';
  private _retry = 0;
  private _retryMs = FIRST_RETRY_MS;
}
