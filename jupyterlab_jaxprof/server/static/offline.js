/**
 * XProf's tools where the browser can't reach www.gstatic.com: a bar of tools above the viewer, and tables in its place.
 */

import { make } from './datatable.js';
import { drawTool, drawable, hasTables } from './tables.js';

const MISSING_KEY = 'jaxprof:charts-missing';
const CHECK_EVERY_MS = 500;
const CHECKS = 16;

/** Remember for the other tools, as long as the browser's tab is open, so that none of them waits again. */
function remember(missing) {
  try {
    sessionStorage.setItem(MISSING_KEY, missing ? 'yes' : 'no');
  } catch (error) {
    console.warn('What the charts are can’t be remembered.', error);
  }
}

function remembered() {
  try {
    return sessionStorage.getItem(MISSING_KEY) === 'yes';
  } catch {
    return false;
  }
}

/**
 * Find out whether XProf, in `frame`, has its charts.
 *
 * XProf loads them from www.gstatic.com and goes on without them; a network that drops packets lets it wait for long.
 *
 * @returns true when they are missing, false when they are there or another page was loaded meanwhile
 */
async function chartsAreMissing(frame) {
  const inner = frame.contentWindow;
  const page = inner.document;
  for (let tries = 0; tries < CHECKS; tries++) {
    await new Promise(done => setTimeout(done, CHECK_EVERY_MS));
    if (inner !== frame.contentWindow || inner.document !== page) {
      return false;
    }
    if (inner.google?.charts) {
      remember(false);
      return false;
    }
    const loading = page.querySelector('script[src*="/charts/loader.js"]');
    if (!loading && page.querySelector('script[src*="bundle.js"]')) {
      break;
    }
  }
  remember(true);
  return true;
}

/** The bar of tools and the tables, beside the frame that holds XProf. */
export class OfflineTables {
  /**
   * @param options.bar, options.tables the elements to fill; `frame` the one that holds XProf
   * @param options.data gives what XProf answers for a view `{ run, tool, host }`
   * @param options.toolsOf gives the names of a run's tools
   * @param options.record gives the record of a run's capture, null where there is none
   * @param options.choose is called with the tool that the user chooses
   * @param options.onMissing is called once when the charts are missing
   */
  constructor(options) {
    Object.assign(this, options);
    this.isMissing = false;
    this.wantsXprof = false;
    this.tools = { run: '', names: [] };
    this.drawn = '';
  }

  /** Forget what was found out; the page is to load anew. */
  reset() {
    this.wantsXprof = false;
    this.drawn = '';
    this.isMissing = remembered();
  }

  /** Show neither: there is no view yet. */
  hide() {
    this.bar.hidden = true;
    this.tables.hidden = true;
  }

  /** Look whether the charts are there, and show what fits. */
  async watch(view) {
    this.update(view());
    if (await chartsAreMissing(this.frame)) {
      this.isMissing = true;
      this.onMissing();
    } else if (this.frame.contentWindow?.google?.charts) {
      this.isMissing = false;
    }
    this.update(view());
  }

  /** Show the tables or XProf, as the view and the user's choice have it. */
  update(view) {
    const inTables = this.isMissing && !this.wantsXprof && hasTables(view.tool);
    this.bar.hidden = !this.isMissing || !view.run;
    this.tables.hidden = !inTables;
    this.frame.hidden = inTables;
    this.drawBar(view, inTables);
    if (!this.bar.hidden && this.tools.run !== view.run) {
      void this.loadTools(view);
    }
    if (inTables) {
      void this.draw(view);
    }
  }

  async loadTools(view) {
    const tools = { run: view.run, names: [] };
    this.tools = tools;
    tools.names = await this.toolsOf(view).catch(() => []);
    this.drawBar(view, !this.tables.hidden);
  }

  drawBar(view, inTables) {
    const entry = (label, isCurrent, onClick) => {
      const button = make('button', label, { type: 'button' });
      if (isCurrent) {
        button.setAttribute('aria-current', 'true');
      }
      button.addEventListener('click', onClick);
      return button;
    };
    this.bar.replaceChildren(
      ...drawable(this.tools.names).map(([tool, name]) =>
        entry(name, inTables && view.tool === tool, () => {
          this.wantsXprof = false;
          this.choose(tool);
        })
      ),
      entry('XProf', !inTables, () => {
        this.wantsXprof = true;
        this.update(view);
      })
    );
  }

  async draw(view) {
    const key = JSON.stringify([view.run, view.tool, view.host]);
    if (this.drawn === key) {
      return;
    }
    this.drawn = key;
    this.tables.replaceChildren(
      make('p', 'Reading the figures…', { role: 'status' })
    );
    const [record, data] = await Promise.allSettled([
      this.record(view),
      this.data(view)
    ]);
    if (this.drawn !== key) {
      return;
    }
    const nodes = drawTool(view.tool, record.value ?? null, data.value ?? null);
    for (const { reason } of [record, data]) {
      if (reason) {
        nodes.push(make('p', reason.message, { class: 'problem' }));
      }
    }
    this.tables.replaceChildren(...nodes);
    this.tables.scrollTop = 0;
  }
}
