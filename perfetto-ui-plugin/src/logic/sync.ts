// What the details panel shows of one sync.

import type {Database} from './database';
import {bytes, count, duration, isWallClock, time} from './format';
import {addUp, type Part, phaseColour, phaseName} from './phases';
import {num, type Row, text} from './rows';
import {thread} from './thread';

export interface Segment {
  readonly name: string;
  readonly ns: number;
  /** Where it begins and how long it is, of the whole; 0 to 1. */
  readonly left: number;
  readonly width: number;
  readonly colour: string;
}

export interface Bio {
  readonly id: string;
  readonly sliceId: number | null;
  readonly isSelected: boolean;
  /** Since the start of the sync. */
  readonly after: string;
  readonly length: string;
  readonly queue: string;
  readonly device: string;
  readonly size: string;
  readonly flags: string;
  readonly place: string;
  readonly confidence: string;
  readonly problem: string | null;
}

export interface Wait {
  readonly what: string;
  readonly length: string;
  readonly commit: string | null;
  readonly others: string | null;
}

export interface Other {
  readonly sliceId: number | null;
  readonly what: string;
  readonly thread: string;
  readonly length: string;
  readonly common: string;
}

/** Whose bios the device had before those of a sync. `ahead`: for how long while the sync waited. */
export interface Bystander {
  readonly who: string;
  readonly what: string;
  readonly path: string;
  readonly ahead: string;
  readonly amount: string;
  /** It has bios of its own, to which a link can lead. */
  readonly isOthers: boolean;
  readonly row: Row;
}

export interface SyncView {
  readonly syncId: number;
  readonly sliceId: number | null;
  readonly title: string;
  readonly ts: bigint;
  /** Null if it is not known. */
  readonly ns: number | null;
  readonly path: string | null;
  readonly facts: ReadonlyArray<readonly [string, string]>;
  /** To scale, in the order of time; empty if the phases or the length are not known. */
  readonly segments: readonly Segment[];
  readonly phases: readonly Part[];
  readonly stack: readonly string[];
  readonly bios: readonly Bio[];
  readonly waits: readonly Wait[];
  readonly bystanders: readonly Bystander[];
  readonly others: readonly Other[];
  readonly othersInAll: number;
}

/** Returns the sync and the bio that a slice belongs to; null if it is not of a sync. */
export async function ofSlice(db: Database, sliceId: number): Promise<{syncId: number; bioId: number | null} | null> {
  const row = (await db.query('of-slice', {slice_id: sliceId}))[0];
  const syncId = num(row?.['sync_id']);
  return syncId === null ? null : {syncId, bioId: num(row?.['bio_id'])};
}

/** Reads all that is shown of a sync; null if the tables do not have it. */
export async function readSync(db: Database, syncId: number, bioId: number | null = null): Promise<SyncView | null> {
  const of = {sync_id: syncId};
  const row = (await db.query('sync', of))[0];
  if (row === undefined) return null;
  const [phases, bios, waits, others, bystanders] = [
    await db.query('phases', of),
    await db.query('bios', of),
    await db.query('waits', of),
    await db.query('others', of),
    await db.query('bystanders', of),
  ];
  return syncView(row, phases, bios, waits, others, bystanders, bioId);
}

/** Makes the view of rows of sql/views/plugin/. */
export function syncView(
  row: Row,
  phases: readonly Row[],
  bios: readonly Row[],
  waits: readonly Row[],
  others: readonly Row[],
  bystanders: readonly Row[],
  bioId: number | null = null,
): SyncView {
  const start = BigInt(row['ts_ns'] as bigint);
  const length = num(row['dur_ns']);
  const path = text(row['path']);
  const parts = phases.map((phase) => ({name: text(phase['phase'])!, ns: num(phase['dur_ns'])!}));
  return {
    syncId: num(row['sync_id'])!,
    sliceId: num(row['slice_id']),
    title: `${text(row['op']) ?? 'sync'} ${path ?? inode(row)}: ${length === null ? 'length not known' : duration(length)}`,
    ts: start,
    ns: length,
    path,
    facts: facts(row),
    segments: segments(start, length, phases),
    phases: addUp(parts),
    stack: text(row['stack'])?.split(';') ?? [],
    bios: bios.map((bio) => bioView(bio, start, bioId)),
    waits: waits.map(waitView),
    bystanders: bystanders.filter((other) => text(other['kind']) !== 'itself').map(bystanderView),
    others: others.map(otherView),
    othersInAll: num(others[0]?.['others']) ?? 0,
  };
}

// Whose bios were at the device before those of the sync.
function bystanderView(row: Row): Bystander {
  const kind = text(row['kind'])!;
  const who = [text(row['process']) ?? text(row['comm']), text(row['cgroup'])].filter((part) => part !== null).join(', ') || 'not known';
  const writers = text(row['writers']);
  const others = num(row['others_bytes']) ?? 0;
  return {
    who: kind === 'commit' ? 'the commit that it waits for' : writers === null ? who : `${who}, for ${writers}`,
    what: {commit: 'journal', journal: 'journal, other commits', sync: 'another sync', background: 'no sync'}[kind] ?? kind,
    path: text(row['path']) ?? '',
    ahead: duration(num(row['ahead_ns'])),
    amount: `${bytes(num(row['bytes']))} in ${count(num(row['bios']) ?? 0, 'bio')}${others > 0 ? `, ${bytes(others)} of it for other files` : ''}`,
    isOthers: kind !== 'commit',
    row,
  };
}

function inode(row: Row): string {
  const ino = text(row['ino']);
  return ino === null ? 'of a file that is not known' : `of inode ${ino}`;
}

function facts(row: Row): Array<readonly [string, string]> {
  const bios = num(row['bios']);
  const found: Array<readonly [string, string | null]> = [
    ['thread', thread(row)],
    ['process', text(row['process'])],
    ['amount', bios === null ? null : bios === 0 ? 'no bio: nothing was written' : `${bytes(num(row['bytes']))} in ${count(bios, 'bio')}`],
    ['file system', [text(row['fs']), text(row['dev'])].filter((part) => part !== null).join(' on ') || null],
    ['path in the container', text(row['container_path'])],
    ['result', result(num(row['ret']))],
    ['began', began(row)],
    ['relations', relations(row)],
    ['not recorded', missing(text(row['incomplete']))],
  ];
  return found.filter((fact): fact is readonly [string, string] => fact[1] !== null);
}

function result(ret: number | null): string | null {
  if (ret === null) return null;
  return ret < 0 ? `failed with errno ${-ret}` : 'no error';
}

// The UI counts the days of a wall clock since 1970.
function began(row: Row): string | null {
  const ts = BigInt(row['ts_ns'] as bigint);
  return isWallClock(ts) ? time(ts) : null;
}

function relations(row: Row): string | null {
  const parts = ['bios', 'journal_ns', 'flush_ns'].map((name) => num(row[name]));
  if (parts.every((part) => part === null)) return 'not recorded: neither bios nor waits of the sync are in the recording';
  const value = text(row['confidence']);
  if (value === 'exact') return 'exact: the recorder says which bios and waits belong to the sync';
  if (value === 'inferred') return 'inferred: at least one bio or wait is attributed by thread and time';
  return value === null ? null : 'unknown: at least one bio or wait may belong to another sync';
}

function missing(value: string | null): string | null {
  if (value === 'bio') return 'the submit or the completion of a bio';
  if (value === 'call') return 'the begin of its call';
  return value === null ? null : `the ${value} of the sync`;
}

function segments(start: bigint, length: number | null, phases: readonly Row[]): Segment[] {
  if (!length) return [];
  const found: Segment[] = [];
  for (const phase of phases) {
    const ns = num(phase['dur_ns'])!;
    // A residue in several pieces has no place. What no segment covers is not explained.
    if (phase['ts_ns'] === null || phase['ts_ns'] === undefined) continue;
    const name = text(phase['phase'])!;
    const left = Number(BigInt(phase['ts_ns'] as bigint) - start) / length;
    found.push({name: phaseName(name), ns, left, width: ns / length, colour: phaseColour(name)});
  }
  return found;
}

function bioView(row: Row, start: bigint, selected: number | null): Bio {
  const error = num(row['error']);
  const incomplete = text(row['incomplete']);
  const id = num(row['bio_id'])!;
  const sector = text(row['sector']);
  return {
    id: String(id),
    sliceId: num(row['slice_id']),
    isSelected: id === selected,
    after: duration(Number(BigInt(row['ts_ns'] as bigint) - start)),
    length: duration(num(row['dur_ns'])),
    queue: duration(num(row['queue_ns'])),
    device: duration(num(row['device_ns'])),
    size: bytes(num(row['bytes'])),
    flags: text(row['rwbs']) ?? '–',
    place: [text(row['dev']), sector === null ? null : `sector ${sector}`].filter((part) => part !== null).join(' ') || '–',
    confidence: text(row['confidence']) ?? '–',
    problem: error ? `failed with errno ${-error}` : incomplete === null ? null : `its ${incomplete} is not recorded`,
  };
}

function waitView(row: Row): Wait {
  const transaction = text(row['transaction_id']);
  const others = num(row['others']);
  const commit = [
    transaction === null ? null : `transaction ${transaction}`,
    row['commit_id'] === null || row['commit_id'] === undefined
      ? null
      : `${text(row['journal']) ?? 'the journal'} committed it in ${duration(num(row['commit_dur_ns']))}`,
  ].filter((part) => part !== null);
  return {
    what: text(row['wait'])!,
    length: duration(num(row['dur_ns'])),
    commit: commit.join(': ') || null,
    others: transaction === null || others === null ? null : others === 0 ? 'no other sync waited for it' : `${count(others, 'other sync')} waited for it`,
  };
}

/** Makes the view of a sync that was in flight at the same time. */
export function otherView(row: Row): Other {
  return {
    sliceId: num(row['slice_id']),
    what: [text(row['op']), text(row['path'])].filter((part) => part !== null).join(' ') || 'sync',
    thread: thread(row) ?? '–',
    length: duration(num(row['dur_ns'])),
    common: duration(num(row['common_ns'])),
  };
}
