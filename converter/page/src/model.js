// The data of one run, and the figures of a selection.
//
// A side holds all requests (`rows`), or counts and sums by time bin, file and thread (`cubes`). Both have the same interface.
// A value that cubes do not determine is null, or has bounds (`from`, `to`), or is named in `inexact`.

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
    this.cache = new Map();
  }

  // Both sides are drawn with the same bin width. With rows it can be any, with cubes a multiple of their own width.
  binAs(width) {
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

  // Sum of a wait. It is null, even for an empty selection, if no request of the side recorded the wait.
  waited(sums, wait) {
    return this.recorded[wait] ? sums.sum(`${wait}_ns`, KNOWN[wait]) : null;
  }

  // Results are cached: several views ask for the same selection.
  select(filter) {
    const key = JSON.stringify([filter.file, filter.thread, filter.time]);
    if (!this.cache.has(key)) {
      if (this.cache.size > 20) this.cache.clear();
      this.cache.set(key, this.counted ? this.#selectCells(filter) : this.#selectRows(filter));
    }
    return this.cache.get(key);
  }

  #test(filter) {
    const files = filter.file == null ? null : (this.numbers.file.get(filter.file) ?? new Set());
    const threads = filter.thread == null ? null : (this.numbers.thread.get(filter.thread) ?? new Set());
    const [from, to] = filter.time ?? [-Infinity, Infinity];
    return {
      file: (number) => files === null || files.has(number),
      thread: (number) => threads === null || threads.has(number),
      time: (since) => since >= from && since < to,
      // The selected item is only listed on the other side; here it is part of `others`, or absent.
      unknown: (files?.size === 0 && this.otherFiles > 0) || (threads?.size === 0 && this.otherThreads > 0),
    };
  }

  #empty(filter) {
    const test = this.#test(filter);
    const found = {
      filter, test, total: new Sums(), files: new Map(), threads: new Map(), time: Array.from({length: this.bins}, () => new Sums()),
      buckets: {syscall: [], writeback: [], journal: [], amount: []}, stacks: new Map(), inexact: new Set(), points: [], pointsOf: 0, longest: 0,
      values: null, wall: null,
    };
    if (test.unknown) found.inexact.add('others');
    return found;
  }

  #selectRows(filter) {
    const found = this.#empty(filter);
    const {test, total} = found;
    const {rows} = this.raw;
    const values = {syscall: [], writeback: [], journal: [], amount: []};
    const spans = [];
    for (let row = 0; row < rows.since_ns.length; row++) {
      const file = rows.file[row];
      const thread = rows.thread[row];
      const inFile = test.file(file);
      const inThread = test.thread(thread);
      const inTime = test.time(rows.since_ns[row]);
      if (inThread && inTime) addRow(at(found.files, file), rows, row, thread);
      if (inFile && inTime) addRow(at(found.threads, thread), rows, row, file);
      if (inFile && inThread) addRow(found.time[Math.floor(rows.since_ns[row] / this.width)], rows, row);
      if (!inFile || !inThread || !inTime) continue;
      addRow(total, rows, row);
      const amount = rows.incomplete[row] === 1 || rows.incomplete[row] === 2 ? null : rows.bytes[row];
      for (const [name, value, of] of [['syscall', rows.syscall_ns[row], LATENCY.of], ['writeback', rows.writeback_ns[row], LATENCY.of], ['journal', rows.journal_ns?.[row], LATENCY.of], ['amount', amount, AMOUNT.of]]) {
        if (value == null) continue;
        values[name].push(value);
        bump(found.buckets[name], of(value));
      }
      addStack(found.stacks, this.stackName(rows.stack[row]), 1, rows, row);
      found.points.push(row);
      if (rows.dur_ns[row] != null) spans.push([this.threads[thread].run, rows.since_ns[row], rows.since_ns[row] + rows.dur_ns[row]]);
    }
    for (const list of Object.values(values)) list.sort((a, b) => a - b);
    found.values = values;
    found.pointsOf = found.points.length;
    found.wall = union(spans);
    return found;
  }

  #selectCells(filter) {
    const found = this.#empty(filter);
    const {test, total} = found;
    const {slot, code, ...others} = this.raw.cubes;
    const begin = (bin) => bin * this.raw.width_ns;
    for (let cell = 0; cell < slot.bin.length; cell++) {
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
      if (!cube) continue;
      for (let cell = 0; cell < cube.bin.length; cell++) {
        const inFile = test.file(cube.file[cell]);
        const inThread = test.thread(cube.thread[cell]);
        if (!test.time(begin(cube.bin[cell]))) continue;
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
    found.pointsOf = total.syncs;
    return found;
  }

  // There is one cube for all three filters if it is small enough, else one for each filter.
  #selectCode(found, filter) {
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
    return {
      since: table.since_ns[row], length: table.dur_ns[row], file: this.files[table.file[row]], thread: this.threads[table.thread[row]],
      op: this.raw.operations[table.op[row]], syscall: table.syscall_ns[row], writeback: table.writeback_ns[row], bytes: table.bytes[row],
      ranges: table.ranges[row], whole: table.incomplete[row] === 0,
    };
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
    if (this.counted) this.#phaseCells(filter, test, by, add);
    else {
      const {rows} = this.raw;
      const {row: numbers, phase, dur_ns: lengths} = this.raw.phases ?? {row: []};
      for (let cell = 0; cell < numbers.length; cell++) {
        const row = numbers[cell];
        const [file, thread, since] = [rows.file[row], rows.thread[row], rows.since_ns[row]];
        if (!test.file(file) || !test.thread(thread) || !test.time(since)) continue;
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

export const filtered = (filter) => filter.file != null || filter.thread != null || filter.time != null;

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
