// What the tab of an area selection shows: each sync in it, counted once.

import type {AreaSelection} from '../perfetto';
import type {Database} from './database';
import {bytes, count, duration} from './format';
import type {Stack} from './flame';
import {addUp, type Part} from './phases';
import {num, type Row, text} from './rows';
import {thread} from './thread';

export interface Item {
  readonly name: string;
  readonly syncs: number;
  readonly time: string;
  /** Of the time of all syncs; 0 to 1. */
  readonly share: number;
  readonly longest: string;
}

/** Waits of the writes of a thread for one thing. */
export interface WriteItem {
  readonly name: string;
  readonly wait: string;
  readonly waits: number;
  readonly time: string;
  readonly longest: string;
  /** What the thread had made dirty; only of throttling. */
  readonly amount: string | null;
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
  readonly writes: readonly WriteItem[];
  /** All waits of writes, also those that `writes` leaves out; null if there is none. */
  readonly writesInAll: string | null;
}

export interface Tables {
  /** The area has the syncs of all threads, whatever its tracks. */
  readonly all: boolean;
  readonly total: Row;
  readonly phases: readonly Row[];
  readonly files: readonly Row[];
  readonly threads: readonly Row[];
  readonly stacks: readonly Row[];
  readonly writes: readonly Row[];
}

/** What Syncline's slices and lanes are on. */
export interface OwnTracks {
  /** The tracks that show Syncline's slices. */
  readonly slices: ReadonlySet<number>;
  /** The lanes by their URI: a sync of the thread of each, or null if a lane shows the syncs of all threads. The UI gives lanes no track ids. */
  readonly lanes: ReadonlyMap<string, number | null>;
}

/** Whose syncs an area has. */
export interface Chosen {
  readonly tracks: readonly number[];
  /** A sync of each thread whose lane is in the area. */
  readonly lanes: readonly number[];
  /** All syncs of the time: the area has a lane of all, or only counters and tracks of others. */
  readonly all: boolean;
}

/** Finds which of the tracks of an area say whose syncs it has. */
export function chosen(selected: AreaSelection['tracks'], own: OwnTracks): Chosen {
  const tracks = selected.flatMap((track) => track.tags?.trackIds ?? []).filter((id) => own.slices.has(id));
  const threads = selected.map((track) => own.lanes.get(track.uri)).filter((lane) => lane !== undefined);
  const lanes = threads.filter((lane) => lane !== null);
  return {tracks, lanes, all: lanes.length < threads.length || (tracks.length === 0 && lanes.length === 0)};
}

/** Reads the syncs of an area. */
export async function readArea(db: Database, area: AreaSelection, own: OwnTracks): Promise<AreaView> {
  const {tracks, lanes, all} = chosen(area.tracks, own);
  const of = {start_ns: area.start, end_ns: area.end, tracks, lanes, all_tracks: all ? 1 : 0};
  await db.rebuild('area', of);
  return areaView({
    all,
    total: (await db.query('area-total'))[0]!,
    phases: await db.query('area-phases'),
    files: await db.query('area-files'),
    threads: await db.query('area-threads'),
    stacks: await db.query('area-stacks'),
    writes: await db.query('area-writes', of),
  });
}

/** Makes the view of rows of sql/views/plugin/. */
export function areaView({all, total, phases, files, threads, stacks, writes}: Tables): AreaView {
  const syncs = num(total['syncs']) ?? 0;
  const known = num(total['known']) ?? 0;
  const time = num(total['time_ns']);
  const item = (name: string) => (row: Row): Item => ({
    name: name === 'path' ? text(row['path']) ?? 'file not known' : thread(row) ?? 'thread not known',
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
      ['of', all ? 'all threads' : 'the selected lanes and tracks'],
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
    writes: writes.map((row) => ({
      name: thread(row) ?? 'thread not known',
      wait: text(row['wait'])!,
      waits: num(row['waits'])!,
      time: duration(num(row['time_ns'])),
      longest: duration(num(row['max_ns'])),
      amount: num(row['bytes']) === null ? null : bytes(num(row['bytes'])),
    })),
    writesInAll: writes.length === 0 ? null : `${count(num(writes[0]!['all_waits'])!, 'wait')}, ${duration(num(writes[0]!['all_ns']))}`,
  };
}
