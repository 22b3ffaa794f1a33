/** Three drawings in SVG: memory over time, the parts of each step, and the roofline. */

import { make } from './datatable.js';

const WIDTH = 900;
const HEIGHT = 240;
const MARGIN = { left: 76, right: 16, top: 24, bottom: 34 };

function svg(name, attributes = {}, content = []) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) {
    node.setAttribute(key, String(value));
  }
  node.append(...content);
  return node;
}

const label = (x, y, content, anchor = 'middle') =>
  svg('text', { x, y, 'text-anchor': anchor }, [content]);

/** A scale from values to pixels. */
function scale(low, high, from, to, isLogarithmic = false) {
  const on = isLogarithmic ? Math.log10 : value => value;
  const span = on(high) - on(low) || 1;
  return value => from + ((on(value) - on(low)) / span) * (to - from);
}

const short = value =>
  new Intl.NumberFormat('en', {
    notation:
      value >= 1e5 || (value && value < 1e-2) ? 'scientific' : 'standard',
    maximumSignificantDigits: 3
  }).format(value);

function ticks(low, high, isLogarithmic) {
  if (isLogarithmic) {
    const powers = [];
    for (let p = Math.ceil(Math.log10(low)); p <= Math.log10(high); p++) {
      powers.push(10 ** p);
    }
    return powers;
  }
  return [0, 1, 2, 3, 4].map(part => low + ((high - low) * part) / 4);
}

/** Frame, grid and labels of a drawing, with the scales of both axes. */
function axes(title, x, y) {
  const [left, right] = [MARGIN.left, WIDTH - MARGIN.right];
  const [top, bottom] = [MARGIN.top, HEIGHT - MARGIN.bottom];
  const atX = scale(x.low, x.high, left, right, x.isLogarithmic);
  const atY = scale(y.low, y.high, bottom, top, y.isLogarithmic);
  const drawing = svg('svg', {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: 'img',
    'aria-label': title
  });
  for (const value of ticks(y.low, y.high, y.isLogarithmic)) {
    const at = atY(value);
    drawing.append(
      svg('line', { x1: left, x2: right, y1: at, y2: at, class: 'grid' }),
      label(left - 6, at + 4, short(value), 'end')
    );
  }
  for (const value of x.ticks ?? ticks(x.low, x.high, x.isLogarithmic)) {
    drawing.append(label(atX(value), bottom + 15, short(value)));
  }
  drawing.append(
    label((left + right) / 2, HEIGHT - 3, x.label),
    label(left, top - 10, y.label, 'end')
  );
  return { drawing, atX, atY, bottom };
}

const figure = (drawing, caption, legend = []) =>
  make('figure', [
    drawing,
    ...(legend.length
      ? [
          make(
            'ul',
            legend.map((name, index) =>
              make('li', name, { class: `part-${index}` })
            ),
            { class: 'legend' }
          )
        ]
      : []),
    make('figcaption', caption)
  ]);

/**
 * Draw an allocator's memory over time.
 *
 * @param points `[time_ms, bytes]`, in order of time; the memory stays as it is until the next
 */
export function memoryCurve(name, points) {
  const most = Math.max(...points.map(([, bytes]) => bytes));
  const [unit, size] =
    UNITS.find(([, size]) => most >= size) ?? UNITS[UNITS.length - 1];
  const title = `Memory in use of ${name}`;
  const { drawing, atX, atY } = axes(
    title,
    { low: points[0][0], high: points.at(-1)[0], label: 'ms in the trace' },
    { low: 0, high: most / size || 1, label: unit }
  );
  const steps = points
    .map(([time, bytes], index) => {
      const [x, y] = [atX(time).toFixed(1), atY(bytes / size).toFixed(1)];
      return index ? `H${x}V${y}` : `M${x},${y}`;
    })
    .join('');
  drawing.append(svg('path', { d: steps, class: 'curve' }));
  return figure(drawing, `${title}: at most ${short(most / size)} ${unit}.`);
}

const UNITS = [
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
  ['bytes', 1]
];

/**
 * Draw each step as a bar of its parts.
 *
 * @param names the parts
 * @param steps a list of `{ name, parts }`, parts in ms, in the order of the names
 */
export function stepBars(names, steps) {
  const totals = steps.map(({ parts }) => parts.reduce((a, b) => a + b, 0));
  const { drawing, atX, atY, bottom } = axes(
    'The parts of each step',
    { low: 0, high: steps.length, ticks: [], label: 'steps, in order' },
    { low: 0, high: Math.max(...totals) || 1, label: 'ms' }
  );
  const width = Math.max(1, (atX(1) - atX(0)) * 0.8);
  steps.forEach(({ name, parts }, index) => {
    let below = 0;
    parts.forEach((part, position) => {
      if (part > 0) {
        const y = atY(below + part);
        const bar = svg(
          'rect',
          {
            x: atX(index),
            y,
            width,
            height: atY(below) - y,
            class: `part-${position}`
          },
          [
            svg('title', {}, [
              `step ${name}, ${names[position]}: ${short(part)} ms`
            ])
          ]
        );
        drawing.append(bar);
        below += part;
      }
    });
    if (steps.length <= 20) {
      drawing.append(label(atX(index) + width / 2, bottom + 15, name));
    }
  });
  return figure(drawing, 'Where each step’s time went.', names);
}

/**
 * Draw operations under the device's roof.
 *
 * @param operations `{ name, intensity, rate }`: FLOP a byte, GFLOP a second
 * @param peak GFLOP a second
 * @param bandwidth GiB a second
 */
export function roofline(operations, peak, bandwidth) {
  const bytes = bandwidth * 1.073741824; // GFLOP a second at one FLOP a byte
  const ridge = peak / bytes;
  const intensities = operations.map(({ intensity }) => intensity);
  const rates = operations.map(({ rate }) => rate);
  const x = {
    low: Math.min(0.1, ...intensities) / 2,
    high: Math.max(10 * ridge, ...intensities),
    isLogarithmic: true,
    label: 'FLOP a byte'
  };
  const y = {
    low: Math.min(...rates, bytes * x.low) / 2,
    high: peak * 2,
    isLogarithmic: true,
    label: 'GFLOP/s'
  };
  const { drawing, atX, atY } = axes('Roofline', x, y);
  const roof = [
    [x.low, bytes * x.low],
    [ridge, peak],
    [x.high, peak]
  ];
  drawing.append(
    svg('polyline', {
      points: roof.map(([a, b]) => `${atX(a)},${atY(b)}`).join(' '),
      class: 'curve'
    }),
    ...operations.map(({ name, intensity, rate }) =>
      svg(
        'circle',
        { cx: atX(intensity), cy: atY(rate), r: 5, class: 'part-0' },
        [
          svg('title', {}, [
            `${name}: ${short(rate)} GFLOP/s at ${short(intensity)} FLOP a byte`
          ])
        ]
      )
    )
  );
  return figure(
    drawing,
    `The roof: ${short(peak)} GFLOP/s, ${short(bandwidth)} GiB/s of device memory.`
  );
}
