// The logic of the plugin on rows as the trace processor returns them: integers are bigints.

import {describe, expect, it} from 'vitest';
import {areaView, chosen} from '../src/logic/area';
import {Database, modulesOf, withParameters} from '../src/logic/database';
import {flame} from '../src/logic/flame';
import {baseName, bytes, count, duration, percent, short, time} from '../src/logic/format';
import {addUp, phaseColour, textOn} from '../src/logic/phases';
import type {Row} from '../src/logic/rows';
import {ofSlice, syncView} from '../src/logic/sync';
import {writeView} from '../src/logic/write';
import {OWN_TABLES, QUERIES, TABLES} from '../src/generated/sql';
import type {Engine, Value} from '../src/perfetto';

/** An engine that keeps the statements, and answers those that contain a text with rows. */
function fake(answers: Record<string, Row[]> = {}, fails?: string) {
  const asked: string[] = [];
  const engine: Engine = {
    query: async (sql) => {
      asked.push(sql);
      if (fails && sql.includes(fails)) throw new Error('syntax error');
      const found = Object.entries(answers).find(([text]) => sql.includes(text))?.[1] ?? [];
      let at = 0;
      return {
        columns: () => Object.keys(found[0] ?? {}),
        iter: () => ({valid: () => at < found.length, next: () => void at++, get: (column: string): Value => found[at]![column]!}),
      };
    },
  };
  return {engine, asked};
}

describe('format', () => {
  it('shows three digits at most, and a dash for what is not known', () => {
    expect([0, 999, 1000, 41_834_056, 104_819_250_27, 999_960].map(duration)).toEqual(['0 ns', '999 ns', '1.00 µs', '41.8 ms', '10.5 s', '1.00 ms']);
    expect([0, 1023, 1024, 21_810_381].map(bytes)).toEqual(['0 B', '1023 B', '1.00 KiB', '20.8 MiB']);
    expect([duration(null), bytes(null)]).toEqual(['–', '–']);
    expect([0, 0.004, 0.0995, 0.345, 1].map(percent)).toEqual(['0 %', '0.4 %', '10 %', '35 %', '100 %']);
    // The second is the time of a wall clock, which nobody reads as seconds.
    expect([20_500_000_000n, 1_795_196_964_542_266_000n, 1_795_196_964_999_999_600n].map(time)).toEqual(['20.500000 s', '2026-11-20 17:49:24.542266 UTC', '2026-11-20 17:49:25.000000 UTC']);
    expect([count(1, 'bio'), count(1540, 'bio')]).toEqual(['1 bio', '1,540 bios']);
    expect([9_999, 12_345, 160_096, 1_234_567].map(short)).toEqual(['9999', '12.3k', '160k', '1.23M']);
    expect(['/a/b', '/a/', 'b', null].map(baseName)).toEqual(['b', '/a/', 'b', null]);
  });
});

describe('database', () => {
  it('finds the modules that a query needs, each after those that it includes', () => {
    const needed = modulesOf('SELECT * FROM syncline_phase JOIN syncline_wait USING (sync_id)');
    expect(new Set(needed)).toEqual(new Set(['known', 'bio', 'related', 'sync', 'phase', 'wait']));
    for (const name of needed) {
      for (const [, other] of TABLES[name]!.matchAll(/^INCLUDE PERFETTO MODULE dev\.syncline\.(\w+);/gm)) {
        expect(needed.indexOf(other!)).toBeLessThan(needed.indexOf(name));
      }
    }
    expect(modulesOf('SELECT * FROM _syncline_plugin_slice')).toEqual([]);
  });

  it('builds each table once, before the query, without INCLUDE', async () => {
    const {engine, asked} = fake();
    const db = new Database(engine);
    await Promise.all([db.query('sync', {sync_id: 4711}), db.query('bios', {sync_id: 4711})]);
    await db.query('sync', {sync_id: 2});
    const made = asked.filter((sql) => sql.includes('TABLE syncline_sync ('));
    expect(made).toHaveLength(1);
    expect(asked.filter((sql) => sql === OWN_TABLES['slices'])).toHaveLength(1);
    expect(asked.some((sql) => sql.includes('INCLUDE'))).toBe(false);
    expect(asked.indexOf(made[0]!)).toBeLessThan(asked.findIndex((sql) => sql.includes('syncline_sync.sync_id = 4711')));
    // All tables that another one reads are there before it.
    expect(asked.findIndex((sql) => sql.includes('_syncline_known AS'))).toBeLessThan(asked.indexOf(made[0]!));
  });

  it('reports an error to each query that needs the table', async () => {
    const {engine} = fake({}, 'TABLE syncline_sync (');
    const db = new Database(engine);
    await expect(db.query('sync', {sync_id: 1})).rejects.toThrow('syntax error');
    await expect(db.query('sync', {sync_id: 1})).rejects.toThrow('syntax error');
    await expect(db.query('tracks')).resolves.toEqual([]);
  });

  it('puts values into SQL, quoted', () => {
    const sql = withParameters('a = $number AND b IS $text AND c IS $none AND d IN ($list) AND e IN ($empty)', {
      number: 2n ** 60n, text: "it's", none: null, list: [1, 2], empty: [],
    });
    expect(sql).toBe("a = 1152921504606846976 AND b IS 'it''s' AND c IS NULL AND d IN (1, 2) AND e IN (NULL)");
    expect(() => withParameters('$x', {})).toThrow('no value for $x');
  });

  it('has a value for each parameter of each query', () => {
    const names = new Set(Object.values({...QUERIES, ...OWN_TABLES}).flatMap((sql) => [...sql.matchAll(/\$([a-z_]+)/g)].map(([, name]) => name)));
    expect(names).toEqual(new Set(['all_tracks', 'bio_id', 'cgroup', 'comm', 'dev', 'end_ns', 'from_ns', 'lanes', 'most', 'process', 'slice_id', 'start_ns', 'sync_id', 'tid', 'tracks', 'until_ns', 'wait_id']));
  });
});

describe('phases', () => {
  it('adds up what has one name, the longest first and what is not explained last', () => {
    const parts = addUp([{name: 'residue', ns: 50}, {name: 'device', ns: 10}, {name: 'queue', ns: 15}, {name: 'device', ns: 20}, {name: 'flush', ns: 0}]);
    expect(parts.map(({name, ns}) => [name, ns])).toEqual([['device', 30], ['queue', 15], ['not explained', 50]]);
    expect(parts.reduce((sum, {share}) => sum + share, 0)).toBeCloseTo(1);
    expect(addUp([])).toEqual([]);
  });

  it('has a colour for each phase, also for one that it does not know', () => {
    expect(textOn('#428eb4')).toBe('#fff');
    expect(textOn('#50b4bf')).toBe('#000');
    expect(phaseColour('device')).not.toBe(phaseColour('queue'));
    expect(phaseColour('a new phase')).toMatch(/^#[0-9a-f]{6}$/);
  });
});

const START = 2n ** 60n;
const SYNC: Row = {
  sync_id: 7n, slice_id: 590n, ts_ns: START, dur_ns: 1000n, op: 'fsync', path: '/db/wal', ino: 4n, comm: 'postgres', tid: 12n,
  process: null, fs: 'ext4', dev: '254,16', bytes: 12288n, bios: 2n, ret: 0n, stack: 'main;save;fsync', confidence: 'exact', incomplete: null, container_path: null,
};

describe('sync', () => {
  it('names who was ahead at the device, without itself', () => {
    const none = {comm: null, process: null, cgroup: null, writers: null, path: null, bios: 1n, bytes: 4096n, ahead_ns: 5000n};
    const rows: Row[] = [
      {...none, kind: 'itself'},
      {...none, kind: 'commit', comm: 'jbd2/vdb-8', bytes: 20480n, others_bytes: 16384n},
      {...none, kind: 'background', comm: 'dd', process: 'backup', cgroup: '/batch.slice', bios: 4n, bytes: 262144n, ahead_ns: 155000000n},
      {...none, kind: 'background', comm: 'kworker/u8:1', writers: 'backup'},
      {...none, kind: 'sync', path: '/db/wal'},
    ];
    const seen = syncView(SYNC, [], [], [], [], rows).bystanders;
    expect(seen.map(({who, what, path}) => [who, what, path])).toEqual([
      ['the commit that it waits for', 'journal', ''],
      ['backup, /batch.slice', 'no sync', ''],
      ['kworker/u8:1, for backup', 'no sync', ''],
      ['not known', 'another sync', '/db/wal'],
    ]);
    expect(seen[0]).toMatchObject({amount: '20.0 KiB in 1 bio, 16.0 KiB of it for other files'});
    expect(seen[1]).toMatchObject({ahead: '155 ms', amount: '256 KiB in 4 bios'});
    expect(QUERIES['bystanders']).toContain('sync_id = $sync_id');
    expect(QUERIES['bystanders']).not.toContain('number <= 10');
  });

  it('places phases and bios to scale, with times above 2^53', () => {
    const phases: Row[] = [
      {phase: 'before submit', ts_ns: START + 100n, dur_ns: 200n},
      {phase: 'device', ts_ns: START + 300n, dur_ns: 500n},
      // In several pieces: it has no place.
      {phase: 'residue', ts_ns: null, dur_ns: 300n},
    ];
    const bios: Row[] = [
      {bio_id: 3n, slice_id: 600n, ts_ns: START + 300n, dur_ns: 500n, queue_ns: 100n, device_ns: 400n, bytes: 8192n, rwbs: 'WS', dev: '254,16', sector: 8n, error: 0n, confidence: 'exact', incomplete: null},
      {bio_id: 4n, slice_id: null, ts_ns: START + 310n, dur_ns: null, queue_ns: null, device_ns: null, bytes: null, rwbs: null, dev: null, sector: null, error: null, confidence: 'inferred', incomplete: 'end'},
    ];
    const view = syncView(SYNC, phases, bios, [], [], [], 3);
    expect(view.title).toBe('fsync /db/wal: 1.00 µs');
    expect(view.segments.map(({name, left, width}) => [name, left, width])).toEqual([['before submit', 0.1, 0.2], ['device', 0.3, 0.5]]);
    expect(view.phases.map(({name, share}) => [name, share])).toEqual([['device', 0.5], ['before submit', 0.2], ['not explained', 0.3]]);
    expect(view.bios.map(({after, size, isSelected, problem}) => [after, size, isSelected, problem])).toEqual([
      ['300 ns', '8.00 KiB', true, null],
      ['310 ns', '–', false, 'its end is not recorded'],
    ]);
    expect(Object.fromEntries(view.facts)).toMatchObject({'thread': 'postgres 12', 'amount': '12.0 KiB in 2 bios', 'file system': 'ext4 on 254,16', 'result': 'no error'});
    expect(view.stack).toEqual(['main', 'save', 'fsync']);
  });

  it('leaves out what is not known, and says what is missing', () => {
    const none = Object.fromEntries(Object.keys(SYNC).map((name) => [name, null]));
    const view = syncView({...none, sync_id: 1n, ts_ns: 5n, incomplete: 'end', confidence: 'unknown'}, [], [], [], [], []);
    expect(view.title).toBe('sync of a file that is not known: length not known');
    expect(view.segments).toEqual([]);
    expect(view.sliceId).toBeNull();
    const facts = Object.fromEntries(view.facts);
    expect(Object.keys(facts)).toEqual(['relations', 'not recorded']);
    // Nothing was recorded that could belong to another sync.
    expect(facts['relations']).toMatch(/^not recorded/);
    const related = (row: Row) => Object.fromEntries(syncView({...none, sync_id: 1n, ts_ns: 5n, confidence: 'unknown', ...row}, [], [], [], [], []).facts)['relations'];
    expect(related({bios: 2n})).toBe('unknown: at least one bio or wait may belong to another sync');
    expect(related({journal_ns: 0n})).toMatch(/^unknown/);
    expect(facts['not recorded']).toBe('the end of the sync');
    // An empty sync is not one of which nothing is known.
    expect(Object.fromEntries(syncView({...SYNC, bios: 0n, ret: -5n}, [], [], [], [], []).facts)).toMatchObject({amount: 'no bio: nothing was written', result: 'failed with errno 5'});
  });

  it('says which commit a sync waited for, and who else', () => {
    const wait: Row = {wait: 'commit wait', ts_ns: START, dur_ns: 72_700_000n, transaction_id: 22n, commit_id: 9n, commit_dur_ns: 35_800_000n, journal: 'jbd2/vdb-8', others: 1n};
    const views = syncView(SYNC, [], [], [wait, {...wait, wait: 'flush', transaction_id: null, commit_id: null, others: 0n}], [], []).waits;
    expect(views).toEqual([
      {what: 'commit wait', length: '72.7 ms', commit: 'transaction 22: jbd2/vdb-8 committed it in 35.8 ms', others: '1 other sync waited for it'},
      {what: 'flush', length: '72.7 ms', commit: null, others: null},
    ]);
  });

  it('finds no sync for the slice of something else', async () => {
    expect(await ofSlice(new Database(fake().engine), 5)).toBeNull();
    const {engine} = fake({'WITH RECURSIVE': [{sync_id: 7n, bio_id: null}]});
    expect(await ofSlice(new Database(engine), 5)).toEqual({syncId: 7, bioId: null});
  });
});

describe('wait of a write', () => {
  const none: Row = {wait_id: 1n, slice_id: 8n, ts_ns: START, dur_ns: 20_000_000n, comm: 'dd', tid: 5n, wait: 'page writeback', dev: null, ino: null, path: null,
    bytes: null, transaction_id: null, holder_tid: null, holder_comm: null, confidence: 'exact', journal: null, commit_dur_ns: null, commit_syncs: null};

  it('says for whose work it waits', () => {
    const view = writeView({...none, wait: 'journal handle', transaction_id: 7n, journal: 'jbd2/vdb-8', commit_dur_ns: 1000n, commit_syncs: 2n}, [
      {sync_id: 1n, slice_id: 9n, op: 'fsync', path: '/a', comm: 'db', tid: 6n, dur_ns: 50n, common_ns: 40n, others: 2n},
    ]);
    expect(view.title).toBe('Write waits: journal handle: 20.0 ms');
    expect(Object.fromEntries(view.facts)).toMatchObject({thread: 'dd 5', transaction: '7', commit: 'jbd2/vdb-8 was committing, for 1.00 µs; 2 syncs waited for it'});
    expect(view.syncs).toEqual([{sliceId: 9, what: 'fsync /a', thread: 'db 6', length: '50 ns', common: '40 ns'}]);
    expect(view.syncsInAll).toBe(2);
  });

  it('leaves out what is not known', () => {
    expect(writeView(none, []).facts.map(([name]) => name)).toEqual(['thread', 'because']);
    const facts = Object.fromEntries(writeView({...none, wait: 'throttling', ino: 4n, bytes: 0n, confidence: 'inferred', holder_tid: 9n}, []).facts);
    expect(facts).toMatchObject({'file': 'inode 4', 'made dirty since the last pause': '0 B', 'who held the lock at first': '9'});
    expect(facts['length']).toMatch(/^inferred/);
  });
});

describe('area', () => {
  const total: Row = {syncs: 3n, known: 2n, time_ns: 300n, p50_ns: 100n, p99_ns: 200n, max_ns: 200n, bytes: 4096n, sized: 2n};

  it('says what the figures cover', () => {
    const view = areaView({
      all: false,
      total,
      phases: [{phase: 'device', time_ns: 300n}],
      files: [{path: '/a', syncs: 2n, time_ns: 225n, max_ns: 200n, items: 12n}, {path: null, syncs: 1n, time_ns: null, max_ns: null, items: 12n}],
      threads: [{comm: 'wl', tid: 5n, syncs: 3n, time_ns: 300n, max_ns: 200n, items: 1n}],
      stacks: [{stack: 'a;b', syncs: 3n, time_ns: 300n, bytes: 4096n}],
      writes: [{comm: 'wl', tid: 5n, wait: 'throttling', waits: 2n, time_ns: 30n, max_ns: 20n, bytes: 4096n, all_waits: 12n, all_ns: 90n}],
    });
    const facts = Object.fromEntries(view.facts);
    expect(facts['syncs']).toBe('3 syncs; the length of 1 is not known');
    expect(facts['written back']).toBe('4.00 KiB by 2 syncs; not recorded for the others');
    expect(view.files.map(({name, share, longest}) => [name, share, longest])).toEqual([['/a', 0.75, '200 ns'], ['file not known', 0, '–']]);
    expect([view.fileCount, view.threadCount]).toEqual([12, 1]);
    expect(view.threads[0]!.name).toBe('wl 5');
    expect(view.writes).toEqual([{name: 'wl 5', wait: 'throttling', waits: 2, time: '30 ns', longest: '20 ns', amount: '4.00 KiB'}]);
    expect(view.writesInAll).toBe('12 waits, 90 ns');
  });

  it('has the syncs of the lanes and tracks that are selected', () => {
    const own = {slices: new Set([7, 8]), lanes: new Map<string, number | null>([['lane/a', 1], ['lane/b', 12], ['latency', null]])};
    const area = (...tracks: Array<{uri: string; tags?: {trackIds?: number[]}}>) => chosen(tracks, own);
    // The UI knows no track ids of a lane.
    expect(area({uri: 'lane/b'})).toEqual({tracks: [], lanes: [12], all: false});
    expect(area({uri: 'lane/a', tags: {}}, {uri: 'lane/b'}, {uri: 'counter', tags: {trackIds: [3]}})).toEqual({tracks: [], lanes: [1, 12], all: false});
    expect(area({uri: 'lane/a'}, {uri: 'thread', tags: {trackIds: [3, 8]}})).toEqual({tracks: [8], lanes: [1], all: false});
    // This one shows the syncs of all threads, and a counter those of none.
    expect(area({uri: 'lane/a'}, {uri: 'latency'}).all).toBe(true);
    expect(area({uri: 'counter', tags: {trackIds: [3]}})).toEqual({tracks: [], lanes: [], all: true});
  });

  it('finds the threads of lanes', () => {
    const sql = withParameters(OWN_TABLES['area']!, {start_ns: 0n, end_ns: 9n, tracks: [], lanes: [1, 12], all_tracks: 0});
    expect(sql).toContain('WHERE sync_id IN (1, 12)');
  });

  it('does not say 0 of what is not recorded', () => {
    const view = areaView({all: true, total: {...total, known: 3n, bytes: null, sized: 0n}, phases: [], files: [], threads: [], stacks: [], writes: []});
    expect(Object.fromEntries(view.facts)).toMatchObject({'syncs': '3 syncs', 'written back': 'not recorded'});
  });
});

describe('flame graph', () => {
  const stacks = [
    {frames: 'main;a;fsync', weights: {time: 60, syncs: 1, bytes: 0}},
    {frames: 'main;b', weights: {time: 30, syncs: 2, bytes: 8}},
    {frames: null, weights: {time: 10, syncs: 1, bytes: 0}},
  ];

  it('puts frames under the one that calls them, to scale', () => {
    const boxes = flame(stacks, 'time').map(({name, depth, left, width}) => [name, depth, +left.toFixed(9), +width.toFixed(9)]);
    expect(boxes).toEqual([
      ['main', 0, 0, 0.9], ['a', 1, 0, 0.6], ['fsync', 2, 0, 0.6], ['b', 1, 0.6, 0.3], ['no stack is recorded', 0, 0.9, 0.1],
    ]);
  });

  it('has another shape by another weight', () => {
    expect(flame(stacks, 'syncs').map(({name, value}) => [name, value])).toEqual([['main', 3], ['b', 2], ['a', 1], ['fsync', 1], ['no stack is recorded', 1]]);
    expect(flame(stacks, 'bytes').map(({name}) => name)).toEqual(['main', 'b']);
    expect(flame([], 'time')).toEqual([]);
  });
});
