// Formats values for people: 1.23 ms, 68.2 KiB, 12.3 %. Must give the same text as syncline/render/human.py.

export const MISSING = '-';
const NS = ['ns', 'µs', 'ms', 's'];
const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

// Three significant digits, in the largest unit that fits.
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

// Number formats are cached: toLocaleString creates one for every number, which would take most of the page's time.
const FORMATS = new Map();

export function grouped(value, maxDigits = 6, minDigits = 0) {
  const key = 100 * maxDigits + minDigits;
  if (!FORMATS.has(key)) FORMATS.set(key, new Intl.NumberFormat('en-US', {minimumFractionDigits: minDigits, maximumFractionDigits: maxDigits, roundingMode: 'halfEven'}));
  return FORMATS.get(key).format(value);
}

export const ns = (value) => (value == null ? MISSING : scaled(value, NS, 1000));
export const bytes = (value) => (value == null ? MISSING : scaled(value, BYTES, 1024));
export const share = (value) => (value == null ? MISSING : `${grouped(100 * value, 1, 1)} %`);
export const ratio = (value) => (value == null ? MISSING : grouped(value, 2, 2));
// A number of syncs in flight, which is usually an integer.
export const level = (value) => grouped(value, 2);

export function count(value) {
  if (value == null) return MISSING;
  return Number.isInteger(value) ? grouped(value, 0) : grouped(value, 2, 2);
}

// 1 bio, 2 bios.
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

// A time from here on, in ns, is a wall clock time: 2001-09-09. No machine has counted that long since it booted.
const WALL_CLOCK = 1e18;

// Seconds of a clock that counts from some start, or the date of a wall clock.
export function time(value) {
  if (value == null) return MISSING;
  if (value < WALL_CLOCK) return `${grouped(value / 1e9, 6, 6)} s`;
  const micros = Math.round(value / 1000);
  const date = new Date(Math.floor(micros / 1e6) * 1000).toISOString();
  return `${date.slice(0, 10)} ${date.slice(11, 19)}.${String(micros % 1e6).padStart(6, '0')} UTC`;
}

const UNITS = {ns, bytes, time, share, ratio, count, bar: share, id: (value) => (value == null ? MISSING : String(value))};

// Formats by the unit that a report gives. Values of other units are text.
export function text(value, unit) {
  if (value == null) return MISSING;
  return UNITS[unit] ? UNITS[unit](value) : printable(String(value));
}

// Escapes control characters, line breaks and changes of text direction: names come from a log.
export function printable(value) {
  return value.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (char) => `\\x{${char.codePointAt(0).toString(16)}}`);
}

// A difference of shares, in percentage points: a percentage of a share would mislead.
export const points = (value) => `${value > 0 ? '+' : ''}${grouped(100 * value, 1, 1)} pp`;

// Describes the change of a figure by a sign and a number.
export function change(base, now, unit) {
  if (base == null || now == null) return '';
  if (base === now) return '= same';
  const arrow = now > base ? '▲' : '▼';
  if (unit === 'share') return `${arrow} ${points(now - base)}`;
  // No ratio to 0. The caller shows the base next to this text.
  if (base === 0) return arrow;
  const times = now / base;
  if (times >= 10) return `${arrow} ${grouped(times, times < 100 ? 1 : 0)} times`;
  const percent = 100 * (times - 1);
  return `${arrow} ${percent > 0 ? '+' : ''}${percent.toFixed(Math.abs(percent) < 10 ? 1 : 0)} %`;
}

// Returns the unit of a time axis: ns per unit, and its name.
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
