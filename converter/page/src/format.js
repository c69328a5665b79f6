// Values as people read them, as syncline/render/human.py writes them: 1.23 ms, 68.2 KiB, 12.3 %.

export const MISSING = '-';
const NS = ['ns', 'µs', 'ms', 's'];
const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

// Three digits, and no more than the value has.
function scaled(value, units, step) {
  let size = Math.abs(value);
  let index = 0;
  const shown = (size) => Number(size.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0));
  while (index < units.length - 1 && shown(size) >= step) {
    size /= step;
    index++;
  }
  const digits = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return `${value < 0 ? '-' : ''}${grouped(size, digits)} ${units[index]}`;
}

// Made once each: toLocaleString makes one anew for every number, which takes most of the time of a page.
const FORMATS = new Map();

export function grouped(value, digits = 6, least = 0) {
  const key = 100 * digits + least;
  if (!FORMATS.has(key)) FORMATS.set(key, new Intl.NumberFormat('en-US', {minimumFractionDigits: least, maximumFractionDigits: digits, roundingMode: 'halfEven'}));
  return FORMATS.get(key).format(value);
}

export const ns = (value) => (value == null ? MISSING : scaled(value, NS, 1000));
export const bytes = (value) => (value == null ? MISSING : scaled(value, BYTES, 1024));
export const share = (value) => (value == null ? MISSING : `${grouped(100 * value, 1, 1)} %`);
export const ratio = (value) => (value == null ? MISSING : grouped(value, 2, 2));
// How many at once, which is mostly a whole number.
export const level = (value) => grouped(value, 2);

export function count(value) {
  if (value == null) return MISSING;
  return Number.isInteger(value) ? grouped(value, 0) : grouped(value, 2, 2);
}

const UNITS = {ns, bytes, share, ratio, count, bar: share, id: (value) => (value == null ? MISSING : String(value))};

// By the unit that a report gives; anything else is text.
export function text(value, unit) {
  if (value == null) return MISSING;
  return UNITS[unit] ? UNITS[unit](value) : printable(String(value));
}

// Without what would move a line or turn its direction: names come from a log.
export function printable(value) {
  return value.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (char) => `\\x{${char.codePointAt(0).toString(16)}}`);
}

// A difference of shares: percentage points, since a share of a share misleads.
export const points = (value) => `${value > 0 ? '+' : ''}${grouped(100 * value, 1, 1)} pp`;

// How a figure has changed, in a sign and words.
export function change(base, now, unit) {
  if (base == null || now == null) return '';
  if (base === now) return '= same';
  const arrow = now > base ? '▲' : '▼';
  if (unit === 'share') return `${arrow} ${points(now - base)}`;
  // Of nothing there is no part; what it was stands before the sign.
  if (base === 0) return arrow;
  const times = now / base;
  if (times >= 10) return `${arrow} ${grouped(times, times < 100 ? 1 : 0)} times`;
  const percent = 100 * (times - 1);
  return `${arrow} ${percent > 0 ? '+' : ''}${percent.toFixed(Math.abs(percent) < 10 ? 1 : 0)} %`;
}

// One unit for a whole axis of lengths of time: its divisor and its name.
export function timeUnit(longest) {
  if (longest >= 2e9) return [1e9, 's'];
  if (longest >= 2e6) return [1e6, 'ms'];
  if (longest >= 2e3) return [1e3, 'µs'];
  return [1, 'ns'];
}

export function range(from, to) {
  const [unit, name] = timeUnit(to);
  const digits = Math.max(0, Math.min(6, Math.ceil(Math.log10(unit / Math.max(1, to - from))) + 3));
  return `${grouped(from / unit, digits)}–${grouped(to / unit, digits)} ${name}`;
}
