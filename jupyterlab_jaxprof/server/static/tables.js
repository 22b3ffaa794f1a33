/**
 * What XProf's tools say, drawn without Google's charts: where the browser can't reach www.gstatic.com.
 *
 * First what the capture's own record holds; then XProf's figures where it has any. XProf gives the operations of a
 * CUDA graph no time, which the record does.
 */

import { memoryCurve, roofline, stepBars } from './charts.js';
import { drawTable, fromGoogle, make, marked } from './datatable.js';

/** The tools that need the charts, and what draws each here. */
const TOOLS = {
  overview_page: { name: 'Overview', own: overview, xprof: xprofSteps },
  hlo_stats: { name: 'HLO operations', own: operations, xprof: xprofTables },
  framework_op_stats: {
    name: 'Framework operations',
    own: operations,
    xprof: xprofTables
  },
  op_profile: { name: 'Operation profile', own: operations, xprof: () => [] },
  kernel_stats: { name: 'Kernels', own: kernels, xprof: xprofTables },
  roofline_model: { name: 'Roofline', own: () => [], xprof: xprofRoofline },
  memory_profile: { name: 'Memory', own: memory, xprof: xprofMemory },
  input_pipeline_analyzer: {
    name: 'Steps',
    own: steps,
    xprof: xprofSteps
  }
};

/** Whether there is something to show for a tool; XProf adds `@` to the names of some. */
export const hasTables = tool => tool in TOOLS;

/** The tools of `available` that can be drawn here, as `[tool, name]`. */
export const drawable = available =>
  available.filter(hasTables).map(tool => [tool, TOOLS[tool].name]);

/**
 * Draw a tool.
 *
 * @param tool one of `drawable`
 * @param record the capture's record, null for a trace that is no capture
 * @param data what XProf's data route answers for the tool; null where it has failed
 */
export function drawTool(tool, record, data) {
  const { name, own, xprof } = TOOLS[tool];
  const summary = record?.summary ?? {};
  const mine = own(summary, record).filter(node => node);
  const theirs = data === null ? [] : xprof(data, name).filter(node => node);
  const nodes = [make('h2', name), ...mine];
  if (theirs.length) {
    nodes.push(make('h2', 'As XProf counts it'), ...theirs);
  }
  if (nodes.length === 1) {
    nodes.push(make('p', 'This trace holds nothing for this tool.'));
  } else if (mine.length && !theirs.length) {
    nodes.push(
      make('p', 'XProf itself has no figures for this tool in this trace.')
    );
  }
  return nodes;
}

const column = (label, isNumber = true) => ({ label, isNumber });
const percent = share => (typeof share === 'number' ? 100 * share : null);

function overview(summary, record) {
  return [
    ...(record?.findings ?? []).map(drawFinding),
    drawKeyFigures(summary),
    drawDevices(summary),
    ...kernels(summary)
  ];
}

function drawFinding(finding) {
  const lost =
    typeof finding.lost_ms === 'number'
      ? ` — ${THREE.format(finding.lost_ms)} ms`
      : '';
  const texts = [...finding.evidence, finding.meaning, ...finding.next];
  return make(
    'details',
    [
      make(
        'summary',
        marked(`${LEVELS[finding.level] ?? ''}${finding.title}${lost}`)
      ),
      ...texts.filter(text => text).map(text => make('p', marked(text)))
    ],
    { class: 'finding' }
  );
}

const THREE = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const LEVELS = { problem: 'Problem: ', note: 'Note: ', fine: '' };

function drawKeyFigures({ timeline, steps: marked }) {
  if (!timeline) {
    return null;
  }
  const parts = Object.entries(marked?.parts ?? {}).map(([part, ms]) => [
    `Median step: ${part.replace(/_ms$/, '')} (ms)`,
    ms
  ]);
  const rows = [
    ['Window (ms)', timeline.window_ms],
    ['Device busy (% of the window)', percent(timeline.busy_share)],
    ['Steps', marked?.count],
    ['Median step (ms)', marked?.median_ms],
    ['Shortest step (ms)', marked?.min_ms],
    ['Longest step (ms)', marked?.max_ms],
    ...parts
  ].filter(([, value]) => typeof value === 'number');
  return drawTable(
    'Key figures',
    [column('What', false), column('Value')],
    rows
  );
}

function drawDevices({ timeline }) {
  const columns = [
    'Busy (ms)',
    'Busy (%)',
    'Compute (ms)',
    'Copies (ms)',
    'Collectives (ms)',
    'Idle (ms)',
    'Operations'
  ];
  const rows = (timeline?.devices ?? []).map(device => [
    device.device,
    device.busy_ms,
    percent(device.busy_share),
    device.compute_ms,
    device.copy_ms,
    device.collective_ms,
    device.idle_ms,
    device.ops
  ]);
  return drawTable(
    'Devices',
    [column('Device', false), ...columns.map(label => column(label))],
    rows
  );
}

function operations({ tables, tables_left_out: leftOut }) {
  return [
    drawTable(
      titled('HLO operations', leftOut?.hlo_ops),
      [
        column('Operation', false),
        column('Module', false),
        column('Scope', false),
        column('Source', false),
        column('Count'),
        column('Total (ms)'),
        column('Of the device’s time (%)')
      ],
      (tables?.hlo_ops ?? []).map(row => [
        row.name,
        row.module,
        row.scope,
        row.source,
        row.count,
        row.total_ms,
        percent(row.share_device)
      ])
    ),
    drawTable(
      titled('Modules', leftOut?.modules),
      [
        column('Module', false),
        column('Runs'),
        column('Total (ms)'),
        column('Of the device’s time (%)')
      ],
      (tables?.modules ?? []).map(row => [
        row.name,
        row.count,
        row.total_ms,
        percent(row.share_device)
      ])
    )
  ];
}

function kernels({ tables, tables_left_out: leftOut }) {
  return [
    drawTable(
      titled('Largest kernels', leftOut?.kernels),
      [
        column('Kernel', false),
        column('Device', false),
        column('Count'),
        column('Total (ms)'),
        column('Median (µs)'),
        column('Longest (µs)'),
        column('Of the device’s time (%)')
      ],
      (tables?.kernels ?? []).map(row => [
        row.name,
        row.device,
        row.count,
        row.total_ms,
        row.median_us,
        row.max_us,
        percent(row.share_device)
      ])
    )
  ];
}

const titled = (title, leftOut) =>
  leftOut ? `${title}, without ${leftOut} smaller ones` : title;

function steps(summary) {
  const durations = summary.steps?.durations_ms ?? [];
  return [
    drawKeyFigures(summary),
    drawTable(
      `Steps of ${summary.steps?.name ?? ''}`,
      [column('Step'), column('Duration (ms)')],
      durations.map((duration, index) => [index, duration])
    )
  ];
}

function memory(summary, record) {
  return (record?.findings ?? [])
    .filter(({ id }) => id.includes('memory'))
    .map(drawFinding);
}

/** XProf answers one table, or a list of which some are none. */
const tablesOf = data =>
  (Array.isArray(data) ? data : [data]).filter(table => table?.cols?.length);

/** Whether XProf has given any operation time: all of it is `IDLE` where it could not. */
const isIdle = row =>
  row.c.some(cell => cell?.v === 'IDLE') ||
  row.c.some(cell => cell?.v === 'Program');

const countsIdle = ({ rows }) =>
  rows.some(row => row.c.some(cell => cell?.v === 'IDLE'));

/** XProf gives some tables twice: with the device's idle time among the operations, and without. */
function titleOf(name, table, tables) {
  if (tables.length < 2) {
    return name;
  }
  const alike = tables.filter(one => countsIdle(one) === countsIdle(table));
  if (alike.length > 1) {
    return `${name}, table ${tables.indexOf(table) + 1}`;
  }
  return countsIdle(table)
    ? `${name}, idle time counted`
    : `${name}, idle time left out`;
}

function xprofTables(data, name) {
  const tables = tablesOf(data);
  return tables.map(table => {
    const title = titleOf(name, table, tables);
    const { columns, rows } = fromGoogle({
      ...table,
      rows: table.rows.every(isIdle) ? [] : table.rows
    });
    return drawTable(title, columns, rows);
  });
}

/** The table of steps, which the overview has as well: known by its columns. */
function xprofSteps(data) {
  const table = tablesOf(data).find(({ cols }) =>
    cols.some(({ id }) => id === 'stepTimeMs')
  );
  if (!table?.rows.length) {
    return [];
  }
  const at = id => table.cols.findIndex(one => one.id === id);
  const ids = (table.p?.step_time_graph_column_ids ?? '')
    .split(/,\s*/)
    .filter(id => id.endsWith('TimeMs') && at(id) >= 0);
  const used = ids.filter(id => table.rows.some(row => row.c[at(id)]?.v > 0));
  const bars = table.rows.map(row => ({
    name: String(row.c[at('stepnum')]?.v ?? ''),
    parts: used.map(id => row.c[at(id)]?.v ?? 0)
  }));
  const names = used.map(id => table.cols[at(id)].label);
  const shown = table.cols.map(({ id }) => id !== 'tooltip');
  const keep = list => list.filter((_, index) => shown[index]);
  const { columns, rows } = fromGoogle(table);
  return [
    stepBars(names, bars),
    drawTable('Steps (ms)', keep(columns), rows.map(keep))
  ];
}

function xprofRoofline(data) {
  const [table] = tablesOf(data);
  const at = id => table.cols.findIndex(one => one.id === id);
  // XProf lists every operation twice: with and without what feeds the device.
  const rows = (table?.rows ?? []).filter(
    row => !isIdle(row) && row.c[at('include_infeed_outfeed')]?.v !== false
  );
  if (!rows.length) {
    return [];
  }
  const points = rows
    .filter(row => row.c[at('step')]?.v === 'Total')
    .map(row => ({
      name: row.c[at('operation')]?.v,
      intensity: row.c[at('bottleneck_operational_intensity')]?.v,
      rate: row.c[at('measured_flop_rate')]?.v
    }))
    .filter(({ intensity, rate }) => intensity > 0 && rate > 0);
  const [peak, bandwidth] = [table.p?.peak_flop_rate, table.p?.peak_hbm_bw].map(
    Number
  );
  const { columns, rows: cells } = fromGoogle({ ...table, rows });
  return [
    points.length && peak > 0 && bandwidth > 0
      ? roofline(points, peak, bandwidth)
      : null,
    drawTable('Operations', columns, cells)
  ];
}

function xprofMemory(data) {
  const most = ([, profile]) =>
    Number(profile.profileSummary?.peakStats?.peakBytesInUse ?? 0);
  return Object.entries(data.memoryProfilePerAllocator ?? {})
    .sort((a, b) => most(b) - most(a))
    .flatMap(([name, profile]) => {
      const events = (
        profile.sampledTimelineSnapshots ??
        profile.memoryProfileSnapshots ??
        []
      )
        .map(event => ({
          time: Number(event.timeOffsetPs) / 1e9,
          used:
            Number(event.aggregationStats.heapAllocatedBytes) +
            Number(event.aggregationStats.stackReservedBytes),
          about: event.activityMetadata
        }))
        .sort((a, b) => a.time - b.time);
      if (!events.length) {
        return [];
      }
      return [
        memoryCurve(
          name,
          events.map(({ time, used }) => [time, used])
        ),
        drawTable(
          `Allocations of ${name}`,
          [
            column('At (ms)'),
            column('What', false),
            column('Size (bytes)'),
            column('In use after (bytes)'),
            column('Operation', false),
            column('Shape', false)
          ],
          events.map(({ time, used, about }) => [
            time,
            (about.memoryActivity ?? '').toLowerCase(),
            Number(about.allocationBytes),
            used,
            about.tfOpName,
            about.tensorShape
          ])
        )
      ];
    });
}
