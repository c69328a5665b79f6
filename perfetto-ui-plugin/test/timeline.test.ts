// What the tracks, the keys and the page of reports show.

import {describe, expect, it} from 'vitest';
import {heat, range, rowOf} from '../src/logic/heat';
import {boxes, fitting, itemAt, type Item, latencyColour} from '../src/logic/lanes';
import {cell, heading, parse, reports, sorted} from '../src/logic/reports';
import {next} from '../src/logic/slow';

const item = (start: number, length: number, label = ''): Item => ({start, length, label, colour: `#${label}`, sliceId: start});

describe('lanes', () => {
  it('draws what is in view, cut at its edges', () => {
    const items = [item(0, 10), item(50, 100), item(190, 50), item(300, 5)];
    const found = boxes(items, {from: 100, to: 200, pixels: 1000});
    expect(found.map(({left, width, item}) => [left, width, item.start])).toEqual([[0, 500, 50], [900, 100, 190]]);
  });

  it('draws what most of the time of a pixel went to, shaded by how busy it was', () => {
    // A pixel is 10 long. A sync of 9 has a phase a of 3, twice b of 2.5, and 1 that nothing explains; then nothing is in flight.
    const whole = {...item(0, 9, 'sync'), isWhole: true};
    const [box, ...rest] = boxes([whole, item(0, 2.5, 'b'), item(2.5, 3, 'a'), item(5.5, 2.5, 'b')], {from: 0, to: 100, pixels: 10});
    expect([box!.item.label, box!.busy, rest]).toEqual(['b', 0.9, []]);
    const [plain] = boxes([whole, item(0, 2, 'a')], {from: 0, to: 100, pixels: 10});
    expect(plain!.item.label).toBe('sync');
  });

  it('cuts a text that does not fit, and writes nothing if that would say nothing', () => {
    const measure = (text: string) => text.length * 5;
    expect(fitting('commit locking', 70, measure)).toBe('commit locking');
    expect(fitting('commit locking', 69, measure)).toBe('commit locki…');
    expect(fitting('commit locking', 40, measure)).toBe('commit…');
    expect(fitting('commit locking', 20, measure)).toBe('');
  });

  it('draws the longest of those that share a pixel, and never loses the only one', () => {
    const items = [item(0, 1, 'a'), item(2, 3, 'b'), item(6, 2, 'c'), item(95, 1, 'd')];
    const found = boxes(items, {from: 0, to: 100, pixels: 10});
    expect(found.map(({left, width, item}) => [left, width, item.label])).toEqual([[0, 1, 'b'], [9, 1, 'd']]);
  });

  it('draws as many boxes as there are pixels, however many items', () => {
    const items = Array.from({length: 50_000}, (_, at) => item(at * 10, 5));
    const found = boxes(items, {from: 0, to: 500_000, pixels: 800});
    expect(found).toHaveLength(800);
    expect(found.every(({left}, at) => left === at)).toBe(true);
  });

  it('finds what is under the pointer: a phase in its sync, or what is near', () => {
    const items = [item(0, 100, 'sync'), item(20, 30, 'phase'), item(200, 1, 'short')];
    expect(itemAt(items, 10, 0)?.label).toBe('sync');
    expect(itemAt(items, 30, 0)?.label).toBe('phase');
    expect(itemAt(items, 150, 0)).toBeNull();
    expect(itemAt(items, 198, 3)?.label).toBe('short');
  });

  it('colours latencies from green to red', () => {
    expect(latencyColour(1e3, 1e3, 1e9)).toBe('hsl(140, 70%, 62%)');
    expect(latencyColour(1e6, 1e3, 1e9)).toBe('hsl(70, 70%, 51%)');
    expect(latencyColour(1e9, 1e3, 1e9)).toBe('hsl(0, 70%, 40%)');
    expect(latencyColour(0, 0, 0)).toMatch(/^hsl\(0,/);
  });
});

describe('heat map', () => {
  const syncs = [{start: 0, length: 10}, {start: 1, length: 10}, {start: 60, length: 1000}, {start: 99, length: 100}, {start: 100, length: 5}];

  it('counts the syncs that begin in view, by time and latency', () => {
    const found = heat(syncs, {from: 0, to: 100}, {low: 10, high: 1000}, 10, 2);
    expect(found.most).toBe(2);
    expect([...found.cells].sort((a, b) => a.column - b.column)).toEqual([
      {column: 0, row: 0, count: 2}, {column: 6, row: 1, count: 1}, {column: 9, row: 1, count: 1},
    ]);
    expect(found.cells.reduce((sum, {count}) => sum + count, 0)).toBe(4);
  });

  it('has rows on a logarithmic scale', () => {
    const latency = {low: 1, high: 10_000};
    expect([1, 9, 11, 101, 1001, 10_000].map((length) => rowOf(length, latency, 4))).toEqual([0, 0, 1, 2, 3, 3]);
    expect(rowOf(5, {low: 5, high: 5}, 4)).toBe(0);
    expect(range(syncs)).toEqual({low: 5, high: 1000});
    expect(range([{length: 0}])).toEqual({low: 1, high: 1});
    expect(range([])).toBeNull();
  });
});

describe('keys', () => {
  const slow = [{ts: 10n, ns: 5, sliceId: 1}, {ts: 20n, ns: 5, sliceId: 2}, {ts: 20n, ns: 5, sliceId: 3}, {ts: 90n, ns: 5, sliceId: 4}];
  const go = (selected: {sliceId: number; ts: bigint} | null, step: 1 | -1) => next(slow, selected, step)?.sliceId;

  it('goes through all of them, and around', () => {
    expect(slow.map((one) => go(one, 1))).toEqual([2, 3, 4, 1]);
    expect(slow.map((one) => go(one, -1))).toEqual([4, 1, 2, 3]);
  });

  it('starts from another slice, or from none', () => {
    expect([go({sliceId: 9, ts: 15n}, 1), go({sliceId: 9, ts: 15n}, -1)]).toEqual([2, 1]);
    expect([go({sliceId: 9, ts: 95n}, 1), go({sliceId: 9, ts: 5n}, -1)]).toEqual([1, 4]);
    expect([go(null, 1), go(null, -1)]).toEqual([1, 4]);
    expect(next([], null, 1)).toBeNull();
  });
});

describe('reports', () => {
  it('reads the title and the columns of each', () => {
    const all = reports();
    expect(all.map(({name}) => name)).toEqual(expect.arrayContaining(['summary', 'phases', 'bystanders', 'files', 'losses']));
    for (const report of all) {
      expect(report.title).toMatch(/^[A-Z].*\.$/);
      expect(report.columns.length, report.name).toBeGreaterThan(0);
      expect(report.columns.every(({unit, text}) => /^\w+$/.test(unit) && text.length > 3)).toBe(true);
    }
  });

  it('has columns that people read, and sorts by one', () => {
    expect(['time_ns', 'written_bytes', 'sync_id', 'max_ns', 'ns'].map(heading)).toEqual(['time', 'written', 'sync id', 'max', 'ns']);
    const rows = [{n: 2n, t: 'b'}, {n: null, t: 'a'}, {n: 30n, t: null}];
    expect(sorted(rows, 'n').map(({n}) => n)).toEqual([30n, 2n, null]);
    expect(sorted(rows, 't').map(({t}) => t)).toEqual(['a', 'b', null]);
    expect(sorted(rows, null)).toBe(rows);
  });

  it('shows cells by their unit', () => {
    const report = parse('x', '-- X: an example.\n--\n-- Text: none.\n--\n-- Columns:\n--   path    text   A path.\n--   time_ns  ns   A time,\n--                 continued.\n--   size  bytes  A size.\n--   part  share  A part.\n--   n  count  A number.\n--   value  unit  Any.\n--   frame  tree  A frame.\nSELECT 1');
    expect(report.title).toBe('An example.');
    expect(report.columns.map(({name, text}) => [name, text])[1]).toEqual(['time_ns', 'A time, continued.']);
    const row = {path: '/a', time_ns: 1_500_000n, size: 4096n, part: 0.25, n: 1540n, value: 2_000n, unit: 'ns', frame: 'main', depth: 2n, other: null};
    expect(Object.keys(row).map((name) => cell(report, row, name))).toEqual(['/a', '1.50 ms', '4.00 KiB', '25 %', '1,540', '2.00 µs', 'ns', '\u00a0\u00a0\u00a0\u00a0main', '2', '–']);
  });
});
