// Who used a device: for whom it worked in each column of the screen, and how much of the time it worked at all.

import {num, type Row, text} from './rows';
import type {Scale} from './lanes';

/** Times in which a device had bios: starts and ends since the start of the trace, in order and apart. */
export interface Times {
  readonly starts: Float64Array;
  readonly ends: Float64Array;
}

export interface User extends Times {
  readonly name: string;
  readonly colour: string;
  /** In all. */
  readonly time: number;
}

export interface Device {
  /** Its numbers, such as `253,0`; empty if the recording does not name it. */
  readonly dev: string;
  /** The time in which it had any bio. */
  readonly busy: Times;
  /** Those who used it the longest, first. The last one stands for the others if there are many. */
  readonly users: readonly User[];
}

// Blue and green are syncs, red is the journal, the others are neighbours. The last one is of all others.
const SYNCS = ['#4c8bf5', '#2f5fb3', '#8ab4f8'];
const JOURNAL = '#9aa0a6';
const OTHERS = ['#e8710a', '#a142f4', '#188038', '#d93025', '#b06000'];
const REST = '#5f6368';
const MOST_USERS = 7;

/** Makes the devices of rows of disk.sql, the one that worked the longest first. */
export function devices(rows: readonly Row[], origin: bigint): Device[] {
  const groups = new Map<string, Map<string, {row: Row; starts: number[]; ends: number[]; time: number}>>();
  for (const row of rows) {
    const dev = text(row['place']) ?? '';
    const of = groups.get(dev) ?? new Map<string, {row: Row; starts: number[]; ends: number[]; time: number}>();
    groups.set(dev, of);
    const key = userName(row) ?? '';
    const user = of.get(key) ?? {row, starts: [], ends: [], time: 0};
    of.set(key, user);
    const start = Number(BigInt(row['ts_ns'] as bigint) - origin);
    const length = num(row['dur_ns'])!;
    user.starts.push(start);
    user.ends.push(start + length);
    user.time += length;
  }
  const found = [...groups].map(([dev, of]): Device & {time: number} => {
    const busy = of.get('');
    const all = [...of].filter(([name]) => name !== '').sort(([a, x], [b, y]) => y.time - x.time || (a < b ? -1 : 1));
    const shown = all.slice(0, all.length > MOST_USERS ? MOST_USERS - 1 : MOST_USERS);
    const colours = {syncs: 0, others: 0};
    const users = shown.map(([name, {row, starts, ends, time}]): User => {
      const use = text(row['use']);
      const colour = use === 'journal' ? JOURNAL : use === 'syncs' ? SYNCS[colours.syncs++ % SYNCS.length]! : OTHERS[colours.others++ % OTHERS.length]!;
      return {name, colour, time, starts: Float64Array.from(starts), ends: Float64Array.from(ends)};
    });
    const rest = all.slice(shown.length);
    if (rest.length > 0) users.push({name: `${rest.length} others`, colour: REST, time: rest.reduce((sum, [, {time}]) => sum + time, 0), ...union(rest.map(([, one]) => one))});
    return {dev, users, time: busy?.time ?? 0, busy: {starts: Float64Array.from(busy?.starts ?? []), ends: Float64Array.from(busy?.ends ?? [])}};
  });
  return found.sort((a, b) => b.time - a.time || (a.dev < b.dev ? -1 : 1));
}

/** Who a row is of: `syncs of postgres`, `dd, /backup`, `journal`; null for all together. */
export function userName(row: Row): string | null {
  const use = text(row['use']);
  if (use === null || use === 'journal') return use;
  const process = text(row['process']) ?? 'not known';
  const group = text(row['cgroup']);
  const who = group === null || group === '/' ? process : `${process}, ${group}`;
  return use === 'writes' ? who : `${use} of ${who}`;
}

function union(all: ReadonlyArray<{starts: readonly number[]; ends: readonly number[]}>): Times {
  const order = all.flatMap(({starts, ends}) => starts.map((start, at) => [start, ends[at]!] as const)).sort(([a], [b]) => a - b);
  const starts: number[] = [];
  const ends: number[] = [];
  for (const [start, end] of order) {
    if (ends.length > 0 && start <= ends.at(-1)!) ends[ends.length - 1] = Math.max(ends.at(-1)!, end);
    else (starts.push(start), ends.push(end));
  }
  return {starts: Float64Array.from(starts), ends: Float64Array.from(ends)};
}

/** Returns the share of each column that times cover. */
export function covered({starts, ends}: Times, {from, to, pixels}: Scale): Float64Array {
  const columns = Math.max(Math.floor(pixels), 1);
  const found = new Float64Array(columns);
  const perNs = columns / (to - from);
  // The first one that ends after `from`.
  let low = 0;
  let high = ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle]! <= from) low = middle + 1;
    else high = middle;
  }
  for (let at = low; at < starts.length && starts[at]! < to; at++) {
    const left = Math.max((starts[at]! - from) * perNs, 0);
    const right = Math.min((ends[at]! - from) * perNs, columns);
    for (let column = Math.floor(left); column < right; column++) found[column]! += Math.min(right, column + 1) - Math.max(left, column);
  }
  return found;
}

/** A stack of each column: the height of each user, of 1, which is a device that worked all the time. */
export function stacks(device: Device, scale: Scale): Float64Array[] {
  const busy = covered(device.busy, scale);
  const shares = device.users.map((user) => covered(user, scale));
  for (let column = 0; column < busy.length; column++) {
    const sum = shares.reduce((sum, share) => sum + share[column]!, 0);
    // Several may have bios there at once: they share the time in which it worked.
    if (sum > 0) for (const share of shares) share[column] = (share[column]! / sum) * Math.min(busy[column]!, 1);
  }
  return shares;
}

/** The users at a time, with their time around it: the height of a column of the lane. */
export function usersAt(device: Device, from: number, to: number): User[] {
  return device.users.filter((user) => covered(user, {from, to, pixels: 1})[0]! > 0);
}
