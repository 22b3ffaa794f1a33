/** Numbers and times as the panel shows them; those of cards/units.py, whose cards stand beside them, are the same. */

const NO_BREAK_SPACE = '\u00a0';
const NONE = '–';

const TIME_UNITS: [string, number, number][] = [
  ['ns', 1e6, 1000],
  ['µs', 1e3, 1000],
  ['ms', 1, 1000],
  ['s', 1e-3, 60]
];
/** Numbers from here on are written with an exponent. */
const UNCOUNTED = 1e9;
const SIZE_UNITS = ['kB', 'MB', 'GB', 'TB', 'PB'];

type Value = number | null | undefined;

/** A duration given in milliseconds, three digits: '480 µs', '12.3 ms', '2 min 5 s'. */
export function formatMilliseconds(ms: Value): string {
  if (!isFinite(ms)) {
    return NONE;
  }
  const sign = ms < 0 ? '-' : '';
  const size = Math.abs(ms);
  if (size === 0) {
    return unit('0', 'ms');
  }
  for (const [name, factor, limit] of TIME_UNITS) {
    if (significant(size * factor) < limit) {
      return sign + unit(digits(size * factor), name);
    }
  }
  const seconds = whole(size / 1000);
  const minutes = whole(size / 60_000);
  if (seconds < 3600) {
    return sign + two(seconds, 60, 'min', 's');
  }
  if (minutes < 48 * 60) {
    return sign + two(minutes, 60, 'h', 'min');
  }
  return sign + two(Math.floor(minutes / 60), 24, 'd', 'h');
}

/** A time that goes on, in whole seconds: '12 s', '2 min 5 s', '1 h 3 min'. */
export function formatElapsed(ms: number): string {
  const seconds = Math.max(Math.floor(ms / 1000), 0);
  return seconds < 60
    ? unit(String(seconds), 's')
    : seconds < 3600
      ? two(seconds, 60, 'min', 's')
      : two(Math.floor(seconds / 60), 60, 'h', 'min');
}

/** Bytes in decimal units, three digits: '12.3 MB'. */
export function formatBytes(bytes: Value): string {
  if (!isFinite(bytes)) {
    return NONE;
  }
  const sign = bytes < 0 ? '-' : '';
  let size = Math.abs(bytes);
  if (size < 1000) {
    return sign + unit(fixed(size, 0), 'B');
  }
  let name = '';
  for (name of SIZE_UNITS) {
    size /= 1000;
    if (significant(size) < 1000) {
      break;
    }
  }
  return sign + unit(digits(size), name);
}

/** A percentage: '0.35 %', '92 %'; never '100 %' for less, or '0 %' for more. */
export function formatPercent(value: Value): string {
  if (!isFinite(value)) {
    return NONE;
  }
  const size = Math.abs(value);
  if (size > 0 && size < 0.01) {
    return unit('< 0.01', '%');
  }
  const text =
    size > 0 && size < 10
      ? String(significant(value, 2))
      : value > 99 && value < 100
        ? String(Math.floor(value * 10) / 10)
        : fixed(value, 0);
  return unit(text, '%');
}

/** A fraction of 1 as a percentage. */
export function formatShare(fraction: Value): string {
  return formatPercent(isFinite(fraction) ? fraction * 100 : null);
}

/** A number with thousands set apart: '1,234'. */
export function formatCount(value: Value): string {
  return count(value);
}

/** A point in time so that a thousandth of the window can be told: '1,204.35 ms'. */
export function formatInstant(ms: Value, windowMs: number): string {
  if (!isFinite(ms)) {
    return NONE;
  }
  const decimals =
    windowMs > 0
      ? Math.min(Math.max(3 - Math.ceil(Math.log10(windowMs)), 0), 6)
      : 3;
  const text = ms.toLocaleString('en-US', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals
  });
  return unit(text, 'ms');
}

const MILLISECONDS: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  ms: 1,
  s: 1e3
};

/** A value with a record's unit: `ms`, `us`, `ns`, `s`, `bytes`, `percent` or any other. */
export function formatQuantity(value: Value, quantityUnit: string): string {
  const scale = MILLISECONDS[quantityUnit];
  if (scale !== undefined) {
    return formatMilliseconds(isFinite(value) ? value * scale : null);
  }
  switch (quantityUnit) {
    case 'bytes':
      return formatBytes(value);
    case 'percent':
      return formatPercent(value);
    default:
      return quantityUnit
        ? unit(
            quantityUnit.endsWith('/s') ? rate(value) : count(value),
            quantityUnit
          )
        : count(value);
  }
}

const AGE_UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['minute', 60],
  ['hour', 3600],
  ['day', 86_400]
];

/** How long ago: 'now', '3min ago', '2d ago'; a date after a week. */
export function formatAge(created: Date, now: Date, locale?: string): string {
  const seconds = (now.getTime() - created.getTime()) / 1000;
  if (Number.isNaN(seconds)) {
    return '';
  }
  if (seconds >= 7 * 86_400) {
    const sameYear = created.getFullYear() === now.getFullYear();
    return created.toLocaleDateString(locale, {
      day: 'numeric',
      month: 'short',
      ...(sameYear ? {} : { year: 'numeric' })
    });
  }
  const format = new Intl.RelativeTimeFormat(locale, {
    numeric: 'auto',
    style: 'narrow'
  });
  const [name, size] = AGE_UNITS.findLast(item => seconds >= item[1]) ?? [
    'second',
    Infinity
  ];
  return format.format(-Math.floor(seconds / size) || 0, name);
}

/** The last part of a path. */
export function baseName(path: string): string {
  return path.split('/').pop() ?? path;
}

function isFinite(value: Value): value is number {
  return Number.isFinite(value);
}

/** How many a second, with an exponent where nobody counts digits: '3.83e12'. */
function rate(value: Value): string {
  if (!isFinite(value) || Math.abs(value) < UNCOUNTED) {
    return count(value);
  }
  const [mantissa, exponent] = significant(value).toExponential(2).split('e');
  return `${mantissa}e${Number(exponent)}`;
}

/** A number with thousands set apart. */
function count(value: Value): string {
  if (!isFinite(value)) {
    return NONE;
  }
  if (Math.abs(value) >= UNCOUNTED ** 2) {
    return rate(value);
  }
  return Number.isInteger(value) || significant(Math.abs(value)) >= 1000
    ? Number(fixed(value, 0)).toLocaleString('en-US')
    : String(significant(value));
}

function unit(text: string, name: string): string {
  return `${text}${NO_BREAK_SPACE}${name}`;
}

/** '2 min 5 s' for 125 seconds; a part of nothing is left out. */
function two(value: number, size: number, name: string, rest: string): string {
  const first = unit(String(Math.floor(value / size)), name);
  return value % size ? `${first} ${unit(String(value % size), rest)}` : first;
}

/** Three significant digits of a value below 1,000, without an exponent. */
function digits(value: number): string {
  const size = significant(value);
  return fixed(size, size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

// JavaScript rounds a tie up and Python to the even digit. A tie is one in binary too: its further digits are zeros.
const FURTHER = 25;
const TIE = /^50*$/;

/** Round to some significant digits. */
function significant(value: number, places = 3): number {
  const [mantissa = '', exponent = '0'] = value
    .toExponential(places - 1 + FURTHER)
    .split('e');
  return isEvenTie(mantissa)
    ? Number(`${mantissa.slice(0, -FURTHER)}e${exponent}`)
    : Number(value.toExponential(places - 1));
}

/** Write with a number of decimals. */
function fixed(value: number, places: number): string {
  const exact = value.toFixed(places + FURTHER);
  return isEvenTie(exact)
    ? exact.slice(0, -FURTHER).replace(/\.$/, '')
    : value.toFixed(places);
}

/** Whether the last 25 digits are a half, and the digit before them is even. */
function isEvenTie(text: string): boolean {
  return (
    TIE.test(text.slice(-FURTHER)) &&
    /[02468]\.?$/.test(text.slice(0, -FURTHER))
  );
}

/** The nearest whole number. */
function whole(value: number): number {
  return Number(fixed(value, 0));
}
