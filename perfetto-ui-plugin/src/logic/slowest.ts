// The syncs that waited longest, with what their time went to.

import {baseName, bytes, count, duration, percent} from './format';
import {addUp, type Part} from './phases';
import type {Database} from './database';
import {num, type Row, text} from './rows';
import {thread} from './thread';

export const MOST = 20;

export interface Phase {
  readonly name: string;
  /** Null if it is in several pieces. */
  readonly ts: bigint | null;
  readonly ns: number;
}

export interface Slow {
  readonly syncId: number;
  readonly sliceId: number | null;
  readonly ts: bigint;
  readonly ns: number;
  readonly path: string;
  readonly thread: string;
  readonly op: string;
  readonly amount: string;
  readonly phases: readonly Phase[];
  /** The longest first. */
  readonly parts: readonly Part[];
}

export async function readSlowest(db: Database, most = MOST): Promise<Slow[]> {
  return slowest(await db.query('slowest', {most}), await db.query('slowest-phases', {most}));
}

export function slowest(rows: readonly Row[], phases: readonly Row[]): Slow[] {
  const of = new Map<number, Phase[]>();
  for (const row of phases) {
    const id = num(row['sync_id'])!;
    const ts = row['ts_ns'];
    const phase = {name: text(row['phase'])!, ts: ts === null || ts === undefined ? null : BigInt(ts as bigint), ns: num(row['dur_ns'])!};
    const known = of.get(id);
    if (known) known.push(phase);
    else of.set(id, [phase]);
  }
  return rows.map((row): Slow => {
    const syncId = num(row['sync_id'])!;
    const own = of.get(syncId) ?? [];
    const bios = num(row['bios']);
    return {
      syncId,
      sliceId: num(row['slice_id']),
      ts: BigInt(row['ts_ns'] as bigint),
      ns: num(row['dur_ns'])!,
      path: text(row['path']) ?? 'file not known',
      thread: thread(row) ?? 'thread not known',
      op: text(row['op']) ?? 'sync',
      amount: bios === null ? 'not recorded' : bios === 0 ? 'no bio' : `${bytes(num(row['bytes']))} in ${count(bios, 'bio')}`,
      phases: own,
      parts: addUp(own),
    };
  });
}

/** `391 ms 0001.wal`. */
export function label(sync: Slow): string {
  return `${duration(sync.ns)} ${baseName(sync.path)}`;
}

/** Its longest phases: `56 % commit locking, 16 % commit logging`. */
export function mostly(sync: Slow, parts = 3): string {
  const shown = sync.parts.slice(0, parts).filter(({share}) => share >= 0.01);
  return shown.map(({name, share}) => `${percent(share)} ${name}`).join(', ') || 'phases are not recorded';
}

export const ORDERS = ['length', 'file', 'thread', 'begin'] as const;
export type Order = (typeof ORDERS)[number];

/** Those whose file or thread contains a text, in an order. */
export function chosen(all: readonly Slow[], filter: string, order: Order): Slow[] {
  const wanted = filter.trim().toLowerCase();
  const found = all.filter(({path, thread}) => `${path}\n${thread}`.toLowerCase().includes(wanted));
  const by = {
    length: (a: Slow, b: Slow) => b.ns - a.ns,
    file: (a: Slow, b: Slow) => compare(a.path, b.path),
    thread: (a: Slow, b: Slow) => compare(a.thread, b.thread),
    begin: (a: Slow, b: Slow) => compare(a.ts, b.ts),
  }[order];
  return found.sort((a, b) => by(a, b) || b.ns - a.ns || a.syncId - b.syncId);
}

function compare<T>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
