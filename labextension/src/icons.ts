import { LabIcon, fileIcon } from '@jupyterlab/ui-components';

/** Icons on a 24-pixel grid; `jp-icon3` follows JupyterLab's theme. */
function icon(name: string, shapes: string): LabIcon {
  return new LabIcon({
    name: `jupyterlab-jaxprof:${name}`,
    svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24"><g class="jp-icon3" fill="#616161">${shapes}</g></svg>`
  });
}

/** A trace's rows, one below the other. */
const TRACE =
  '<rect x="2" y="4" width="13" height="4" rx="1"/><rect x="6" y="10" width="9" height="4" rx="1"/>' +
  '<rect x="17" y="10" width="5" height="4" rx="1"/><rect x="9" y="16" width="11" height="4" rx="1"/>';

export const jaxprofIcon = new LabIcon({
  name: 'jupyterlab-jaxprof:jaxprof',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">' +
    `<g class="jp-icon3 jp-icon-selectable" fill="#616161">${TRACE}</g></svg>`
});

export const traceIcon = icon('trace', TRACE);

export const timeIcon = icon(
  'time',
  '<path d="M9 1h6v2H9zM11 8h2v6h-2z"/>' +
    '<path d="M12 5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17zm0 15a6.5 6.5 0 1 1 0-13 6.5 6.5 0 0 1 0 13z"/>'
);

export const nsysIcon = icon(
  'nsys',
  '<path d="M7 7v10h10V7zm8 8H9V9h6z"/><path d="M5 5h14v14H5zm2 2v10h10V7z" fill-rule="evenodd"/>' +
    '<path d="M8 2h2v3H8zm6 0h2v3h-2zM8 19h2v3H8zm6 0h2v3h-2zM2 8h3v2H2zm0 6h3v2H2zm17-6h3v2h-3zm0 6h3v2h-3z"/>'
);

export const memoryIcon = icon(
  'memory',
  '<path d="M2 6h20v11H2zm2 2v7h16V8z" fill-rule="evenodd"/>' +
    '<path d="M6 10h3v3H6zm4.500 0h3v3h-3zM15 10h3v3h-3zM4 18h2v2H4zm4 0h2v2H8zm6 0h2v2h-2zm4 0h2v2h-2z"/>'
);

export const sweepIcon = icon(
  'sweep',
  '<path d="M3 3h2v16h16v2H3z"/><circle cx="8.500" cy="14.500" r="1.800"/><circle cx="12.500" cy="9.500" r="1.800"/>' +
    '<circle cx="16.500" cy="11.500" r="1.800"/><circle cx="19.500" cy="5.500" r="1.800"/>'
);

export const pinIcon = icon(
  'pin',
  '<path d="M16 9V4h1a1 1 0 0 0 0-2H7a1 1 0 0 0 0 2h1v5c0 1.660-1.340 3-3 3v2h5.970v7l1 1 1-1v-7H19v-2c-1.660 0-3-1.340-3-3z"/>'
);

export const browserTabIcon = icon(
  'browser-tab',
  '<path d="M19 19H5V5h7V3H5a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h14a2 2 0 0 0 2-2v-7h-2zM14 3v2h3.590l-9.830 9.830 1.410 1.410L19 6.410V10h2V3z"/>'
);

export const warningIcon = icon(
  'warning',
  '<path d="M1 21h22L12 2zm12-3h-2v-2h2zm0-4h-2v-4h2z"/>'
);

export const fineIcon = icon(
  'fine',
  '<path d="M9 16.170 4.830 12l-1.420 1.410L9 19 21 7l-1.410-1.410z"/>'
);

export const noteIcon = icon(
  'note',
  '<path d="M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm1 15h-2v-6h2zm0-8h-2V7h2z" fill-rule="evenodd"/>'
);

export const compareIcon = icon(
  'compare',
  '<path d="M10 3H5a2 2 0 0 0-2 2v14a2 2 0 0 0 2 2h5v2h2V1h-2zm0 15H5l5-6zm9-15h-5v2h5v13l-5-6v9h5a2 2 0 0 0 2-2V5a2 2 0 0 0-2-2z"/>'
);

const LENS =
  '<path d="M15.500 14h-.790l-.280-.270a6.500 6.500 0 1 0-.700.700l.270.280v.790l5 4.990L20.490 19zm-6 0a4.500 4.500 0 1 1 0-9 4.500 4.500 0 0 1 0 9z"/>';

export const zoomInIcon = icon(
  'zoom-in',
  LENS + '<path d="M7 9h2V7h1v2h2v1h-2v2H9v-2H7z"/>'
);

export const zoomOutIcon = icon('zoom-out', LENS + '<path d="M7 9h5v1H7z"/>');

export const resetIcon = icon(
  'reset',
  '<path d="M3 5h2v14H3zm16 0h2v14h-2zM10 8v3h4V8l4 4-4 4v-3h-4v3l-4-4z"/>'
);

const KIND_ICONS = new Map([
  ['trace', traceIcon],
  ['time', timeIcon],
  ['nsys', nsysIcon],
  ['memory', memoryIcon],
  ['sweep', sweepIcon]
]);

/** The icon of a capture's kind; a plain file for a kind of a later version. */
export function kindIcon(kind: string): LabIcon {
  return KIND_ICONS.get(kind) ?? fileIcon;
}
