// What the details panel shows of a wait of a write.

import type {Database} from './database';
import {bytes, count, duration} from './format';
import {num, type Row, text} from './rows';
import {type Other, otherView} from './sync';
import {thread} from './thread';

export interface WriteView {
  readonly sliceId: number | null;
  readonly title: string;
  readonly facts: ReadonlyArray<readonly [string, string]>;
  /** The syncs for whose work the write waited. */
  readonly syncs: readonly Other[];
  readonly syncsInAll: number;
}

// What a thread waits because of, by the name of the wait.
const WHY: Readonly<Record<string, string>> = {
  'throttling': 'too much page cache is dirty, so the kernel makes the thread pause',
  'inode lock': 'another thread writes to the file, truncates it or syncs it',
  'journal handle': 'a commit has begun, and other threads have not completed their changes',
  'journal space': 'the journal is full',
  'journal buffer': 'a commit writes a block that the thread needs to change',
  'page writeback': 'the page cache of the file is under writeback',
  'page read': 'a page of which it changes a part is read first',
};

/** Returns the number of the wait that a slice is; null if it is none. */
export async function ofWrite(db: Database, sliceId: number): Promise<number | null> {
  return num((await db.query('of-write', {slice_id: sliceId}))[0]?.['wait_id']);
}

/** Reads all that is shown of a wait; null if the tables do not have it. */
export async function readWrite(db: Database, waitId: number): Promise<WriteView | null> {
  const of = {wait_id: waitId};
  const row = (await db.query('write', of))[0];
  return row === undefined ? null : writeView(row, await db.query('write-syncs', of));
}

/** Makes the view of rows of sql/views/plugin/. */
export function writeView(row: Row, syncs: readonly Row[]): WriteView {
  const wait = text(row['wait'])!;
  return {
    sliceId: num(row['slice_id']),
    title: `Write waits: ${wait}: ${duration(num(row['dur_ns']))}`,
    facts: facts(row, wait),
    syncs: syncs.map(otherView),
    syncsInAll: num(syncs[0]?.['others']) ?? 0,
  };
}

function facts(row: Row, wait: string): Array<readonly [string, string]> {
  const ino = text(row['ino']);
  const dirty = num(row['bytes']);
  const transaction = text(row['transaction_id']);
  const found: Array<readonly [string, string | null]> = [
    ['thread', thread(row)],
    ['because', WHY[wait] ?? null],
    ['file', text(row['path']) ?? (ino === null ? null : `inode ${ino}`)],
    ['device', text(row['dev'])],
    ['made dirty since the last pause', dirty === null ? null : bytes(dirty)],
    ['who held the lock at first', thread(row, 'holder_comm', 'holder_tid')],
    ['transaction', transaction],
    ['commit', commit(row)],
    ['length', text(row['confidence']) === 'inferred' ? 'inferred: the pause that the kernel chose; its end is not recorded' : null],
  ];
  return found.filter((fact): fact is readonly [string, string] => fact[1] !== null);
}

function commit(row: Row): string | null {
  const length = num(row['commit_dur_ns']);
  if (length === null) return null;
  const syncs = num(row['commit_syncs']);
  return `${text(row['journal']) ?? 'the journal'} was committing, for ${duration(length)}${syncs === null ? '' : syncs === 0 ? '; no sync waited for it' : `; ${count(syncs, 'sync')} waited for it`}`;
}
