// What the first view shows: who used a device, and the slowest syncs.

import {describe, expect, it} from 'vitest';
import {bioView} from '../src/logic/bio';
import {covered, devices, stacks, userName, usersAt} from '../src/logic/disk';
import {chosen, label, mostly, slowest} from '../src/logic/slowest';
import type {Row} from '../src/logic/rows';

const used = (use: string | null, process: string | null, start: number, length: number, more: Row = {}): Row => ({
  place: '8,0', use, process, cgroup: null, ts_ns: BigInt(1000 + start), dur_ns: BigInt(length), ...more,
});

describe('who used a device', () => {
  // dd has bios from 0 to 60, the journal from 60 to 80, both at once from 80 to 100; then nobody has any.
  const rows = [used('writes', 'dd', 0, 60), used('writes', 'dd', 80, 20), used('journal', null, 60, 40), used(null, null, 0, 100)];
  const scale = {from: 0, to: 200, pixels: 10};

  it('is called by what it does, process and control group', () => {
    expect([
      used('writes', 'dd', 0, 1, {cgroup: '/backup'}), used('writes', 'dd', 0, 1, {cgroup: '/'}), used('syncs', 'etcd', 0, 1), used('reads', 'cat', 0, 1),
      used('journal', null, 0, 1), used(null, null, 0, 1),
    ].map(userName)).toEqual(['dd, /backup', 'dd', 'syncs of etcd', 'reads of cat', 'journal', null]);
  });

  it('has the part of each column that is covered', () => {
    expect([...covered({starts: Float64Array.of(0, 50), ends: Float64Array.of(30, 60)}, {from: 20, to: 60, pixels: 4})]).toEqual([1, 0, 0, 1]);
    expect([...covered({starts: Float64Array.of(5), ends: Float64Array.of(25)}, {from: 0, to: 40, pixels: 4})]).toEqual([0.5, 1, 0.5, 0]);
    expect([...covered({starts: Float64Array.of(0), ends: Float64Array.of(10)}, {from: 10, to: 20, pixels: 2})]).toEqual([0, 0]);
  });

  it('fills a column as far as the device worked, and divides it between those who had bios there', () => {
    const [device] = devices(rows, 1000n);
    expect(device!.users.map(({name, time}) => [name, time])).toEqual([['dd', 80], ['journal', 40]]);
    const [dd, journal] = stacks(device!, scale);
    expect([...dd!]).toEqual([1, 1, 1, 0, 0.5, 0, 0, 0, 0, 0]);
    expect([...journal!]).toEqual([0, 0, 0, 1, 0.5, 0, 0, 0, 0, 0]);
    expect(usersAt(device!, 61, 62).map(({name}) => name)).toEqual(['journal']);
    expect(usersAt(device!, 150, 151)).toEqual([]);
  });

  it('joins those beyond the first ones, and puts the busiest device first', () => {
    const many = Array.from({length: 9}, (_, at) => used('writes', `p${at}`, at * 10, 10 - at));
    const found = devices([...many, used(null, null, 0, 90), used(null, null, 0, 500, {place: '8,16'})], 1000n);
    expect(found.map(({dev}) => dev)).toEqual(['8,16', '8,0']);
    const {users} = found[1]!;
    expect(users.map(({name}) => name)).toEqual(['p0', 'p1', 'p2', 'p3', 'p4', 'p5', '3 others']);
    expect([...users.at(-1)!.starts]).toEqual([60, 70, 80]);
    expect(users.at(-1)!.time).toBe(4 + 3 + 2);
    expect(new Set(users.slice(0, 5).map(({colour}) => colour)).size).toBe(5);
  });
});

describe('slowest syncs', () => {
  const row = (sync_id: number, dur_ns: number, path: string | null, tid: number): Row => ({
    sync_id, slice_id: sync_id + 100, ts_ns: BigInt(5000 - sync_id), dur_ns: BigInt(dur_ns), path, comm: 'wal', tid, op: 'fsync', bytes: 4096n, bios: 1n,
  });
  const all = slowest(
    [row(3, 9_000_000, '/a/wal', 7), row(1, 8_000_000, '/b/data', 8), row(2, 7_000_000, null, 7)],
    [
      {sync_id: 3, phase: 'queue', ts_ns: 4997n, dur_ns: 6_000_000n}, {sync_id: 3, phase: 'residue', ts_ns: null, dur_ns: 3_000_000n},
      {sync_id: 1, phase: 'device', ts_ns: 4999n, dur_ns: 7_990_000n}, {sync_id: 1, phase: 'flush', ts_ns: 5999n, dur_ns: 10_000n},
    ],
  );

  it('says what most of the time went to', () => {
    expect(all.map(label)).toEqual(['9.00 ms wal', '8.00 ms data', '7.00 ms file not known']);
    expect(all.map((sync) => mostly(sync))).toEqual(['67 % queue, 33 % not explained', '100 % device', 'phases are not recorded']);
    expect(all[0]!.phases.map(({ts}) => ts)).toEqual([4997n, null]);
  });

  it('filters by file and thread, and sorts', () => {
    const ids = (filter: string, order: Parameters<typeof chosen>[2]) => chosen(all, filter, order).map(({syncId}) => syncId);
    expect(ids('', 'length')).toEqual([3, 1, 2]);
    expect(ids('', 'begin')).toEqual([3, 2, 1]);
    expect(ids('', 'file')).toEqual([3, 1, 2]);
    expect(ids('WAL 7', 'thread')).toEqual([3, 2]);
    expect(ids('/b/', 'length')).toEqual([1]);
    expect(ids('other', 'length')).toEqual([]);
  });
});

describe('a bio of no known sync', () => {
  it('says whose it is, and which syncs were in flight meanwhile', () => {
    const row: Row = {
      bio_id: 5n, ts_ns: 10n, dur_ns: 24_000_000n, queue_ns: null, device_ns: 20_000_000n, bytes: 65536n, direction: 'write', dev: '8,0', sector: 16n, error: -5n,
      comm: 'kworker/0', tid: 9, process: 'kworker', cgroup: '/', writers: 'dd', writers_cgroup: '/backup', path: null,
    };
    const view = bioView(row, [{sync_id: 1, op: 'fsync', path: '/a', comm: 'w', tid: 7, dur_ns: 30_000_000n, common_ns: 2_000_000n, slice_id: 4, others: 6n}]);
    expect(view.title).toBe('64.0 KiB write of dd: 24.0 ms');
    expect(view.facts).toEqual([
      ['control group', '/backup'], ['submitted by', 'kworker/0 9'], ['at the device', '20.0 ms'], ['place', '8,0 sector 16'], ['result', 'failed with errno 5'],
    ]);
    expect([view.syncsInAll, view.syncs[0]!.what, view.syncs[0]!.common]).toEqual([6, 'fsync /a', '2.00 ms']);
  });
});
