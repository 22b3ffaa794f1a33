import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import type { TranslationBundle } from '@jupyterlab/translation';

import { targetOfLink } from '../api/urls';
import type { ICardActions, IXprofTarget } from './actions';

interface IHtml {
  html: string | null;
  /** Shown where there is no HTML. */
  text: string;
  trusted: boolean;
  /** Why it is not live. */
  sentence: string;
}

/**
 * The HTML of a capture's bundle, with its links to XProf made live.
 *
 * JupyterLab's own renderer would turn those links into addresses of files. They are made anew here as well, since
 * a saved notebook may come from a server with another base_url.
 */
export class HtmlCard {
  constructor(
    private readonly _sanitizer: IRenderMime.ISanitizer,
    private readonly _actions: ICardActions,
    private readonly _trans: TranslationBundle
  ) {}

  /** Put it into an element, in place of what is there. */
  render(node: HTMLElement, { html, text, trusted, sentence }: IHtml): void {
    this.dispose();
    this._node = node;
    if (html === null) {
      const plain = document.createElement('pre');
      plain.textContent = text;
      node.replaceChildren(plain);
    } else {
      node.innerHTML = trusted
        ? html
        : this._sanitizer.sanitize(textsOf(html, this._trans));
    }
    const told = document.createElement('p');
    told.className = 'jp-JaxProf-notLive';
    told.textContent = sentence;
    node.prepend(told);
    for (const link of node.querySelectorAll('a')) {
      const target = targetOf(link);
      if (target) {
        link.href = this._actions.xprofUrl(target);
        link.target = '_blank';
        link.rel = 'noopener';
      }
    }
    node.addEventListener('click', this._onClick);
  }

  /** Leave the element empty. */
  dispose(): void {
    this._node?.removeEventListener('click', this._onClick);
    this._node?.replaceChildren();
    this._node = null;
  }

  /** A plain click opens XProf here; with a modifier the browser does what it always does. */
  private readonly _onClick = (event: MouseEvent): void => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) {
      return;
    }
    const link = event.target instanceof Element && event.target.closest('a');
    const target = link ? targetOf(link) : null;
    if (target) {
      event.preventDefault();
      event.stopPropagation();
      this._actions.openXprof(target);
    }
  };

  private _node: HTMLElement | null = null;
}

/** What a link asks XProf for. The sanitizer drops the data attributes; the address says the same. */
function targetOf(link: HTMLAnchorElement): IXprofTarget | null {
  const { jaxprofRun: run, jaxprofTool: tool } = link.dataset;
  return run === undefined
    ? targetOfLink(link.getAttribute('href') ?? '')
    : { run, tool: tool ?? '' };
}

/** What loads something. Our cards hold none of it, and the sanitizer lets some pass: a picture tells its host who reads. */
const LOADING =
  'img, picture, source, track, video, audio, object, embed, iframe, input, link';

/** A hint in place of each drawing: the sanitizer drops the shapes, and would leave the text of all tooltips. */
function textsOf(html: string, trans: TranslationBundle): string {
  const page = new DOMParser().parseFromString(html, 'text/html');
  for (const element of page.querySelectorAll(LOADING)) {
    element.remove();
  }
  for (const element of page.querySelectorAll('[background], [style]')) {
    element.removeAttribute('background');
    if (/[\\(@]/.test(element.getAttribute('style') ?? '')) {
      element.removeAttribute('style');
    }
  }
  for (const drawing of page.querySelectorAll('.jx-drawing, svg')) {
    const hint = page.createElement('p');
    hint.className = 'jx-remark';
    hint.textContent = trans.__('Trust this notebook to see the drawing.');
    drawing.replaceWith(hint);
  }
  return page.body.innerHTML;
}

/** A bundle's text, which nbformat may have split into lines. */
export function textOf(value: unknown): string | null {
  if (typeof value === 'string') {
    return value;
  }
  return Array.isArray(value) && value.every(part => typeof part === 'string')
    ? value.join('')
    : null;
}
