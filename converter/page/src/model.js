// The data of one run, and the figures of a selection.
//
// A side holds all requests (`rows`), or counts and sums by time bin, file and thread (`cubes`). Both have the same interface.
// A value that cubes do not determine is null, or has bounds (`from`, `to`), or is named in `inexact`.
//
// A filter has a file, a thread, a range of time, `waited` (a range of a latency: {kind, from, to}) and `wrote` (a range of the amount:
// {from, to}); each may be null. `to` is excluded. A cube has only one latency or the amount, so with cubes only one of `waited` and
// `wrote` is set.

import {AMOUNT, LATENCY} from './buckets.js';
import {count} from './format.js';

// Key of the entry that combines the files, or threads, that the page does not list.
export const OTHERS = '\u0000others';
export const NO_STACK = '[no stack]';
export const OTHER_STACKS = '[other stacks]';
// By kind of sum: the field with the number of requests whose value is known.
const KNOWN = {syscall: 'syscalls', writeback: 'writebacks', journal: 'journals', flush: 'flushes', bytes: 'amounts'};
// Waits that only some recorders record, for some file systems. The page shows them only if a request has one.
export const WAITS = ['journal', 'flush'];

class Sums {
  syncs = 0;
  // Requests that are recorded from start to end.
  whole = 0;
  empty = 0;
  incomplete = 0;
  attributed = 0;
  exact = 0;
  amounts = 0;
  bytes = 0;
  syscalls = 0;
  syscall_ns = 0;
  syscall_max_ns = null;
  writebacks = 0;
  writeback_ns = 0;
  writeback_max_ns = null;
  journals = 0;
  journal_ns = 0;
  journal_max_ns = null;
  // Duration of the requests whose journal wait is known.
  journal_dur_ns = 0;
  flushes = 0;
  flush_ns = 0;
  timed = 0;
  dur_ns = 0;
  // Syscall latencies: the number in each bucket (cubes), or every value (rows).
  buckets = null;
  values = null;
  // Threads of a file, files of a thread.
  partners = new Set();

  // Number of requests for which the value is known. The number of requests itself is always known.
  known(kind) {
    return this[KNOWN[kind] ?? 'syncs'];
  }

  average(kind) {
    return this.known(kind) ? this[`${kind}_ns`] / this.known(kind) : null;
  }

  // Sums of a selection of buckets. Cubes do not have the other figures by bucket.
  static ofBuckets() {
    const sums = new Sums();
    for (const name of Object.keys(sums)) if (typeof sums[name] === 'number') sums[name] = null;
    return Object.assign(sums, {syncs: 0, bytes: 0, amounts: 0, dur_ns: 0, timed: 0});
  }

  // A sum is null, not 0, where no value is known.
  sum(name, known) {
    return this.syncs && !this[known] ? null : this[name];
  }
}

export class Side {
  constructor(raw, index, byName) {
    this.raw = raw;
    this.index = index;
    this.name = raw.name;
    this.counted = raw.mode === 'bins';
    this.step = this.counted ? raw.limits.step : 1;
    this.width = (raw.width_ns ?? 1) * this.step;
    this.length = raw.end_ns ?? 0;
    this.files = raw.files_table.path.map((path, number) => ({key: path, label: path, number}));
    this.threads = this.#threads(raw.threads_table, byName);
    this.otherFiles = (raw.files ?? 0) - this.files.length;
    this.otherThreads = (raw.threads ?? 0) - this.threads.length;
    if (this.otherFiles) this.files.push({key: OTHERS, label: `${count(this.otherFiles)} other files`, number: this.files.length});
    if (this.otherThreads) this.threads.push({key: OTHERS, label: `${count(this.otherThreads)} other threads`, number: this.threads.length});
    this.recorded = Object.fromEntries(WAITS.map((wait) => [wait, (raw[KNOWN[wait]] ?? 0) > 0]));
    // Empty for an input that holds no phases.
    this.phaseNames = raw.phase_names ?? [];
    this.numbers = {file: byKey(this.files), thread: byKey(this.threads)};
    this.binAs(this.width);
  }

  // Both sides are drawn with the same bin width. With rows it can be any, with cubes a multiple of their own width.
  binAs(width) {
    this.cache = new Map();
    this.width = width;
    this.bins = Math.ceil(((this.raw.bins ?? 0) * (this.raw.width_ns ?? 1)) / width);
  }

  #threads(table, byName) {
    const seen = new Map();
    return table.tid.map((tid, number) => {
      const comm = table.comm[number] ?? '[no name]';
      const run = table.run[number] ? ` (${table.run[number]})` : '';
      const id = tid ?? (table.pid[number] == null ? '' : `pid ${table.pid[number]}`);
      let label = `${comm} ${id}${run}`.trim();
      const before = seen.get(label) ?? 0;
      seen.set(label, before + 1);
      if (before) label += ` #${before + 1}`;
      return {key: byName ? comm : label, label, number, run: table.run[number], comm};
    });
  }

  metric(metric, scope = 'all') {
    const {summary} = this.raw;
    const at = summary.metric.findIndex((name, row) => name === metric && summary.scope[row] === scope);
    return at < 0 ? null : {value: summary.value[at], unit: summary.unit[at], known: summary.known[at], syncs: summary.syncs[at]};
  }

  // Whether a kind of figure is known for at least one request: `syscall` or `writeback` latency, or the `amount`.
  knows(kind) {
    return (this.metric(kind === 'amount' ? 'writeback_amount_sum' : `${kind}_latency_sum`)?.known ?? 0) > 0;
  }

  // Sum of a wait. It is null, even for an empty selection, if no request of the side recorded the wait.
  waited(sums, wait) {
    return this.recorded[wait] ? sums.sum(`${wait}_ns`, KNOWN[wait]) : null;
  }

  // Results are cached: several views ask for the same selection.
  select(filter) {
    const key = JSON.stringify([filter.file, filter.thread, filter.time, filter.waited, filter.wrote]);
    if (!this.cache.has(key)) {
      if (this.cache.size > 20) this.cache.clear();
      this.cache.set(key, this.counted ? this.#selectCells(filter) : this.#selectRows(filter));
    }
    return this.cache.get(key);
  }

  #test(filter) {
    const {waited, wrote} = filter;
    const files = filter.file == null ? null : (this.numbers.file.get(filter.file) ?? new Set());
    const threads = filter.thread == null ? null : (this.numbers.thread.get(filter.thread) ?? new Set());
    const [from, to] = filter.time ?? [-Infinity, Infinity];
    return {
      file: (number) => files === null || files.has(number),
      thread: (number) => threads === null || threads.has(number),
      time: (since) => since >= from && since < to,
      // Whether a row is in the ranges of latency and amount.
      waited: (rows, row) => waited == null || inside(waited, rows[`${waited.kind}_ns`][row]),
      wrote: (rows, row) => wrote == null || inside(wrote, amountOf(rows, row)),
      // The selected item is only listed on the other side; here it is part of `others`, or absent.
      unknown: (files?.size === 0 && this.otherFiles > 0) || (threads?.size === 0 && this.otherThreads > 0),
    };
  }

  #empty(filter) {
    const test = this.#test(filter);
    const found = {
      filter, test, total: new Sums(), files: new Map(), threads: new Map(), time: Array.from({length: this.bins}, () => new Sums()),
      buckets: {syscall: [], writeback: [], journal: [], amount: []},
      // As `buckets` and `values`, but without the range of the same kind, so that a histogram shows what is not selected too.
      spread: {syscall: [], writeback: [], journal: [], amount: []}, spreadValues: null,
      stacks: new Map(), inexact: new Set(), points: [], pointsOf: 0, longest: 0,
      values: null, wall: null,
      // Whether a range of latencies or amounts is selected, but the page holds only counts by bucket.
      byBucket: this.counted && (filter.waited != null || filter.wrote != null),
    };
    if (test.unknown) found.inexact.add('others');
    return found;
  }

  #selectRows(filter) {
    const found = this.#empty(filter);
    const {test, total} = found;
    const {rows} = this.raw;
    const values = {syscall: [], writeback: [], journal: [], amount: []};
    const spread = {syscall: [], writeback: [], journal: [], amount: []};
    const spans = [];
    for (let row = 0; row < rows.since_ns.length; row++) {
      const file = rows.file[row];
      const thread = rows.thread[row];
      const inFile = test.file(file);
      const inThread = test.thread(thread);
      const inTime = test.time(rows.since_ns[row]);
      const waited = test.waited(rows, row);
      const wrote = test.wrote(rows, row);
      const inRanges = waited && wrote;
      if (inRanges) {
        if (inThread && inTime) addRow(at(found.files, file), rows, row, thread);
        if (inFile && inTime) addRow(at(found.threads, thread), rows, row, file);
        if (inFile && inThread) addRow(found.time[Math.floor(rows.since_ns[row] / this.width)], rows, row);
      }
      if (!inFile || !inThread || !inTime) continue;
      found.points.push(row);
      for (const [name, value, of, isShown] of [['syscall', rows.syscall_ns[row], LATENCY.of, wrote], ['writeback', rows.writeback_ns[row], LATENCY.of, wrote], ['journal', rows.journal_ns?.[row], LATENCY.of, inRanges], ['amount', amountOf(rows, row), AMOUNT.of, waited]]) {
        if (value == null || !isShown) continue;
        spread[name].push(value);
        bump(found.spread[name], of(value));
        if (!inRanges) continue;
        values[name].push(value);
        bump(found.buckets[name], of(value));
      }
      if (!inRanges) continue;
      addRow(total, rows, row);
      addStack(found.stacks, this.stackName(rows.stack[row]), 1, rows, row);
      if (rows.dur_ns[row] != null) spans.push([this.threads[thread].run, rows.since_ns[row], rows.since_ns[row] + rows.dur_ns[row]]);
    }
    for (const list of [...Object.values(values), ...Object.values(spread)]) list.sort((a, b) => a - b);
    found.values = values;
    found.spreadValues = spread;
    found.pointsOf = total.syncs;
    found.wall = union(spans);
    return found;
  }

  #selectCells(filter) {
    const found = this.#empty(filter);
    const {test, total} = found;
    const {slot, code, ...others} = this.raw.cubes;
    const begin = (bin) => bin * this.raw.width_ns;
    const ranged = filter.wrote ? 'amount' : filter.waited?.kind;
    if (ranged) this.#selectBuckets(found, filter, ranged);
    for (let cell = 0; !ranged && cell < slot.bin.length; cell++) {
      const inFile = test.file(slot.file[cell]);
      const inThread = test.thread(slot.thread[cell]);
      const inTime = test.time(begin(slot.bin[cell]));
      if (inThread && inTime) addSlot(at(found.files, slot.file[cell]), slot, cell, slot.thread[cell]);
      if (inFile && inTime) addSlot(at(found.threads, slot.thread[cell]), slot, cell, slot.file[cell]);
      if (inFile && inThread) addSlot(found.time[Math.floor(begin(slot.bin[cell]) / this.width)], slot, cell);
      if (inFile && inThread && inTime) addSlot(total, slot, cell);
    }
    for (const kind of ['syscall', 'writeback', 'journal', 'amount']) {
      const cube = others[kind];
      // The counts of another kind are not known by bucket of the selected one.
      if (!cube || (ranged && ranged !== kind)) continue;
      const isIn = ranged ? bucketTest(filter) : () => true;
      for (let cell = 0; cell < cube.bin.length; cell++) {
        const inFile = test.file(cube.file[cell]);
        const inThread = test.thread(cube.thread[cell]);
        if (!test.time(begin(cube.bin[cell]))) continue;
        if (inFile && inThread) bump(found.spread[kind], cube.bucket[cell], cube.syncs[cell]);
        if (!isIn(cube.bucket[cell])) continue;
        if (inFile && inThread) bump(found.buckets[kind], cube.bucket[cell], cube.syncs[cell]);
        if (kind !== 'syscall') continue;
        if (inThread) bump((at(found.files, cube.file[cell]).buckets ??= []), cube.bucket[cell], cube.syncs[cell]);
        if (inFile) bump((at(found.threads, cube.thread[cell]).buckets ??= []), cube.bucket[cell], cube.syncs[cell]);
      }
    }
    this.#selectCode(found, filter);
    const {points} = this.raw;
    for (let row = 0; row < points.since_ns.length; row++) {
      if (test.file(points.file[row]) && test.thread(points.thread[row]) && test.time(points.since_ns[row])) {
        found.points.push(row);
        if (!points.sampled[row]) found.longest++;
      }
    }
    found.pointsOf = found.total.syncs;
    return found;
  }

  // Counts and sums of the syncs whose latency, or amount, is in the selected buckets.
  #selectBuckets(found, filter, ranged) {
    const {test} = found;
    const cube = this.raw.cubes[ranged];
    const isIn = bucketTest(filter);
    for (let bin = 0; bin < found.time.length; bin++) found.time[bin] = Sums.ofBuckets();
    found.total = Sums.ofBuckets();
    for (let cell = 0; cell < (cube?.bin.length ?? 0); cell++) {
      if (!isIn(cube.bucket[cell])) continue;
      const begin = cube.bin[cell] * this.raw.width_ns;
      const [file, thread] = [cube.file[cell], cube.thread[cell]];
      const [inFile, inThread, inTime] = [test.file(file), test.thread(thread), test.time(begin)];
      if (inThread && inTime) addBucket(at(found.files, file, Sums.ofBuckets), cube, cell, thread);
      if (inFile && inTime) addBucket(at(found.threads, thread, Sums.ofBuckets), cube, cell, file);
      if (inFile && inThread) addBucket(found.time[Math.floor(begin / this.width)], cube, cell);
      if (inFile && inThread && inTime) addBucket(found.total, cube, cell);
    }
  }

  // There is one cube for all three filters if it is small enough, else one for each filter.
  #selectCode(found, filter) {
    if (found.byBucket) return;
    const {code} = this.raw.cubes;
    const set = ['time', 'file', 'thread'].filter((name) => filter[name] != null);
    const cube = code.all ?? code[set[0] ?? 'file'];
    if (!code.all && set.length > 1) found.inexact.add('stacks');
    found.stacksBy = code.all ? null : (set[0] ?? null);
    const {test} = found;
    const uses = (name) => code.all || set[0] === name;
    for (let cell = 0; cell < cube.bin.length; cell++) {
      if (uses('file') && !test.file(cube.file[cell])) continue;
      if (uses('thread') && !test.thread(cube.thread[cell])) continue;
      if (uses('time') && !test.time(cube.bin[cell] * this.raw.width_ns)) continue;
      addStack(found.stacks, this.stackName(cube.stack[cell]), cube.syncs[cell], cube, cell);
    }
  }

  stackName(number) {
    if (number == null || number < 0) return NO_STACK;
    return this.raw.stack_names[number] ?? OTHER_STACKS;
  }

  // Returns the values of one row that the views draw as a point or describe in a tooltip.
  point(row) {
    const table = this.counted ? this.raw.points : this.raw.rows;
    const run = this.threads[table.thread[row]]?.run ?? '';
    const name = this.counted ? this.#nameOf(run, table.sync_id[row]) : {};
    return {
      id: table.sync_id[row], run,
      since: table.since_ns[row], length: table.dur_ns[row], file: this.files[table.file[row]], thread: this.threads[table.thread[row]],
      ...name,
      op: this.raw.operations[table.op[row]], syscall: table.syscall_ns[row], writeback: table.writeback_ns[row], bytes: table.bytes[row],
      ranges: table.ranges[row], bios: table.bios?.[row], whole: table.incomplete[row] === 0,
      isEmpty: table.bios ? table.bios[row] === 0 && !table.failed[row] : false,
    };
  }

  // The file and the thread of one of the longest syncs, if the page does not list them.
  #nameOf(run, id) {
    if (!this.longNames) {
      this.longNames = new Map();
      const {names} = this.raw;
      for (let row = 0; row < names.sync_id.length; row++) {
        const found = {};
        if (names.path[row] != null) found.file = {key: OTHERS, label: names.path[row]};
        if (names.comm[row] != null || names.tid[row] != null) {
          found.thread = {key: OTHERS, label: `${names.comm[row] ?? '[no name]'} ${names.tid[row] ?? ''}`.trim()};
          found.run = names.run[row];
        }
        this.longNames.set(`${names.run[row]} ${names.sync_id[row]}`, found);
      }
    }
    return this.longNames.get(`${run} ${id}`) ?? {};
  }

  // Whether a row, which a selection has as a point, is in the ranges of latency and amount.
  inRanges(filter, row) {
    const test = this.#test(filter);
    const table = this.counted ? this.raw.points : this.raw.rows;
    return test.waited(table, row) && test.wrote(table, row);
  }

  // Returns a time in the clock of the log. Times on the page count from the first request of each run. A combined thread has no run.
  moment({run, since}) {
    const {run: runs, first_ns} = this.raw.begun;
    const place = runs.length === 1 ? 0 : runs.indexOf(run);
    return place < 0 ? null : BigInt(first_ns[place]) + BigInt(since);
  }

  // Returns the rows of the selected syncs with the greatest length, at most `count`, the longest first, and whether these are certainly
  // the slowest. A page of cubes holds only the longest of the whole run.
  slowest(filter, count) {
    const table = this.counted ? this.raw.points : this.raw.rows;
    const found = this.select(filter);
    const test = found.test;
    const rows = found.points.filter((row) => table.dur_ns[row] != null && (!this.counted || table.is_long[row]) && test.waited(table, row) && test.wrote(table, row));
    rows.sort((a, b) => table.dur_ns[b] - table.dur_ns[a] || a - b);
    return {rows: rows.slice(0, count), isCertain: !this.counted || rows.length >= Math.min(count, found.total.syncs)};
  }

  // Returns the phases of one row as a map, empty if none is recorded.
  phasesOf(row) {
    if (!this.byRow) {
      this.byRow = new Map();
      const key = this.counted ? ({run, sync_id}, cell) => `${run[cell]} ${sync_id[cell]}` : ({row: numbers}, cell) => numbers[cell];
      const {phases} = this.raw;
      for (let cell = 0; cell < (phases?.phase.length ?? 0); cell++) at(this.byRow, key(phases, cell), () => new Map()).set(this.phaseNames[phases.phase[cell]], phases.dur_ns[cell]);
    }
    const point = this.counted ? this.point(row) : null;
    return this.byRow.get(this.counted ? `${point.run} ${point.id}` : row) ?? new Map();
  }

  // Returns latencies over time for a map: {time, value} of each sync (rows), or counts by bin and bucket (cubes). The ranges of time and
  // latency do not apply, so that a map shows what is not selected too. Null: the page does not hold the counts.
  latencies(filter, kind) {
    const test = this.#test({...filter, time: null, waited: null});
    if (!this.counted) {
      const {rows} = this.raw;
      const points = [];
      for (let row = 0; row < rows.since_ns.length; row++) {
        const value = rows[`${kind}_ns`][row];
        if (value != null && test.file(rows.file[row]) && test.thread(rows.thread[row]) && test.wrote(rows, row)) points.push({row, time: rows.since_ns[row], value});
      }
      return {points};
    }
    if (filter.wrote) return null;
    const cube = this.raw.cubes[kind];
    const counts = new Map();
    for (let cell = 0; cell < cube.bin.length; cell++) {
      if (!test.file(cube.file[cell]) || !test.thread(cube.thread[cell])) continue;
      const key = `${Math.floor((cube.bin[cell] * this.raw.width_ns) / this.width)} ${cube.bucket[cell]}`;
      counts.set(key, (counts.get(key) ?? 0) + cube.syncs[cell]);
    }
    return {cells: [...counts].map(([key, syncs]) => ({bin: Number(key.split(' ')[0]), bucket: Number(key.split(' ')[1]), syncs}))};
  }

  // Returns the time of the selected syncs in each phase: of all together (`total`), and by file, thread or bin of time (`groups`, the
  // largest first; bins in the order of time).
  phases(filter, by) {
    const test = this.#test(filter);
    const [total, groups] = [new Map(), new Map()];
    const add = (file, thread, bin, phase, ns) => {
      total.set(phase, (total.get(phase) ?? 0) + ns);
      const group = at(groups, {file, thread, time: bin}[by], () => new Map());
      group.set(phase, (group.get(phase) ?? 0) + ns);
    };
    if (this.counted) {
      if (filter.waited == null && filter.wrote == null) this.#phaseCells(filter, test, by, add);
    } else {
      const {rows} = this.raw;
      const {row: numbers, phase, dur_ns: lengths} = this.raw.phases ?? {row: []};
      for (let cell = 0; cell < numbers.length; cell++) {
        const row = numbers[cell];
        const [file, thread, since] = [rows.file[row], rows.thread[row], rows.since_ns[row]];
        if (!test.file(file) || !test.thread(thread) || !test.time(since) || !test.waited(rows, row) || !test.wrote(rows, row)) continue;
        add(file, thread, Math.floor(since / this.width), this.phaseNames[phase[cell]], lengths[cell]);
      }
    }
    const sum = (phases) => [...phases.values()].reduce((sum, ns) => sum + ns, 0);
    const list = [...groups].map(([key, phases]) => ({key, phases, sum: sum(phases)}));
    return {total, sum: sum(total), groups: list.sort((a, b) => (by === 'time' ? a.key - b.key : b.sum - a.sum))};
  }

  // There is one cube for all three filters if it is small enough, else one for each filter.
  #phaseCells(filter, test, by, add) {
    const {phase: cubes} = this.raw.cubes;
    if (!cubes) return;
    const set = ['time', 'file', 'thread'].find((name) => filter[name] != null);
    const name = cubes.all ? 'all' : (set ?? by);
    const cube = cubes[name];
    const uses = (field) => name === 'all' || name === field;
    for (let cell = 0; cell < cube.bin.length; cell++) {
      const begin = cube.bin[cell] * this.raw.width_ns;
      if (uses('file') && !test.file(cube.file[cell])) continue;
      if (uses('thread') && !test.thread(cube.thread[cell])) continue;
      if (uses('time') && !test.time(begin)) continue;
      add(cube.file[cell], cube.thread[cell], Math.floor(begin / this.width), this.phaseNames[cube.phase[cell]], cube.dur_ns[cell]);
    }
  }

  // Returns the time in flight by thread and bin, for the selected files.
  busy(filter) {
    const test = this.#test(filter);
    const {busy} = this.raw.cubes;
    const threads = new Map();
    for (let cell = 0; cell < busy.bin.length; cell++) {
      if (!test.file(busy.file[cell])) continue;
      const bins = at(threads, busy.thread[cell], () => new Map());
      const bin = Math.floor((busy.bin[cell] * this.raw.width_ns) / this.width);
      bins.set(bin, (bins.get(bin) ?? 0) + busy.busy_ns[cell]);
    }
    return threads;
  }
}

// Returns the options, as [key, ...], for which at least one side has data.
export const availableOptions = (sides, entries) => entries.filter(([key]) => !WAITS.includes(key) || sides.some(({recorded}) => recorded[key]));

const FILTERS = ['file', 'thread', 'time', 'waited', 'wrote'];
export const NOTHING_SELECTED = Object.fromEntries(FILTERS.map((name) => [name, null]));
export const filtered = (filter) => FILTERS.some((name) => filter[name] != null);

const inside = ({from, to}, value) => value != null && value >= from && value < to;

// The amount of a sync that lacks its start or end is not known.
const amountOf = (rows, row) => (rows.incomplete[row] === 1 || rows.incomplete[row] === 2 ? null : rows.bytes[row]);

// Returns whether a bucket is in the selected range. A selection of a page of cubes ends at bounds of buckets.
function bucketTest({waited, wrote}) {
  const [{from, to}, buckets] = wrote ? [wrote, AMOUNT] : [waited, LATENCY];
  return (bucket) => buckets.lower(bucket) >= from && buckets.upper(bucket) <= to;
}

// Returns the smallest bin width that all sides can use.
export function commonWidth(sides) {
  const widths = sides.filter(({counted}) => counted).map(({width}) => width);
  const gcd = (a, b) => (b ? gcd(b, a % b) : a);
  const lcm = widths.reduce((a, b) => (a / gcd(a, b)) * b, widths[0] ?? 1);
  const max = Math.max(...sides.map(({width}) => width));
  return widths.length ? Math.ceil(max / lcm) * lcm : max;
}

function byKey(entries) {
  const numbers = new Map();
  for (const {key, number} of entries) at(numbers, key, () => new Set()).add(number);
  return numbers;
}

function at(map, key, make = () => new Sums()) {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}

function bump(list, index, by = 1) {
  list[index] = (list[index] ?? 0) + by;
}

function addRow(sums, rows, row, partner) {
  const missing = rows.incomplete[row];
  const whole = missing !== 1 && missing !== 2;
  sums.syncs++;
  if (whole) sums.whole++;
  if (whole && rows.bios[row] === 0 && !rows.failed[row]) sums.empty++;
  if (missing) sums.incomplete++;
  if (rows.exact[row] != null) sums.attributed++;
  if (rows.exact[row]) sums.exact++;
  if (rows.bytes[row] != null) {
    sums.amounts++;
    sums.bytes += rows.bytes[row];
  }
  for (const kind of ['syscall', 'writeback']) {
    const value = rows[`${kind}_ns`][row];
    if (value == null) continue;
    sums[`${kind}s`]++;
    sums[`${kind}_ns`] += value;
    sums[`${kind}_max_ns`] = Math.max(sums[`${kind}_max_ns`] ?? 0, value);
    if (kind === 'syscall') (sums.values ??= []).push(value);
  }
  const journal = rows.journal_ns?.[row];
  if (journal != null) {
    sums.journals++;
    sums.journal_ns += journal;
    sums.journal_max_ns = Math.max(sums.journal_max_ns ?? 0, journal);
    sums.journal_dur_ns += rows.dur_ns[row];
  }
  const flush = rows.flush_ns?.[row];
  if (flush != null) {
    sums.flushes++;
    sums.flush_ns += flush;
  }
  if (rows.dur_ns[row] != null) {
    sums.timed++;
    sums.dur_ns += rows.dur_ns[row];
  }
  if (partner != null) sums.partners.add(partner);
}

function addSlot(sums, slot, cell, partner) {
  // Field by field: a loop over the names takes ten times as long, and there are many cells.
  sums.syncs += slot.syncs[cell];
  sums.whole += slot.whole[cell];
  sums.empty += slot.empty[cell];
  sums.incomplete += slot.incomplete[cell];
  sums.attributed += slot.attributed[cell];
  sums.exact += slot.exact[cell];
  sums.amounts += slot.amounts[cell];
  sums.bytes += slot.bytes[cell];
  sums.syscalls += slot.syscalls[cell];
  sums.syscall_ns += slot.syscall_ns[cell];
  sums.writebacks += slot.writebacks[cell];
  sums.writeback_ns += slot.writeback_ns[cell];
  sums.timed += slot.timed[cell];
  sums.dur_ns += slot.dur_ns[cell];
  const syscall = slot.syscall_max_ns[cell];
  if (syscall !== null && (sums.syscall_max_ns === null || sums.syscall_max_ns < syscall)) sums.syscall_max_ns = syscall;
  const writeback = slot.writeback_max_ns[cell];
  if (writeback !== null && (sums.writeback_max_ns === null || sums.writeback_max_ns < writeback)) sums.writeback_max_ns = writeback;
  if (slot.journals) {
    sums.journals += slot.journals[cell];
    sums.journal_ns += slot.journal_ns[cell];
    sums.journal_dur_ns += slot.journal_dur_ns[cell];
    const journal = slot.journal_max_ns[cell];
    if (journal !== null && (sums.journal_max_ns === null || sums.journal_max_ns < journal)) sums.journal_max_ns = journal;
  }
  if (slot.flushes) {
    sums.flushes += slot.flushes[cell];
    sums.flush_ns += slot.flush_ns[cell];
  }
  if (partner != null) sums.partners.add(partner);
}

function addBucket(sums, cube, cell, partner) {
  sums.syncs += cube.syncs[cell];
  if (cube.bytes[cell] != null) {
    sums.bytes += cube.bytes[cell];
    sums.amounts = 1;
  }
  if (cube.dur_ns[cell] != null) {
    sums.dur_ns += cube.dur_ns[cell];
    sums.timed = 1;
  }
  if (partner != null) sums.partners.add(partner);
}

function addStack(stacks, name, syncs, table, row) {
  const sums = at(stacks, name, () => ({syncs: 0, syscall: 0, writeback: 0, journal: 0, flush: 0, bytes: 0}));
  sums.syncs += syncs;
  sums.syscall += table.syscall_ns[row] ?? 0;
  sums.writeback += table.writeback_ns[row] ?? 0;
  sums.journal += table.journal_ns?.[row] ?? 0;
  sums.flush += table.flush_ns?.[row] ?? 0;
  sums.bytes += table.bytes[row] ?? 0;
}

// Returns the time in which at least one sync is in flight, summed over the runs. Spans are [run, from, to].
function union(spans) {
  spans.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]));
  let [run, reach, sum] = [null, -Infinity, 0];
  for (const [ofRun, from, to] of spans) {
    if (ofRun !== run) [run, reach] = [ofRun, -Infinity];
    sum += Math.max(0, to - Math.max(from, reach));
    reach = Math.max(reach, to);
  }
  return sum;
}

// Interpolates linearly between neighbours, as the reports do.
export function percentile(sorted, percent) {
  if (!sorted.length) return null;
  const place = ((sorted.length - 1) * percent) / 100;
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}

// Counts by bucket determine only bounds of a percentile.
export function percentileBounds(counts, percent, buckets, max) {
  const total = counts.reduce((sum, one) => sum + (one ?? 0), 0);
  if (!total) return null;
  const place = ((total - 1) * percent) / 100;
  const find = (rank) => {
    let before = 0;
    for (let bucket = 0; bucket < counts.length; bucket++) {
      before += counts[bucket] ?? 0;
      if (before > rank) return bucket;
    }
    return counts.length - 1;
  };
  const to = buckets.upper(find(Math.ceil(place)));
  return {from: buckets.lower(find(Math.floor(place))), to: max == null ? to : Math.min(to, max)};
}
