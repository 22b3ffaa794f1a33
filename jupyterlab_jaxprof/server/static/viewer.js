/**
 * The page around XProf or TensorBoard: it starts the viewer, says why it failed if it does, and shows it below.
 *
 * Messages to the page that frames this one (JupyterLab's tab; only to this page's own origin):
 *
 *   { source: 'jaxprof', type: 'state', viewer, status, message, run, tool, host }
 *
 *   viewer   'xprof' | 'tensorboard'
 *   status   'starting' | 'ready' | 'failed'
 *   message  a sentence when it failed, else ''
 *   run, tool, host   what is shown now, '' where nothing is chosen (several hosts: with commas); sent again
 *            whenever the user chooses another. Enough to open the same view again: `?run=&tool=&host=`
 *
 * Messages from it (only from window.parent and this page's own origin):
 *
 *   { source: 'jaxprof', type: 'theme', theme }      'light' | 'dark': the colours around the viewer
 */

import { dismissNotice, showNotice, showOfflineNotice } from './notice.js';
import { OfflineTables } from './offline.js';

const { baseUrl, viewer, title, xsrf } = document.body.dataset;
const element = id => document.getElementById(id);
const frame = element('viewer');
const embedded = window.parent !== window;
const DEFAULT_TOOL = 'trace_viewer@';

// Parameters of this page, and what only XProf's own steps mean.
const OWN = [
  'run',
  'tool',
  'tag',
  'host',
  'hosts',
  'token',
  'theme',
  'firstLoad'
];

let shown = readAddress();
let lastEnd = null;
let status = 'starting';
let message = '';

class Failure extends Error {}

/** The view that the address asks for. XProf writes `tag` for the tool, and `hosts` where it shows several. */
function readAddress() {
  const query = new URLSearchParams(window.location.search);
  return {
    run: query.get('run') ?? '',
    tool: query.get('tool') ?? query.get('tag') ?? '',
    host: query.get('host') ?? query.getAll('hosts').join(','),
    rest: [...query].filter(([key]) => !OWN.includes(key))
  };
}

function tell() {
  if (embedded) {
    const { run, tool, host } = shown;
    const state = {
      source: 'jaxprof',
      type: 'state',
      viewer,
      status,
      message,
      run,
      tool,
      host
    };
    window.parent.postMessage(state, window.location.origin);
  }
}

function show(newStatus, newMessage, busy = false) {
  status = newStatus;
  message = newStatus === 'failed' ? newMessage : '';
  const ready = newStatus === 'ready';
  element('status').hidden = ready;
  element('status').classList.toggle('busy', busy);
  element('message').textContent = newMessage;
  element('actions').hidden = newStatus !== 'failed';
  frame.hidden = !ready;
  if (ready) {
    offline.update(shown);
  } else {
    offline.hide();
  }
  tell();
}

function setTitle() {
  const name = shown.run.split('/').pop();
  document.title = [shown.tool.replace(/@$/, ''), name, title]
    .filter(part => part)
    .join(' – ');
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(baseUrl + path, {
      credentials: 'same-origin',
      cache: 'no-store',
      ...options
    });
  } catch {
    throw new Failure(
      'The Jupyter server doesn’t answer. Is it still running, and is the connection up?'
    );
  }
  const text = await response.text();
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    data = {};
  }
  if (!response.ok || response.redirected) {
    const ended = response.status >= 500 && !data.message && (await newEnd());
    const login = response.redirected || response.status === 403;
    throw new Failure(
      data.message ??
        (ended || null) ??
        (login
          ? 'You are not logged in to this Jupyter server any more: log in and try again.'
          : `${title} answered with status ${response.status}.`)
    );
  }
  return data;
}

const statePath = `jaxprof/api/viewers/${viewer}`;

/** How the viewer's process has ended since this page last knew of it to run; empty where it has not. */
async function newEnd() {
  const { ended } = await request(statePath);
  const isNew = ended && ended.at !== lastEnd;
  return isNew ? ended.message : '';
}

/** The XSRF token: the cookie's, since another page may have renewed it after this one was made. */
function xsrfToken() {
  const cookie = document.cookie.match(/(?:^|; )_xsrf=([^;]*)/);
  return cookie ? cookie[1] : xsrf;
}

/**
 * Start the viewer's process; the answer comes when it is ready or has failed.
 *
 * Where it runs already nothing is asked of the server that somebody who may only read isn't allowed.
 */
async function start() {
  let state = await request(statePath);
  if (state.state !== 'running') {
    state = await request(statePath, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'X-XSRFToken': xsrfToken()
      },
      body: JSON.stringify({ action: 'start' })
    });
  }
  if (state.state !== 'running') {
    throw new Failure(state.message || `${title} could not be started.`);
  }
  lastEnd = state.ended?.at ?? null;
  if (state.message) {
    showNotice(state.message);
  }
}

const query = parts =>
  parts
    .filter(([, value]) => value)
    .map(([key, value]) => `${key}=${encodeURIComponent(value)}`)
    .join('&');

const XPROF = 'xprof/data/plugin/profile/';

const toolsOf = ({ run }) =>
  request(`${XPROF}run_tools?${query([['run', run]])}`);

/** Check the trace, and choose a tool and a host where the address names none. */
async function chooseXProfView({ run, tool, host }) {
  if (!run) {
    return;
  }
  const about = await request(`xprof/-/run?${query([['run', run]])}`);
  if (about.problem) {
    throw new Failure(about.problem);
  }
  if (about.notice) {
    showNotice(about.notice);
  }
  const tools = await toolsOf({ run });
  if (!tool) {
    shown.tool = tools.includes(DEFAULT_TOOL) ? DEFAULT_TOOL : tools[0];
  }
  if (!host) {
    const parts = [
      ['run', run],
      ['tag', shown.tool]
    ];
    const hosts = await request(`${XPROF}hosts?${query(parts)}`);
    shown.host = hosts[0]?.hostname ?? '';
  }
}

function viewerAddress() {
  const { run, tool, host, rest } = shown;
  const hosts = host.includes(',') ? 'hosts' : 'host';
  const parts = query([['run', run], ['tag', tool], [hosts, host], ...rest]);
  if (viewer === 'tensorboard') {
    return `${baseUrl}jaxprof-tensorboard/${parts && '?' + parts}${run ? '#profile' : ''}`;
  }
  // The tool's name is a part of the path; '@' needs no encoding there, and XProf compares the text.
  const path = encodeURIComponent(run ? tool : '').replaceAll('%40', '@');
  return `${baseUrl}${XPROF}${path}${parts && '?' + parts}`;
}

/** XProf writes its view into this page's address. Take it without a new entry in the history, and pass it on. */
function followViewer() {
  const replace = history.replaceState.bind(history);
  const follow = (state, unused, url) => {
    const target = new URL(url ?? window.location.href, window.location.href);
    replace(state, '', window.location.pathname + target.search);
    shown = readAddress();
    setTitle();
    tell();
    if (status === 'ready') {
      offline.update(shown);
    }
  };
  history.pushState = follow;
  history.replaceState = follow;
}

// Inside JupyterLab, the viewer's own steps must not come between the user and JupyterLab's history; XProf's page,
// as this server sends it, asks for this.
window.jaxprofEmbedded = embedded;

function frameDocument() {
  try {
    return frame.contentDocument;
  } catch {
    return null;
  }
}

/** A request of the viewer's own page has failed: tell why, where the viewer or the Jupyter server is gone. */
async function inquire() {
  let reason;
  try {
    reason = await newEnd();
  } catch (error) {
    reason = error instanceof Failure ? error.message : '';
  }
  if (reason && status === 'ready') {
    show('failed', reason);
  }
}

const hasFailed = ({ name, responseStatus }) =>
  name.startsWith(window.location.origin) &&
  (responseStatus === 0 || responseStatus >= 500);

/** Look at how the requests of the viewer's own page end: it waits for their answers, and says nothing. */
function watchRequests(inner) {
  const watched = new WeakSet(); // documents: a frame's window stays the same when it loads one
  const watchFrames = () => {
    for (let index = 0; index < inner.frames.length; index++) {
      const child = inner.frames[index];
      if (!watched.has(child.document)) {
        watched.add(child.document);
        watchRequests(child); // XProf's trace viewer is in a frame of its own
      }
    }
  };
  try {
    new inner.PerformanceObserver(list => {
      watchFrames();
      if (list.getEntries().some(hasFailed)) {
        void inquire();
      }
    }).observe({ type: 'resource', buffered: true });
    watchFrames();
  } catch (error) {
    console.warn('Requests of the viewer that fail can’t be seen.', error);
  }
}

function onFrameLoad() {
  if (status !== 'ready') {
    return;
  }
  if (!frameDocument()) {
    const link = element('plain');
    link.href = viewerAddress();
    link.textContent = `Open ${title} by itself`;
    show(
      'failed',
      `This server’s settings don’t allow ${title} inside another page.`
    );
    return;
  }
  watchRequests(frame.contentWindow);
  if (viewer === 'xprof') {
    void offline.watch(() => shown);
  }
}

/** The record of the capture that a run belongs to; null for a trace that is none. */
async function recordOf({ run }) {
  const [id, session] = run.split('/');
  return session === undefined
    ? null
    : request(`jaxprof/api/captures/${encodeURIComponent(id)}`);
}

const dataOf = async ({ run, tool, host }) => {
  const hosts = host.includes(',') ? 'hosts' : 'host';
  const parts = [
    ['run', run],
    ['tag', tool],
    [hosts, host]
  ];
  await start();
  return request(`${XPROF}data?${query(parts)}`);
};

/** Show another tool: XProf, in its frame, follows so that it is where the user looks next. */
function chooseTool(tool) {
  shown.tool = tool;
  const address = new URLSearchParams(window.location.search);
  address.delete('tag');
  address.set('tool', tool);
  history.replaceState(null, '', `?${address}`);
  frame.contentWindow.location.replace(viewerAddress());
}

const offline = new OfflineTables({
  bar: element('tools'),
  tables: element('tables'),
  frame,
  toolsOf,
  data: dataOf,
  record: recordOf,
  choose: chooseTool,
  onMissing: showOfflineNotice
});

async function open() {
  element('plain').textContent = '';
  offline.reset();
  show('starting', `Starting ${title}…`, true);
  try {
    await start();
    if (viewer === 'xprof') {
      show('starting', 'Reading the trace…', true);
      await chooseXProfView(shown);
    }
  } catch (error) {
    if (!(error instanceof Failure)) {
      console.error(error);
    }
    show(
      'failed',
      error instanceof Failure
        ? error.message
        : `${title} could not be shown: an unexpected answer of the server (${error}).`
    );
    return;
  }
  setTitle();
  frame.hidden = false;
  frame.contentWindow.location.replace(viewerAddress());
  show('ready', '');
}

function setTheme(theme) {
  if (theme === 'light' || theme === 'dark') {
    document.documentElement.dataset.theme = theme;
  }
}

/** The theme of JupyterLab's page around this one; it may be another by now than the address says. */
function surroundingTheme() {
  try {
    const light = window.parent.document.body.dataset.jpThemeLight;
    return light && (light === 'true' ? 'light' : 'dark');
  } catch {
    return undefined;
  }
}

window.addEventListener('message', event => {
  if (
    event.origin !== window.location.origin ||
    event.source !== window.parent ||
    !embedded
  ) {
    return;
  }
  if (event.data?.source === 'jaxprof' && event.data.type === 'theme') {
    setTheme(event.data.theme);
  }
});
frame.addEventListener('load', onFrameLoad);
element('retry').addEventListener('click', () => void open());
element('dismiss').addEventListener('click', dismissNotice);
setTheme(
  surroundingTheme() ?? new URLSearchParams(window.location.search).get('theme')
);
followViewer();
void open();
