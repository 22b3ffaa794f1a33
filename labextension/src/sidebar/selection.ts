/** Which captures are selected, and where the selection began. */
export class Selection {
  get ids(): readonly string[] {
    return [...this._ids];
  }

  get size(): number {
    return this._ids.size;
  }

  /** Where a range begins. */
  get anchor(): string | null {
    return this._anchor;
  }

  has(id: string): boolean {
    return this._ids.has(id);
  }

  only(id: string | null): void {
    this._anchor = id;
    this.replace(id === null ? [] : [id]);
  }

  toggle(id: string): void {
    this._anchor = id;
    if (!this._ids.delete(id)) {
      this._ids.add(id);
    }
  }

  /** Select these, and begin where it began. */
  replace(ids: readonly string[]): void {
    this._ids = new Set(ids);
  }

  drop(ids: readonly string[]): void {
    ids.forEach(id => this._ids.delete(id));
  }

  private _ids = new Set<string>();
  private _anchor: string | null = null;
}
