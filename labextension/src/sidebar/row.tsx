import type { TranslationBundle } from '@jupyterlab/translation';
import { classes, ellipsesIcon, launchIcon } from '@jupyterlab/ui-components';
import React, { useRef } from 'react';

import type { ICaptureRow } from '../api/types';
import { baseName, formatAge, formatBytes, formatQuantity } from '../format';
import { kindIcon, pinIcon, warningIcon } from '../icons';
import { RenameInput } from './rename';
import { toldTroubles, troublesOf } from './troubles';

export interface IRowProps {
  row: ICaptureRow;
  index: number;
  top: number;
  now: Date;
  selected: boolean;
  /** The one that the keyboard is at. */
  current: boolean;
  renaming: boolean;
  trans: TranslationBundle;
  onSelect: (row: ICaptureRow, how: SelectHow) => void;
  onOpen: (row: ICaptureRow) => void;
  onOpenXprof: (row: ICaptureRow) => void;
  onRename: (row: ICaptureRow, name: string | null) => void;
}

/**
 * Alone; into the selection or out of it; or all from where the selection began. What is merely touched is selected
 * alone if it isn't a part of the selection: the menu of what is, is the selection's.
 */
export type SelectHow = 'only' | 'toggle' | 'range' | 'touch';

export function kindName(kind: string, trans: TranslationBundle): string {
  switch (kind) {
    case 'trace':
      return trans.__('Trace');
    case 'time':
      return trans.__('Timing');
    case 'nsys':
      return trans.__('Nsight Systems');
    case 'memory':
      return trans.__('Memory');
    case 'sweep':
      return trans.__('Sweep');
    default:
      return kind || trans.__('Unknown');
  }
}

export function headlineOf(row: ICaptureRow): string {
  const headline = row.summary.headline;
  return headline ? formatQuantity(headline.value, headline.unit) : '';
}

/** The size of a capture's files; empty where it has none, as a timing. */
export function sizeOf(row: ICaptureRow): string {
  return row.size_bytes > 0 ? formatBytes(row.size_bytes) : '';
}

/** The whole row as a sentence, for a screen reader. */
function labelOf(
  row: ICaptureRow,
  age: string,
  trans: TranslationBundle
): string {
  const headline = row.summary.headline;
  return [
    row.name,
    kindName(row.kind, trans),
    headline ? `${headline.label} ${headlineOf(row)}` : '',
    age,
    sizeOf(row),
    toldTroubles(troublesOf(row, trans)),
    row.pinned ? trans.__('pinned') : ''
  ]
    .filter(Boolean)
    .join(', ');
}

/** One capture: two lines of text, two numbers, and on hover or focus two buttons. */
export function CaptureRow(props: IRowProps): React.JSX.Element {
  const { row, index, top, now, selected, current, renaming, trans } = props;
  const created = new Date(row.created);
  const age = formatAge(created, now);
  const Icon = kindIcon(row.kind);
  // A click says itself what it selects; the focus that it brings says nothing more.
  const clicking = useRef(false);
  // Hovering brings buttons below the pointer: where a double click began tells what it is on.
  const beganOnRow = useRef(false);
  const select = (): void => {
    props.onSelect(row, 'touch');
  };
  return (
    <div
      role="row"
      className={classes(
        'jp-JaxProf-row',
        selected && 'jp-mod-selected',
        renaming && 'jp-mod-editing'
      )}
      style={{ top }}
      data-id={row.id}
      aria-rowindex={index + 1}
      aria-selected={selected}
      aria-label={labelOf(row, age, trans)}
      tabIndex={current ? 0 : -1}
      onMouseDown={event => {
        clicking.current = true;
        if (event.detail < 2) {
          beganOnRow.current = isOfRow(event.target);
        }
        if (event.button === 0 && isOfRow(event.target)) {
          props.onSelect(row, howOf(event));
        } else {
          select();
        }
      }}
      onFocus={() => {
        if (!clicking.current) {
          select();
        }
        clicking.current = false;
      }}
      onMouseUp={() => {
        clicking.current = false;
      }}
      onContextMenu={select}
      onDoubleClick={() => {
        if (!renaming && beganOnRow.current) {
          props.onOpen(row);
        }
      }}
    >
      <div role="gridcell" className="jp-JaxProf-kind">
        <Icon.react tag="span" title={kindName(row.kind, trans)} />
      </div>
      <div role="gridcell" className="jp-JaxProf-what">
        {renaming ? (
          <RenameInput
            name={row.name}
            label={trans.__('New name')}
            onEnd={name => {
              props.onRename(row, name);
            }}
          />
        ) : (
          <NameLine row={row} trans={trans} />
        )}
        <MetaLine row={row} age={age} created={created} trans={trans} />
      </div>
      <Numbers row={row} trans={trans} />
      <RowButtons {...props} />
    </div>
  );
}

/** Whether a click there is one on the row: its buttons and its field are for themselves. */
function isOfRow(target: EventTarget): boolean {
  return target instanceof Element && !target.closest('button, input');
}

function howOf(event: React.MouseEvent): SelectHow {
  return event.shiftKey
    ? 'range'
    : event.ctrlKey || event.metaKey
      ? 'toggle'
      : 'only';
}

function NameLine(props: {
  row: ICaptureRow;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { row, trans } = props;
  const title = row.notes ? `${row.name}\n\n${row.notes}` : row.name;
  return (
    <div className="jp-JaxProf-nameLine">
      <span className="jp-JaxProf-name" title={title}>
        {row.name}
      </span>
      {row.pinned && (
        <pinIcon.react
          tag="span"
          className="jp-JaxProf-pin"
          title={trans.__('Pinned')}
        />
      )}
    </div>
  );
}

function MetaLine(props: {
  row: ICaptureRow;
  age: string;
  created: Date;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { row, age, created, trans } = props;
  const troubles = troublesOf(row, trans);
  const [worst] = troubles;
  return (
    <div className="jp-JaxProf-meta">
      {worst && (
        <span
          className={classes(
            'jp-JaxProf-status',
            worst.isError && 'jp-mod-error'
          )}
          title={troubles.length > 1 ? toldTroubles(troubles) : worst.reason}
        >
          <warningIcon.react tag="span" />
          {worst.name}
        </span>
      )}
      <span title={created.toLocaleString()}>{age}</span>
      {row.notebook && (
        <span className="jp-JaxProf-notebook" title={row.notebook}>
          {baseName(row.notebook)}
        </span>
      )}
    </div>
  );
}

function Numbers(props: {
  row: ICaptureRow;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { row, trans } = props;
  const size = sizeOf(row);
  return (
    <div role="gridcell" className="jp-JaxProf-numbers">
      <div className="jp-JaxProf-headline" title={row.summary.headline?.label}>
        {headlineOf(row)}
      </div>
      {size && (
        <div
          title={trans.__(
            'Files: %1. On disk, with the caches of XProf: %2.',
            size,
            formatBytes(row.disk_bytes)
          )}
        >
          {size}
        </div>
      )}
    </div>
  );
}

function RowButtons(props: IRowProps): React.JSX.Element {
  const { row, trans } = props;
  return (
    <div role="gridcell" className="jp-JaxProf-rowButtons">
      {row.xprof_run && (
        <button
          className="jp-JaxProf-iconButton"
          tabIndex={-1}
          title={trans.__('Open in XProf')}
          aria-label={trans.__('Open in XProf')}
          onClick={event => {
            if (event.detail < 2) {
              props.onOpenXprof(row);
            }
          }}
        >
          <launchIcon.react tag="span" />
        </button>
      )}
      <button
        className="jp-JaxProf-iconButton"
        tabIndex={-1}
        title={trans.__('More actions')}
        aria-label={trans.__('More actions')}
        aria-haspopup="menu"
        onClick={event => {
          if (event.detail < 2) {
            openContextMenu(event.currentTarget);
          }
        }}
      >
        <ellipsesIcon.react tag="span" />
      </button>
    </div>
  );
}

/** Open JupyterLab's context menu below a button, as a right click there would. */
function openContextMenu(button: HTMLElement): void {
  const { left, bottom } = button.getBoundingClientRect();
  button.dispatchEvent(
    new MouseEvent('contextmenu', {
      bubbles: true,
      cancelable: true,
      clientX: left,
      clientY: bottom
    })
  );
}
