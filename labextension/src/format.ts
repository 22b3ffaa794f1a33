/** Numbers and times as the panel shows them. */

const NO_BREAK_SPACE = '\u00a0';

/** Bytes in decimal units, three digits: '12.3 MB'. */
export function formatBytes(bytes: number): string {
  return scaled(bytes, 1000, ['B', 'kB', 'MB', 'GB', 'TB', 'PB']);
}

/** A duration given in milliseconds, three digits: '480 µs', '12.3 ms', '2 min 5 s'. */
export function formatMilliseconds(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds >= 3600) {
    const minutes = Math.round(seconds / 60);
    return two(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
  }
  if (seconds >= 60) {
    return two(Math.floor(seconds / 60), 'min', seconds % 60, 's');
  }
  return ms >= 1000
    ? unit(ms / 1000, 's')
    : ms >= 1 || ms === 0
      ? unit(ms, 'ms')
      : ms >= 0.001
        ? unit(ms * 1000, 'µs')
        : unit(ms * 1e6, 'ns');
}

const MILLISECONDS: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  ms: 1,
  s: 1e3
};

/** The one number that matters of a capture. */
export function formatQuantity(value: number, quantityUnit: string): string {
  const scale = MILLISECONDS[quantityUnit];
  if (scale !== undefined) {
    return formatMilliseconds(value * scale);
  }
  switch (quantityUnit) {
    case 'bytes':
      return formatBytes(value);
    case 'percent':
      return unit(value, '%');
    default:
      return quantityUnit ? unit(value, quantityUnit) : digits(value);
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

function scaled(value: number, base: number, units: readonly string[]): string {
  let power = 0;
  // 999.5 would be written as 1000.
  while (Math.abs(value) >= base - 0.5 && power < units.length - 1) {
    value /= base;
    power += 1;
  }
  return power === 0
    ? `${value}${NO_BREAK_SPACE}${units[0] ?? ''}`
    : unit(value, units[power] ?? '');
}

function unit(value: number, name: string): string {
  return `${digits(value)}${NO_BREAK_SPACE}${name}`;
}

function two(
  first: number,
  firstUnit: string,
  second: number,
  secondUnit: string
): string {
  return `${first}${NO_BREAK_SPACE}${firstUnit} ${second}${NO_BREAK_SPACE}${secondUnit}`;
}

/** Three significant digits, no exponent. */
function digits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}
