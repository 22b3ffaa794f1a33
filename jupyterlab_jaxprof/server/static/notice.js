/** The line above the viewer that says what the user should know. */

const NOTICE_KEY = 'jaxprof:offline-notice';
const element = id => document.getElementById(id);

const OFFLINE = [
  ['trace_viewer', 'complete'],
  ['memory_viewer', 'text without charts'],
  ['graph_viewer', 'stays blank'],
  ['all others', 'shown here as tables and drawings of this page']
];

function remembered() {
  try {
    return localStorage.getItem(NOTICE_KEY) !== null;
  } catch {
    return false;
  }
}

/** Show a sentence above the viewer; `details` are lines below it. */
export function showNotice(sentence, details = []) {
  const entry = document.createElement(details.length ? 'details' : 'p');
  const first = details.length ? document.createElement('summary') : entry;
  first.textContent = sentence;
  if (details.length) {
    entry.append(first);
  }
  for (const detail of details) {
    const line = document.createElement('p');
    line.textContent = detail;
    entry.append(line);
  }
  element('notice-text').replaceChildren(entry);
  element('dismiss').textContent = details.length
    ? 'Don’t show again'
    : 'Close';
  element('notice').dataset.remember = details.length ? 'yes' : 'no';
  element('notice').hidden = false;
}

/** Say once what lacks without Google's charts. */
export function showOfflineNotice() {
  if (!remembered() && element('notice').hidden) {
    const reason =
      document.body.dataset.externalScripts === 'no'
        ? 'This Jupyter server’s settings let nothing be loaded from www.gstatic.com'
        : 'Your browser doesn’t reach www.gstatic.com';
    showNotice(
      `${reason}, where XProf’s charts come from: this page draws what it can.`,
      OFFLINE.map(([tools, what]) => `${tools}: ${what}`)
    );
  }
}

/** Hide the notice; the one about the charts for good. */
export function dismissNotice() {
  element('notice').hidden = true;
  if (element('notice').dataset.remember !== 'yes') {
    return;
  }
  try {
    localStorage.setItem(NOTICE_KEY, 'dismissed');
  } catch (error) {
    console.warn('The choice can’t be remembered.', error);
  }
}
