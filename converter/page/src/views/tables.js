// Tables of files and threads: a click on a heading sorts, a search text filters, a click on a row selects its file or thread.

import {LATENCY} from '../buckets.js';
import * as format from '../format.js';
import {h} from '../dom.js';
import {OTHERS, WAITS, availableOptions, percentile, percentileBounds} from '../model.js';

const ROWS = 50;

const p99 = (sums) => {
  if (sums.values) return percentile((sums.sorted ??= sums.values.sort((a, b) => a - b)), 99);
  return sums.buckets ? percentileBounds(sums.buckets, 99, LATENCY, sums.syscall_max_ns) : null;
};

const NOTHING = {syncs: 0, empty: 0, bytes: 0, sum: 0, incomplete: 0, partners: 0};

const COMMON = [
  {key: 'syncs', label: 'syncs', unit: 'count', of: (sums) => sums.syncs},
  // Whether a sync is empty is not known where the bytes are not.
  {key: 'empty', label: 'empty', unit: 'count', of: (sums) => (sums.amounts ? sums.empty : null)},
  {key: 'bytes', label: 'written back', unit: 'bytes', of: (sums) => sums.sum('bytes', 'amounts')},
  {key: 'sum', label: 'time in sync', unit: 'ns', of: (sums) => sums.sum('dur_ns', 'timed')},
  // Shown only if a side recorded them.
  {key: 'journal', label: 'journal wait', unit: 'ns', of: (sums, side) => side.waited(sums, 'journal')},
  {key: 'flush', label: 'flushes', unit: 'ns', of: (sums, side) => side.waited(sums, 'flush')},
  {key: 'average', label: 'latency avg', unit: 'ns', of: (sums) => sums.average('syscall')},
  {key: 'p99', label: 'latency p99', unit: 'ns', of: p99},
  {key: 'max', label: 'latency max', unit: 'ns', of: (sums) => sums.syscall_max_ns},
  {key: 'incomplete', label: 'incomplete', unit: 'count', of: (sums) => sums.incomplete},
];

export const filesView = tableView({
  id: 'files', title: 'Files', one: 'file', heading: 'path', field: 'file',
  help: 'Syncs per file. Latencies are syscall latencies, over the syncs that have one. Time in sync is from the call, or else the start of the request, to the end.',
  // From the report, which counts all syncs.
  exact: (side, number) => ({p99: side.raw.files_table.latency_p99_ns[number], partners: side.raw.files_table.threads[number]}),
  columns: [...COMMON.slice(0, -1), {key: 'partners', label: 'threads', unit: 'count', of: (sums) => sums.partners.size}, COMMON.at(-1)],
});

export const threadsView = tableView({
  id: 'threads', title: 'Threads', one: 'thread', heading: 'thread', field: 'thread',
  help: 'Syncs per thread. Parallel is the number of syncs in flight, including its own, averaged over its time in sync. It is always of the whole run.',
  exact: (side, number) => ({parallel: side.raw.threads_table.parallel_avg[number]}),
  columns: [...COMMON.slice(0, -1), {key: 'parallel', label: 'parallel', unit: 'ratio', whole: true, of: () => null}, COMMON.at(-1)],
});

function tableView({id, title, one, heading, field, help, columns: all, exact}) {
  return {
    id, title, help, wide: true, merged: true,
    controls(state, set) {
      const input = h('input', {type: 'search', value: state.search[id], placeholder: `part of a ${heading}`, 'data-key': `search-${id}`, 'aria-label': `Search ${heading}`, oninput: () => set({search: {...state.search, [id]: input.value}, rows: {...state.rows, [id]: ROWS}}, [id])});
      return [h('label.choice', {}, 'Find ', input)];
    },
    draw(sides, state, {set}) {
      const comparing = sides.length > 1;
      const available = new Set(availableOptions(sides, all.map(({key}) => [key])).flat());
      const columns = all.filter(({key}) => available.has(key));
      const entries = merge(sides, state, field, exact, columns);
      const searched = state.search[id].toLowerCase();
      const matching = entries.filter(({label}) => label.toLowerCase().includes(searched));
      const {key, down, changed} = state.sort[id];
      const column = columns.find((column) => column.key === key);
      const value = (entry) => {
        if (!column) return entry.label;
        if (!changed) return plain(entry.values.at(-1)?.[key] ?? entry.values[0]?.[key]);
        const [base, new_] = entry.values.map((values) => plain(values?.[key]));
        return base == null || new_ == null ? null : Math.abs(new_ - base);
      };
      matching.sort((a, b) => compare(value(a), value(b), down) || (a.label < b.label ? -1 : 1));
      const rows = matching.slice(0, state.rows[id]);
      const sort = (key) => set({sort: {...state.sort, [id]: {...state.sort[id], key, down: state.sort[id].key === key ? !state.sort[id].down : key !== 'label'}}}, [id]);
      const shownColumns = columns.filter(({whole}) => !comparing || !whole);
      const head = [{key: 'label', label: heading}, ...shownColumns].map((column) => h('th', {scope: 'col', 'aria-sort': column.key === key ? (down ? 'descending' : 'ascending') : 'none'},
        h('button', {'data-key': `sort-${id}-${column.key}`, onclick: () => sort(column.key)}, column.label, h('span.arrow', {'aria-hidden': 'true'}, column.key === key ? (down ? ' ▼' : ' ▲') : ''))));
      const picked = state[field];
      const body = rows.map((entry) => h('tr', {class: entry.key === picked ? 'picked' : null, 'data-name': entry.key === OTHERS ? 'others' : entry.label},
        h('th', {scope: 'row'}, h('button.pick', {'data-key': `pick-${id}-${entry.key}`, 'aria-pressed': String(entry.key === picked), title: format.printable(entry.label), onclick: () => set({[field]: entry.key === picked ? null : entry.key})},
          h('span.mark', {'aria-hidden': 'true'}, entry.key === picked ? '● ' : ''), h('bdi', {}, format.printable(entry.label)))),
        shownColumns.map((column) => cell(column, entry, comparing))));
      const foot = [];
      if (matching.length > rows.length) foot.push(h('p.printed', {}, `${format.count(matching.length - rows.length)} more rows are not printed.`));
      if (matching.length > rows.length) foot.push(h('button', {'data-key': `more-${id}`, onclick: () => set({rows: {...state.rows, [id]: state.rows[id] * 4}}, [id])}, `Show more: ${format.count(matching.length - rows.length)} are not shown`));
      const notes = [`${format.count(matching.length)}${searched ? ` of ${format.count(entries.length)}` : ''} ${matching.length === 1 ? 'row' : 'rows'}.`];
      for (const side of sides) {
        const others = field === 'file' ? side.otherFiles : side.otherThreads;
        if (others) notes.push(`${comparing ? `${side.short}: the` : 'The'} ${format.count(others)} ${one}s with the least time in sync share one row; the report \`${id}\` lists them.`);
      }
      if (sides.some((side) => side.counted)) notes.push('A percentile is given as two bounds where this page holds only counts by bucket.');
      const waits = columns.filter(({key}) => WAITS.includes(key));
      if (waits.length) notes.push('Journal wait and flushes are the parts of the time in sync spent on journal commits, and in cache flushes that the syncs issued.');
      for (const side of sides) {
        const {total} = side.select(state);
        const partlyKnown = waits.filter(({key}) => total.known(key) < total.syncs).map(({key, label}) => `${label} for ${format.count(total.known(key))}`);
        if (partlyKnown.length) notes.push(`${comparing ? (side.index ? 'New: known' : 'Base: known') : 'Known'} out of ${format.counted(total.syncs, 'sync')}: ${partlyKnown.join(', ')}. Sums cover only these.`);
      }
      if (comparing) notes.push('Below each figure: that of the base, and the change.');
      if (comparing && field === 'thread') notes.push('Threads with the same name are added up, because thread ids differ between runs.');
      return [
        comparing ? h('label.choice', {}, h('input', {type: 'checkbox', checked: changed, 'data-key': `changed-${id}`, onchange: () => set({sort: {...state.sort, [id]: {...state.sort[id], changed: !changed}}}, [id])}), ' sort by largest change') : null,
        h('div.scroll', {tabindex: 0, role: 'group', 'aria-label': `Table: ${title}`}, h('table.data', {}, h('thead', {}, h('tr', {}, head)), h('tbody', {}, body))),
        h('div.foot', {}, foot), h('p.note', {}, notes.join(' ')),
      ];
    },
  };
}

function cell(column, entry, comparing) {
  const values = entry.values.map((values) => values?.[column.key]);
  const now = values.at(-1);
  const attributes = {'data-column': column.key, 'data-value': now == null ? null : typeof now === 'object' ? `${now.from}..${now.to}` : now};
  if (!comparing) return h('td', attributes, shown(now, column.unit));
  return h('td', attributes, h('div', {}, shown(now, column.unit)), h('div.was', {}, `${shown(values[0], column.unit)} ${format.change(plain(values[0]), plain(now), column.unit)}`));
}

function shown(value, unit) {
  if (value && typeof value === 'object') return value.from === value.to ? format.text(value.to, unit) : `${format.text(value.from, unit)} – ${format.text(value.to, unit)}`;
  return format.text(value, unit);
}

// Returns a number to sort and compare by: of bounds, the upper one.
const plain = (value) => (value && typeof value === 'object' ? value.to : value);

function compare(a, b, down) {
  // Unknown values come last in both directions.
  if (a == null || b == null) return (a == null) - (b == null);
  const order = a < b ? -1 : a > b ? 1 : 0;
  return down ? -order : order;
}

// Returns one row per key, with the values of each side.
function merge(sides, state, field, exact, columns) {
  const rows = new Map();
  sides.forEach((side, place) => {
    const found = side.select(state);
    const others = ['file', 'thread', 'time', 'waited', 'wrote'].filter((name) => name !== field);
    const free = others.every((name) => state[name] == null);
    const names = field === 'file' ? side.files : side.threads;
    for (const [number, sums] of field === 'file' ? found.files : found.threads) {
      const {key, label} = names[number];
      if (!rows.has(key)) rows.set(key, {key, label: sides.length > 1 && key !== OTHERS ? key : label, values: sides.map(() => null), sums: sides.map(() => [])});
      rows.get(key).sums[place].push({sums, number, free});
    }
  });
  for (const row of rows.values()) {
    row.values = row.sums.map((list, place) => {
      if (list.length) return valuesOf(list, sides[place], columns, exact, row.key);
      // An item without a row has no sync, unless it may be among the combined ones.
      const side = sides[place];
      return (field === 'file' ? side.otherFiles : side.otherThreads) ? null : {...NOTHING, ...Object.fromEntries(WAITS.map((wait) => [wait, side.recorded[wait] ? 0 : null]))};
    });
  }
  return [...rows.values()];
}

function valuesOf(list, side, columns, exact, key) {
  const [{number, free}] = list;
  const sums = list.length === 1 ? list[0].sums : addUp(list.map(({sums}) => sums));
  const values = Object.fromEntries(columns.map((column) => [column.key, column.of(sums, side)]));
  // The report's values are exact, but only for all syncs; those of a selection are computed here.
  const known = list.length === 1 && key !== OTHERS ? exact(side, number) : {};
  for (const column of columns) if (column.key in known && (free || column.whole)) values[column.key] = known[column.key];
  if (side.counted && !(free && 'partners' in known)) {
    // Combined threads would count as one.
    if ('partners' in values && side.otherThreads) values.partners = null;
  }
  return values;
}

// Adds up several threads with the same name.
function addUp(list) {
  const whole = Object.assign(Object.create(Object.getPrototypeOf(list[0])), list[0], {partners: new Set(), values: null, buckets: null});
  for (const name of Object.keys(whole)) {
    if (typeof whole[name] === 'number' && !name.includes('_max')) whole[name] = list.reduce((sum, one) => sum + one[name], 0);
    else if (name.includes('_max')) whole[name] = list.reduce((max, one) => (one[name] == null ? max : Math.max(max ?? 0, one[name])), null);
  }
  for (const one of list) {
    for (const partner of one.partners) whole.partners.add(partner);
    if (one.values) (whole.values ??= []).push(...one.values);
    if (one.buckets) one.buckets.forEach((count, bucket) => { (whole.buckets ??= [])[bucket] = (whole.buckets[bucket] ?? 0) + count; });
  }
  delete whole.sorted;
  return whole;
}
