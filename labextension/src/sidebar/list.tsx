import type { TranslationBundle } from '@jupyterlab/translation';
import React, { useEffect, useLayoutEffect, useRef, useState } from 'react';

import type { ICaptureRow } from '../api/types';
import type { Actions } from './actions';
import type { CapturesModel } from './model';
import { CaptureRow, type SelectHow } from './row';
import type { RowWindow } from './window';

/** The height of `.jp-JaxProf-row`, in CSS pixels. */
const ROW_PX = 48;
/** Rows drawn above and below what is in sight. */
const MARGIN_ROWS = 6;

export interface IListProps {
  model: CapturesModel;
  actions: Actions;
  now: Date;
  trans: TranslationBundle;
}

/** The captures as a grid with one row each. Only rows in sight are in the page, however long the list is. */
export function CaptureList(props: IListProps): React.JSX.Element {
  const { model, trans } = props;
  const grid = useRef<HTMLDivElement>(null);
  const view = useView(grid);
  const goTo = useFocus(model, grid);
  useAnchor(model.rows, grid);

  const rows = model.rows;
  const first = Math.max(Math.floor(view.top / ROW_PX) - MARGIN_ROWS, 0);
  const last = Math.min(
    Math.ceil((view.top + view.height) / ROW_PX) + MARGIN_ROWS,
    rows.length - 1
  );
  useEffect(() => {
    model.show(first, Math.max(last, first));
  }, [model, rows, first, last]);

  const selected =
    model.selectedId === null ? -1 : rows.indexOf(model.selectedId);
  return (
    <div
      ref={grid}
      className="jp-JaxProf-list"
      role="grid"
      aria-label={trans.__('Captures, newest first')}
      aria-rowcount={rows.length}
      aria-busy={model.isLoading}
      aria-multiselectable
      tabIndex={rows.length > 0 && selected < 0 ? 0 : -1}
      onKeyDown={event => {
        const target = keyTarget(event, selected, rows.length, view.height);
        if (target !== null) {
          event.preventDefault();
          goTo(target, event.shiftKey);
        } else if (handleRowKey(event, model)) {
          event.preventDefault();
        }
      }}
    >
      <div
        className="jp-JaxProf-rows"
        role="presentation"
        style={{ height: rows.length * ROW_PX }}
      >
        {indices(first, last, selected).map(index => (
          <Row key={rows.get(index)?.id ?? index} index={index} {...props} />
        ))}
      </div>
    </div>
  );
}

/** One row, or its place while it is being loaded. */
function Row(props: IListProps & { index: number }): React.JSX.Element {
  const { model, actions, index, now, trans } = props;
  const row = model.rows.get(index);
  const top = index * ROW_PX;
  if (!row) {
    return (
      <div
        role="row"
        className="jp-JaxProf-row jp-mod-loading"
        aria-rowindex={index + 1}
        style={{ top }}
      />
    );
  }
  const current = row.id === model.selectedId;
  const onRename = (named: ICaptureRow, name: string | null): void => {
    model.stopRenaming();
    if (name !== null) {
      void actions.rename(named, name);
    }
  };
  return (
    <CaptureRow
      row={row}
      index={index}
      top={top}
      now={now}
      selected={model.isSelected(row.id)}
      current={current}
      renaming={row.id === model.renamingId}
      trans={trans}
      onSelect={({ id }, how) => {
        select(model, id, how);
      }}
      onOpen={opened => {
        actions.openCapture(opened);
      }}
      onOpenXprof={opened => {
        actions.open(opened);
      }}
      onRename={onRename}
    />
  );
}

function select(model: CapturesModel, id: string, how: SelectHow): void {
  switch (how) {
    case 'only':
      model.select(id);
      break;
    case 'toggle':
      model.toggle(id);
      break;
    case 'range':
      model.extendTo(id);
      break;
    case 'touch':
      if (!model.isSelected(id)) {
        model.select(id);
      }
  }
}

/** What to draw: the rows from `first` to `last`, and the selected one, which may hold the keyboard's focus. */
function indices(first: number, last: number, selected: number): number[] {
  const result = Array.from(
    { length: Math.max(last - first + 1, 0) },
    (_, i) => first + i
  );
  if (selected >= 0 && (selected < first || selected > last)) {
    result.push(selected);
  }
  return result;
}

/** The row that a key moves to; null for any other key. */
function keyTarget(
  event: React.KeyboardEvent,
  current: number,
  length: number,
  height: number
): number | null {
  if (length === 0 || event.ctrlKey || event.metaKey || event.altKey) {
    return null;
  }
  const page = Math.max(Math.floor(height / ROW_PX) - 1, 1);
  const targets: Record<string, number> = {
    ArrowDown: current + 1,
    ArrowUp: current - 1,
    PageDown: current + page,
    PageUp: current - page,
    Home: 0,
    End: length - 1
  };
  const target = targets[event.key];
  return target === undefined
    ? null
    : Math.min(Math.max(target, 0), length - 1);
}

/** Keys within a row: right and left walk over its buttons, the space bar shows the details or, with Ctrl, selects. */
function handleRowKey(
  event: React.KeyboardEvent,
  model: CapturesModel
): boolean {
  const target = event.target as HTMLElement;
  const row = target.closest<HTMLElement>('[role=row]');
  const stops = [row, ...(row?.querySelectorAll('button') ?? [])];
  const position = stops.indexOf(target);
  switch (event.key) {
    case 'ArrowRight':
      stops[Math.min(position + 1, stops.length - 1)]?.focus();
      return true;
    case 'ArrowLeft':
      stops[Math.max(position - 1, 0)]?.focus();
      return true;
    case ' ':
      if (target === row && (event.ctrlKey || event.metaKey)) {
        model.toggle(row.dataset.id ?? '');
        return true;
      }
      if (target === row) {
        model.setDetailsOpen(!model.detailsOpen);
        return true;
      }
      return false;
    case 'Escape':
      if (target === row && model.hasSeveral) {
        model.select(row.dataset.id ?? null);
        return true;
      }
      return false;
    default:
      return false;
  }
}

interface IView {
  top: number;
  height: number;
}

/** What part of the list is in sight, in pixels. */
function useView(grid: React.RefObject<HTMLDivElement>): IView {
  const [view, setView] = useState<IView>({ top: 0, height: 0 });
  useEffect(() => {
    const node = grid.current;
    if (!node) {
      return;
    }
    const read = (): void => {
      setView({ top: node.scrollTop, height: node.clientHeight });
    };
    const observer = new ResizeObserver(read);
    observer.observe(node);
    node.addEventListener('scroll', read, { passive: true });
    return () => {
      observer.disconnect();
      node.removeEventListener('scroll', read);
    };
  }, [grid]);
  return view;
}

/** Give a function that moves selection and focus to a row, once it is loaded and drawn. */
function useFocus(
  model: CapturesModel,
  grid: React.RefObject<HTMLDivElement>
): (index: number, extend?: boolean) => void {
  const wanted = useRef<number | null>(null);
  const extending = useRef(false);
  const settle = (): void => {
    const node = grid.current;
    const row =
      wanted.current === null ? undefined : model.rows.get(wanted.current);
    if (!node) {
      return;
    }
    if (row) {
      wanted.current = null;
      model.focusWanted = true;
      select(model, row.id, extending.current ? 'range' : 'only');
    }
    if (model.revealWanted) {
      model.revealWanted = false;
      const index =
        model.selectedId === null ? -1 : model.rows.indexOf(model.selectedId);
      reveal(node, Math.max(index, 0));
    }
    if (model.focusWanted && model.selectedId !== null) {
      const index = model.rows.indexOf(model.selectedId);
      const element = node.querySelector<HTMLElement>(
        `[data-id="${model.selectedId}"]`
      );
      if (index >= 0 && element) {
        model.focusWanted = false;
        reveal(node, index);
        element.focus({ preventScroll: true });
      }
    }
  };
  useEffect(settle);
  return (index, extend = false) => {
    wanted.current = index;
    extending.current = extend;
    if (grid.current) {
      reveal(grid.current, index);
    }
    settle();
  };
}

/** Scroll as little as shows the row. */
function reveal(node: HTMLElement, index: number): void {
  const top = index * ROW_PX;
  const lowest = top + ROW_PX - node.clientHeight;
  node.scrollTop = Math.min(Math.max(node.scrollTop, lowest), top);
}

/** Keep what somebody reads in place when captures come or go above it. */
function useAnchor(
  rows: RowWindow,
  grid: React.RefObject<HTMLDivElement>
): void {
  const anchor = useRef({ rows, id: '', index: 0 });
  useLayoutEffect(() => {
    const node = grid.current;
    if (!node) {
      return;
    }
    const { rows: before, id, index } = anchor.current;
    const now = rows === before ? -1 : rows.indexOf(id);
    if (now >= 0 && node.scrollTop > 0) {
      node.scrollTop += (now - index) * ROW_PX;
    }
    const top = Math.floor(node.scrollTop / ROW_PX);
    anchor.current = { rows, id: rows.get(top)?.id ?? '', index: top };
  });
}
