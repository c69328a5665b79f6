// What happened during one sync, as lanes: its phases, its bios, the commits that it waits for, the bios of these, and who had the CPU.

import {bytes, duration} from './format';
import type {Item} from './lanes';
import {phaseColour, phaseName} from './phases';
import {num, type Row, text} from './rows';

/** A lane of parts that do not overlap, but where there is no room for another lane. */
export interface Lane {
  /** What the lanes of its kind show; only the first of them has a name. */
  readonly name: string | null;
  readonly items: readonly Item[];
}

// More would leave no room for the other tracks.
const MOST = {bio: 4, 'commit bio': 2};
const NAMES = {bio: 'its bios', 'commit bio': 'bios of the commit'};
export const QUEUED = '#f3b562';
export const SERVED = '#3f7fbf';
const OF_COMMIT = '#7c8ea0';
const COMMIT = '#cfcfcf';
const CPU = '#8d6fb0';
const STEPS: Readonly<Record<string, string>> = {locking: 'commit locking', flushing: 'commit flushing', logging: 'commit logging'};

/** Makes lanes of the rows of the query `inside`. */
export function inside(rows: readonly Row[], origin: bigint): Lane[] {
  const phases = rows.filter((row) => row['lane'] === 'phase');
  return [
    one('phases', phases.map((row) => phase(row, origin))),
    ...stacked('bio', rows, origin),
    one('commit', rows.filter((row) => row['lane'] === 'commit' || row['lane'] === 'step').map((row) => commit(row, origin))),
    ...stacked('commit bio', rows, origin),
    one('CPU had', phases.filter((row) => num(row['cpu_tid']) !== null).map((row) => cpu(row, origin))),
  ].filter(({items}) => items.length > 0);
}

function one(name: string, items: readonly Item[]): Lane {
  return {name, items};
}

function phase(row: Row, origin: bigint): Item {
  const name = text(row['name'])!;
  return {...times(row, origin), label: phaseName(name), colour: phaseColour(name), sliceId: null};
}

function commit(row: Row, origin: bigint): Item {
  const name = text(row['name'])!;
  const isWhole = row['lane'] === 'commit';
  return {...times(row, origin), label: name, colour: isWhole ? COMMIT : phaseColour(STEPS[name] ?? name), sliceId: num(row['slice_id']), isWhole};
}

// Who had the CPU for which the thread waited, or the thread that woke it.
function cpu(row: Row, origin: bigint): Item {
  const tid = num(row['cpu_tid'])!;
  const who = tid === 0 ? 'idle' : [text(row['cpu_comm']), String(tid)].filter((part) => part !== null).join(' ');
  return {...times(row, origin), label: who, colour: CPU, sliceId: null, hint: `had the CPU in ${phaseName(text(row['name'])!)}`};
}

// Each bio is in the first lane that is free, and has two parts: in the queue, and at the device.
function stacked(lane: 'bio' | 'commit bio', rows: readonly Row[], origin: bigint): Lane[] {
  const lanes: Item[][] = [];
  const ends: number[] = [];
  for (const row of rows.filter((row) => row['lane'] === lane)) {
    const {start, length} = times(row, origin);
    let at = ends.findIndex((end) => end <= start);
    if (at < 0) at = Math.min(lanes.length, MOST[lane] - 1);
    ends[at] = Math.max(ends[at] ?? 0, start + length);
    (lanes[at] ??= []).push(...bio(row, origin, lane === 'bio' ? SERVED : OF_COMMIT));
  }
  return lanes.map((items, at) => ({name: at === 0 ? NAMES[lane] : null, items: items.sort((a, b) => a.start - b.start)}));
}

function bio(row: Row, origin: bigint, colour: string): Item[] {
  const {start, length} = times(row, origin);
  const sliceId = num(row['slice_id']);
  const queue = num(row['queue_ns']);
  const what = [bytes(num(row['bytes'])), text(row['rwbs'])].filter((part) => part !== null).join(' ');
  if (queue === null) return [{start, length, label: what, colour, sliceId, hint: 'from submit to completion: its issue is not recorded'}];
  const waited = Math.min(queue, length);
  const hint = `in the queue for ${duration(queue)}, at the device for ${duration(length - waited)}`;
  const parts = [
    {start, length: waited, label: `queued: ${what}`, colour: QUEUED, sliceId, hint},
    {start: start + waited, length: length - waited, label: `device: ${what}`, colour, sliceId, hint},
  ];
  return parts.filter((part) => part.length > 0);
}

function times(row: Row, origin: bigint): {start: number; length: number} {
  return {start: Number(BigInt(row['ts_ns'] as bigint) - origin), length: num(row['dur_ns'])!};
}
