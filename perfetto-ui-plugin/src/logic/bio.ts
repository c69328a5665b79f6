// What the details panel shows of a bio of no known sync: whose it is, and which syncs waited meanwhile.

import type {Database} from './database';
import {bytes, duration} from './format';
import {num, type Row, text} from './rows';
import {otherView, type Other} from './sync';
import {thread} from './thread';

export interface BioView {
  readonly title: string;
  readonly facts: ReadonlyArray<readonly [string, string]>;
  readonly syncs: readonly Other[];
  readonly syncsInAll: number;
}

/** Reads what is shown of the bio that a slice is; null if it is none. */
export async function readBio(db: Database, sliceId: number): Promise<BioView | null> {
  const row = (await db.query('of-bio', {slice_id: sliceId}))[0];
  return row === undefined ? null : bioView(row, await db.query('delayed', {bio_id: num(row['bio_id'])}));
}

export function bioView(row: Row, syncs: readonly Row[]): BioView {
  const writers = text(row['writers']);
  const who = writers ?? text(row['process']) ?? text(row['comm']) ?? 'an unknown process';
  const group = text(row[writers === null ? 'cgroup' : 'writers_cgroup']);
  const sector = text(row['sector']);
  const facts: Array<readonly [string, string | null]> = [
    ['control group', group],
    ['submitted by', thread(row)],
    ['file', text(row['path'])],
    ['in the queue', num(row['queue_ns']) === null ? null : duration(num(row['queue_ns']))],
    ['at the device', num(row['device_ns']) === null ? null : duration(num(row['device_ns']))],
    ['place', [text(row['dev']), sector === null ? null : `sector ${sector}`].filter((part) => part !== null).join(' ') || null],
    ['result', num(row['error']) ? `failed with errno ${-num(row['error'])!}` : null],
  ];
  return {
    title: `${bytes(num(row['bytes']))} ${text(row['direction']) ?? 'bio'} of ${who}: ${num(row['dur_ns']) === null ? 'length not known' : duration(num(row['dur_ns']))}`,
    facts: facts.filter((fact): fact is readonly [string, string] => fact[1] !== null),
    syncs: syncs.map(otherView),
    syncsInAll: num(syncs[0]?.['others']) ?? 0,
  };
}
