// The inside of a sync, and the slowest bios of a recording without syncs: rows in, what is drawn out.

import {describe, expect, it} from 'vitest';
import {inside, QUEUED, SERVED} from '../src/logic/inside';
import {phaseColour} from '../src/logic/phases';
import {slowestBios} from '../src/logic/slowest_bios';

const ORIGIN = 1000n;
const NOTHING = {queue_ns: null, bytes: null, rwbs: null, slice_id: null, cpu_comm: null, cpu_tid: null};
const bio = (lane: string, ts: bigint, dur: number, queue: number | null, slice: number) => ({...NOTHING, lane, name: '/f', ts_ns: ts, dur_ns: dur, queue_ns: queue, bytes: 4096, rwbs: 'WS', slice_id: slice});

describe('inside a sync', () => {
  it('divides a bio into queue and device, and stacks those in flight at once', () => {
    const lanes = inside([bio('bio', 1010n, 100, 60, 1), bio('bio', 1020n, 50, null, 2), bio('bio', 1110n, 10, 10, 3)], ORIGIN);
    expect(lanes.map(({name}) => name)).toEqual(['its bios', null]);
    const parts = lanes[0]!.items.map(({start, length, colour, sliceId}) => [start, length, colour, sliceId]);
    // The third one begins when the first one ends, and was never at the device.
    expect(parts).toEqual([[10, 60, QUEUED, 1], [70, 40, SERVED, 1], [110, 10, QUEUED, 3]]);
    expect(lanes[1]!.items).toMatchObject([{start: 20, length: 50, colour: SERVED, hint: 'from submit to completion: its issue is not recorded'}]);
  });

  it('shows the commit with its steps, its bios, and who had the CPU', () => {
    const rows = [
      {...NOTHING, lane: 'commit', name: 'commit (sync)', ts_ns: 1000n, dur_ns: 90, slice_id: 7},
      {...NOTHING, lane: 'step', name: 'logging', ts_ns: 1030n, dur_ns: 60, slice_id: 8},
      {...NOTHING, lane: 'phase', name: 'cpu wait', ts_ns: 1040n, dur_ns: 5, cpu_comm: 'dd', cpu_tid: 270},
      {...NOTHING, lane: 'phase', name: 'commit logging', ts_ns: 1045n, dur_ns: 40, cpu_tid: 0},
      bio('commit bio', 1050n, 20, 5, 9),
    ];
    const lanes = inside(rows, ORIGIN);
    expect(lanes.map(({name}) => name)).toEqual(['phases', 'commit', 'bios of the commit', 'CPU had']);
    expect(lanes[1]!.items).toMatchObject([{label: 'commit (sync)', isWhole: true}, {label: 'logging', colour: phaseColour('commit logging')}]);
    expect(lanes[3]!.items.map(({label}) => label)).toEqual(['dd 270', 'idle']);
  });

  it('has no lane for what is not recorded', () => {
    expect(inside([], ORIGIN)).toEqual([]);
  });
});

describe('slowest bios', () => {
  it('says what is not recorded, and names the disk', () => {
    const row = {bio_id: 4, ts_ns: 5n, dur_ns: 2_000_000, queue_ns: null, device_ns: null, bytes: 4096, rwbs: 'W', dev: '8,0', path: null, comm: 'dd', tid: 3, slice_id: 11};
    expect(slowestBios([row], new Map([['8,0', 'sda']]))).toEqual([{sliceId: 11, ts: 5n, ns: 2_000_000, cells: ['2.00 ms', '–', '–', '4.00 KiB', 'W', 'sda', 'dd 3', '–']}]);
  });
});
