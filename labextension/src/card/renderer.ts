import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Widget } from '@lumino/widgets';

import type { IViewerTarget } from '../api/urls';
import { targetOfLink } from '../api/urls';

export const CAPTURE_MIME = 'application/vnd.jaxprof.capture+json';

export interface ICardOptions {
  /** Open XProf here. */
  open: (target: IViewerTarget) => void;
  /** The address of XProf's page on this server. */
  urlOf: (target: IViewerTarget) => string;
}

/**
 * A capture's card: the HTML of its own bundle, with its links to XProf made live.
 *
 * JupyterLab's own renderer would turn those links into addresses of files. They are made anew here as well, since
 * a saved notebook may come from a server with another base_url.
 */
export class CardRenderer extends Widget implements IRenderMime.IRenderer {
  constructor(
    private readonly _sanitizer: IRenderMime.ISanitizer,
    private readonly _options: ICardOptions
  ) {
    super();
    this.addClass('jp-JaxProf-card');
    this.node.dataset.mimeType = CAPTURE_MIME;
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    const html = textOf(model.data['text/html']);
    if (html === null) {
      const text = document.createElement('pre');
      text.textContent =
        textOf(model.data['text/plain']) ??
        JSON.stringify(model.data[CAPTURE_MIME], undefined, 2);
      this.node.replaceChildren(text);
      return Promise.resolve();
    }
    this.node.innerHTML = model.trusted
      ? html
      : this._sanitizer.sanitize(withoutDrawings(html));
    for (const link of this.node.querySelectorAll('a')) {
      const target = targetOf(link);
      if (target) {
        link.href = this._options.urlOf(target);
        link.target = '_blank';
        link.rel = 'noopener';
      }
    }
    return Promise.resolve();
  }

  handleEvent(event: Event): void {
    if (event instanceof MouseEvent && event.type === 'click') {
      this._onClick(event);
    }
  }

  protected override onAfterAttach(): void {
    this.node.addEventListener('click', this);
  }

  protected override onBeforeDetach(): void {
    this.node.removeEventListener('click', this);
  }

  /** A plain click opens XProf here; with a modifier the browser does what it always does. */
  private _onClick(event: MouseEvent): void {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) {
      return;
    }
    const link = event.target instanceof Element && event.target.closest('a');
    const target = link ? targetOf(link) : null;
    if (target) {
      event.preventDefault();
      event.stopPropagation();
      this._options.open(target);
    }
  }
}

/** What a link asks XProf for. The sanitizer drops the data attributes; the address says the same. */
function targetOf(link: HTMLAnchorElement): IViewerTarget | null {
  const { jaxprofRun: run, jaxprofTool: tool } = link.dataset;
  return run === undefined
    ? targetOfLink(link.getAttribute('href') ?? '')
    : { run, tool: tool ?? '', host: '' };
}

/** A hint in place of each drawing: the sanitizer drops the shapes, and would leave the text of all tooltips. */
function withoutDrawings(html: string): string {
  const page = new DOMParser().parseFromString(html, 'text/html');
  for (const drawing of page.querySelectorAll('.jx-drawing, svg')) {
    const hint = page.createElement('p');
    hint.className = 'jx-remark';
    hint.textContent = 'Trust this notebook to see the drawing.';
    drawing.replaceWith(hint);
  }
  return page.body.innerHTML;
}

/** A bundle's text, which nbformat may have split into lines. */
function textOf(value: unknown): string | null {
  if (typeof value === 'string') {
    return value;
  }
  return Array.isArray(value) && value.every(part => typeof part === 'string')
    ? value.join('')
    : null;
}
