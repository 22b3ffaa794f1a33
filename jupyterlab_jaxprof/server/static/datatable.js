/** A table that sorts by any column and filters by text: what XProf draws with Google's charts. */

const FIRST_ROWS = 100;

/** Make an element; `content` is text or a list of nodes. Text is never read as HTML. */
export function make(name, content = [], attributes = {}) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    node.setAttribute(key, value);
  }
  node.append(...(Array.isArray(content) ? content : [String(content)]));
  return node;
}

/** Text in which `code` is marked as in Markdown, as a list of nodes. */
export function marked(text) {
  return text
    .split('`')
    .map((part, index) => (index % 2 ? make('code', part) : part))
    .filter(part => part !== '');
}

const NUMBER = new Intl.NumberFormat('en', { maximumSignificantDigits: 5 });
const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** Counts and bytes are shown to the last digit, measured figures to five. */
function text(value) {
  if (value === null || value === undefined) {
    return '';
  }
  if (typeof value === 'number') {
    return (Number.isInteger(value) ? WHOLE : NUMBER).format(value);
  }
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
}

const isEmpty = value =>
  value === null || value === undefined || value === '' || value === 0;

/** Order two cells: numbers by size, all else by its text; what is not there comes last in both directions. */
function compared(a, b, direction) {
  const [noA, noB] = [a, b].map(value => value === null || value === undefined);
  if (noA || noB) {
    return noA - noB;
  }
  const order =
    typeof a === 'number' && typeof b === 'number'
      ? a - b
      : text(a).localeCompare(text(b), 'en', { numeric: true });
  return direction * order;
}

/**
 * Draw a table.
 *
 * @param title what it shows
 * @param columns a list of `{ label, isNumber }`
 * @param rows lists of cells, in the order of the columns
 * @returns an element, or null for a table without rows
 */
export function drawTable(title, columns, rows) {
  if (!rows.length) {
    return null;
  }
  const shown = columns
    .map((column, index) => ({ ...column, index }))
    .filter(({ index }) => rows.some(row => !isEmpty(row[index])));
  const state = { column: -1, direction: -1, filter: '', limit: FIRST_ROWS };
  const body = make('tbody');
  const more = make('button', '', { type: 'button' });
  const buttons = shown.map(({ label }) =>
    make('button', label, { type: 'button' })
  );
  const heads = shown.map(({ isNumber }, position) =>
    make('th', [buttons[position]], {
      scope: 'col',
      ...(isNumber ? { class: 'number' } : {})
    })
  );

  const redraw = () => {
    const words = state.filter.toLowerCase().split(/\s+/);
    const matching = rows.filter(row => {
      const all = row.map(text).join('\n').toLowerCase();
      return words.every(word => all.includes(word));
    });
    if (state.column >= 0) {
      const { index } = shown[state.column];
      matching.sort((a, b) => compared(a[index], b[index], state.direction));
    }
    body.replaceChildren(
      ...matching.slice(0, state.limit).map(row => drawRow(shown, row))
    );
    const left = Math.max(0, matching.length - state.limit);
    more.hidden = !left;
    more.textContent = `Show ${left} more rows`;
    heads.forEach((head, position) => {
      const order = state.direction > 0 ? 'ascending' : 'descending';
      head.setAttribute(
        'aria-sort',
        position === state.column ? order : 'none'
      );
    });
  };

  buttons.forEach((button, position) => {
    button.addEventListener('click', () => {
      const first = shown[position].isNumber ? -1 : 1;
      state.direction = state.column === position ? -state.direction : first;
      state.column = position;
      redraw();
    });
  });
  more.addEventListener('click', () => {
    state.limit = Infinity;
    redraw();
  });
  const filter = make('input', [], {
    type: 'search',
    placeholder: 'Filter',
    'aria-label': `Filter: ${title}`
  });
  filter.addEventListener('input', () => {
    state.filter = filter.value;
    redraw();
  });
  redraw();
  return make('section', [
    make('header', [
      make('h3', `${title} (${rows.length})`),
      ...(rows.length > 8 ? [filter] : [])
    ]),
    make(
      'div',
      [
        make('table', [
          make('caption', title, { class: 'unseen' }),
          make('thead', [make('tr', heads)]),
          body
        ])
      ],
      { class: 'scroller', tabindex: '0', role: 'group', 'aria-label': title }
    ),
    more
  ]);
}

function drawRow(columns, row) {
  return make(
    'tr',
    columns.map(({ index, isNumber }) => {
      const content = text(row[index]);
      const attributes = isNumber ? { class: 'number' } : { title: content };
      return make('td', content, attributes);
    })
  );
}

/**
 * Give columns and rows of a table as XProf's routes have it (a DataTable of Google's charts).
 *
 * Its shares are fractions under a head that says '%'; texts may hold links, of which the text is kept.
 */
export function fromGoogle(table) {
  const fractions = table.cols.map(
    ({ id, label, type }) =>
      type === 'number' && label.includes('%') && SHARES.test(id)
  );
  const columns = table.cols.map(({ label, type }) => ({
    label,
    isNumber: type === 'number'
  }));
  const rows = table.rows.map(row =>
    row.c.map((cell, index) => {
      const value = cell?.v ?? null;
      if (fractions[index] && value !== null) {
        return 100 * value;
      }
      return typeof value === 'string' ? withoutTags(value) : value;
    })
  );
  return { columns, rows };
}

// Found by their totals: each of these adds up to 1.
const SHARES =
  /self_time_percent$|total_time_in_percentage$|_efficiency$|_utilization$/;

function withoutTags(value) {
  return value.includes('<')
    ? (new DOMParser().parseFromString(value, 'text/html').body.textContent ??
        '')
    : value;
}
