// What the tab of an area selection shows: each sync in it, counted once.

import type {AreaSelection} from '../perfetto';
import type {Database} from './database';
import {bytes, count, duration} from './format';
import type {Stack} from './flame';
import {addUp, type Part} from './phases';
import {num, type Row, text} from './rows';

export interface Item {
  readonly name: string;
  readonly syncs: number;
  readonly time: string;
  /** Of the time of all syncs; 0 to 1. */
  readonly share: number;
  readonly longest: string;
}

export interface AreaView {
  readonly syncs: number;
  readonly facts: ReadonlyArray<readonly [string, string]>;
  readonly phases: readonly Part[];
  readonly files: readonly Item[];
  readonly fileCount: number;
  readonly threads: readonly Item[];
  readonly threadCount: number;
  readonly stacks: readonly Stack[];
}

export interface Tables {
  readonly total: Row;
  readonly phases: readonly Row[];
  readonly files: readonly Row[];
  readonly threads: readonly Row[];
  readonly stacks: readonly Row[];
}

/** Reads the syncs of an area. `ownTracks` are the tracks that show Syncline's slices. */
export async function readArea(db: Database, area: AreaSelection, ownTracks: ReadonlySet<number>): Promise<AreaView> {
  const tracks = area.tracks.flatMap((track) => track.tags?.trackIds ?? []).filter((id) => ownTracks.has(id));
  await db.rebuild('area', {
    start_ns: area.start,
    end_ns: area.end,
    tracks,
    // An area over counters and other tracks only has all syncs of its time.
    all_tracks: tracks.length === 0 ? 1 : 0,
  });
  return areaView({
    total: (await db.query('area-total'))[0]!,
    phases: await db.query('area-phases'),
    files: await db.query('area-files'),
    threads: await db.query('area-threads'),
    stacks: await db.query('area-stacks'),
  });
}

/** Makes the view of rows of sql/plugin/. */
export function areaView({total, phases, files, threads, stacks}: Tables): AreaView {
  const syncs = num(total['syncs']) ?? 0;
  const known = num(total['known']) ?? 0;
  const time = num(total['time_ns']);
  const item = (name: string) => (row: Row): Item => ({
    name: name === 'path' ? text(row['path']) ?? 'file not known' : threadName(row),
    syncs: num(row['syncs'])!,
    time: duration(num(row['time_ns'])),
    share: time ? (num(row['time_ns']) ?? 0) / time : 0,
    longest: duration(num(row['max_ns'])),
  });
  const sized = num(total['sized']) ?? 0;
  return {
    syncs,
    facts: [
      ['syncs', known === syncs ? count(syncs, 'sync') : `${count(syncs, 'sync')}; the length of ${syncs - known} is not known`],
      ['time waited, added up', duration(time)],
      ['half took at most (p50)', duration(num(total['p50_ns']))],
      ['99 % took at most (p99)', duration(num(total['p99_ns']))],
      ['longest', duration(num(total['max_ns']))],
      ['written back', sized === 0 ? 'not recorded' : bytes(num(total['bytes'])) + (sized === syncs ? '' : ` by ${count(sized, 'sync')}; not recorded for the others`)],
    ],
    phases: addUp(phases.map((row) => ({name: text(row['phase'])!, ns: num(row['time_ns'])!}))),
    files: files.map(item('path')),
    fileCount: num(files[0]?.['items']) ?? 0,
    threads: threads.map(item('thread')),
    threadCount: num(threads[0]?.['items']) ?? 0,
    stacks: stacks.map((row) => ({
      frames: text(row['stack']),
      weights: {time: num(row['time_ns'])!, syncs: num(row['syncs'])!, bytes: num(row['bytes'])!},
    })),
  };
}

function threadName(row: Row): string {
  return [text(row['comm']), text(row['tid'])].filter((part) => part !== null).join(' ') || 'thread not known';
}
