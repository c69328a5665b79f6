// Figures for people.

const UNITS: ReadonlyArray<readonly [string, number]> = [['s', 1e9], ['ms', 1e6], ['µs', 1e3]];
const SIZES: ReadonlyArray<readonly [string, number]> = [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]];

/** A duration with three digits: `104 ms`. A dash if it is not known. */
export function duration(ns: number | null): string {
  if (ns === null) return '–';
  return scaled(ns, UNITS, 'ns');
}

// A time from here on, in ns, is a wall clock time: 2001-09-09. No machine has counted that long since it booted.
const WALL_CLOCK = 10n ** 18n;

/** Whether a time is of a wall clock, which counts from 1970. */
export function isWallClock(ns: bigint): boolean {
  return ns >= WALL_CLOCK;
}

/** A time: seconds of a clock that counts from some start, or the date of a wall clock: `2026-11-20 17:49:24.542266 UTC`. */
export function time(ns: bigint): string {
  const micros = (ns + 500n) / 1000n;
  const rest = String(micros % 1_000_000n).padStart(6, '0');
  if (!isWallClock(ns)) return `${(micros / 1_000_000n).toLocaleString('en')}.${rest} s`;
  const date = new Date(Number(micros / 1_000_000n) * 1000).toISOString();
  return `${date.slice(0, 10)} ${date.slice(11, 19)}.${rest} UTC`;
}

/** A size: `20.8 MiB`. A dash if it is not known. */
export function bytes(size: number | null): string {
  return size === null ? '–' : scaled(size, SIZES, 'B');
}

/** A share of 1: `35 %`, `0.4 %`. */
export function percent(share: number): string {
  const value = share * 100;
  return `${value !== 0 && Math.abs(value) < 9.95 ? value.toFixed(1) : Math.round(value)} %`;
}

/** A count with its noun: `1 bio`, `158 bios`. */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
}

/** A count in few characters: `999`, `12.3k`. */
export function short(number: number): string {
  return number < 10_000 ? String(number) : number < 999_500 ? `${Number((number / 1e3).toPrecision(3))}k` : `${Number((number / 1e6).toPrecision(3))}M`;
}

/** The last part of a path. */
export function baseName(path: string | null): string | null {
  return path === null ? null : path.slice(path.lastIndexOf('/') + 1) || path;
}

function scaled(value: number, units: ReadonlyArray<readonly [string, number]>, least: string): string {
  const sized = Math.abs(value);
  const [unit, factor] = units.find(([, factor]) => sized >= factor * 0.9995) ?? [least, 1];
  const shown = value / factor;
  const digits = factor === 1 || Math.abs(shown) >= 99.95 ? 0 : Math.abs(shown) >= 9.995 ? 1 : 2;
  return `${shown.toFixed(digits)} ${unit}`;
}
