import type { ICapturePage, ICaptureRow } from '../api/types';

export const PAGE_ROWS = 100;

/** Rows of a long list, of which only some pages are loaded. */
export class RowWindow {
  /** How many rows the list has. */
  get length(): number {
    return this._length;
  }

  get(index: number): ICaptureRow | undefined {
    return this._pages.get(Math.floor(index / PAGE_ROWS))?.[index % PAGE_ROWS];
  }

  /** Where a capture stands among the loaded rows; -1 if it isn't there. */
  indexOf(id: string): number {
    for (const [page, rows] of this._pages) {
      const index = rows.findIndex(row => row.id === id);
      if (index >= 0) {
        return page * PAGE_ROWS + index;
      }
    }
    return -1;
  }

  /** The numbers of the pages that hold the rows from `first` to `last`. */
  static pages(first: number, last: number): number[] {
    const start = Math.floor(Math.max(first, 0) / PAGE_ROWS);
    const end = Math.floor(Math.max(last, 0) / PAGE_ROWS);
    return Array.from({ length: end - start + 1 }, (_, i) => start + i);
  }

  /** Those of the pages that are not loaded and that the list has. */
  missing(first: number, last: number): number[] {
    return RowWindow.pages(first, last).filter(
      page => !this._pages.has(page) && page * PAGE_ROWS < this._length
    );
  }

  set(page: number, answer: ICapturePage): void {
    this._pages.set(page, answer.captures);
    this._length = answer.matched;
  }

  /** Change one loaded row in place. */
  replace(id: string, changes: Partial<ICaptureRow>): void {
    for (const rows of this._pages.values()) {
      const index = rows.findIndex(row => row.id === id);
      const row = rows[index];
      if (row) {
        rows[index] = { ...row, ...changes };
      }
    }
  }

  private _length = 0;
  private readonly _pages = new Map<number, ICaptureRow[]>();
}
