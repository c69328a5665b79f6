// The page: reads its data, holds the selection, and redraws the views when the selection changes.

import {decode, encode} from './address.js';
import * as format from './format.js';
import {choice, h, replace} from './dom.js';
import {NOTHING_SELECTED, OTHERS, Side, commonWidth, filtered} from './model.js';
import {adviceView} from './views/advice.js';
import {answerView, longestView} from './views/answer.js';
import {BIO_VIEWS} from './views/bios.js';
import {bystandersView} from './views/bystanders.js';
import {DISK_MEASURES, diskView} from './views/disk.js';
import {flameView} from './views/flame.js';
import {heatView} from './views/heat.js';
import {amountView, kindsOf, latencyView} from './views/histogram.js';
import {lanesView} from './views/lanes.js';
import {phasesView} from './views/phases.js';
import {scatterView} from './views/scatter.js';
import {slowestView} from './views/slowest.js';
import {caveats, differing, failed, tiles, wholeSummary} from './views/summary.js';
import {filesView, threadsView} from './views/tables.js';
import {measures, timeView} from './views/time.js';
import {hasWrites, writesView} from './views/writes.js';

const SYNC_VIEWS = [diskView, bystandersView, slowestView, phasesView, heatView, timeView, lanesView, latencyView, amountView, scatterView, flameView, filesView, threadsView];
const HALF = new Set(['latency', 'amount']);
const THEMES = [['auto', 'system'], ['light', 'light'], ['dark', 'dark']];

const data = JSON.parse(document.getElementById('data').textContent);
const comparing = data.sides.length > 1;
const sides = data.sides.map((raw, index) => Object.assign(new Side(raw, index, comparing), {total: data.sides.length}));
const now = sides.at(-1);
const hasSyncs = sides.some((side) => side.raw.requests);
// The views for which the input holds something, and why others are missing.
const ofInput = hasSyncs ? SYNC_VIEWS : sides.some((side) => side.raw.bios) ? BIO_VIEWS : [];
const VIEWS = ofInput.filter((view) => !view.missing?.(sides));
// That no write waited is usual, so it is not said. Next to what syncs waited for; without syncs it comes first.
if (hasWrites(sides)) VIEWS.splice(VIEWS.indexOf(phasesView) + 1, 0, writesView);
const MISSING = ofInput.flatMap((view) => (view.missing?.(sides) ? [[view.title, view.missing(sides)]] : []));
for (const [index, name] of shortNames(sides.map(({name}) => name)).entries()) sides[index].short = format.printable(name);
// Ratio of the lengths of two sides, above which each has a time axis of its own: one would be a sliver.
const MAX_RATIO = 3;
const native = sides.map((side) => side.width);

const initial = {
  ...NOTHING_SELECTED,
  measure: measures(sides)[0], latency: kindsOf(sides)[0]?.[0] ?? 'syscall', height: comparing ? 'share' : 'count', shape: sides.some((side) => side.counted) ? 'histogram' : 'fine',
  times: comparing && Math.max(...sides.map(({length}) => length)) > MAX_RATIO * Math.min(...sides.map(({length}) => length)) ? 'each' : 'same', bioMeasure: 'bytes', disk: 'load',
  by: 'ranges', weight: 'syncs', phasesBy: 'file', flame: sides.some((side) => side.raw.stack_names.length) ? 'stack' : 'file', zoom: null, opened: null,
};
const OPTIONS = ['measure', 'latency', 'height', 'shape', 'times', 'bioMeasure', 'disk', 'by', 'weight', 'phasesBy', 'flame'];
let state = {
  ...initial,
  search: {files: '', threads: ''}, rows: {files: 50, threads: 50},
  sort: {files: {key: 'sum', down: true, changed: false}, threads: {key: 'sum', down: true, changed: false}},
};
// Views that depend on an option. A change of another option or of the selection redraws all views.
const VIEWS_OF_OPTION = {measure: ['time'], bioMeasure: ['bio-time'], disk: ['disk'], opened: ['slowest'], latency: ['heat', 'latency', 'scatter'], shape: ['latency'], height: ['latency', 'amount'], by: ['scatter'], weight: ['flame'], flame: ['flame'], zoom: ['flame'], phasesBy: ['phases']};

const hosts = new Map();
const top = h('div');
const bar = h('div.filters', {role: 'region', 'aria-label': 'Selection'});

function set(change, ids) {
  state = {...state, ...change};
  if (change.times) bin();
  write(Object.keys(change).some((name) => name in NOTHING_SELECTED));
  const affected = ids ?? (Object.keys(change).every((name) => name in VIEWS_OF_OPTION) ? Object.keys(change).flatMap((name) => VIEWS_OF_OPTION[name]) : null);
  draw(affected);
}

// Bins of both sides have the same width, unless each side has a time axis of its own.
function bin() {
  const width = commonWidth(sides);
  sides.forEach((side, place) => side.binAs(state.times === 'each' ? native[place] : width));
}

// The address of the page has the selection in its hash. A new selection is a step to go back from, an option is not.
function write(isSelection) {
  const hash = encode(state, initial, OPTIONS);
  if (hash === location.hash.slice(1)) return;
  history[isSelection ? 'pushState' : 'replaceState'](null, '', `#${hash}`);
}

function read() {
  const hash = location.hash.slice(1);
  // A link within the page.
  if (hash && !hash.includes('=')) return false;
  state = {...state, ...Object.fromEntries([...OPTIONS, ...Object.keys(NOTHING_SELECTED)].map((name) => [name, initial[name]])), ...decode(hash, OPTIONS, isKnown)};
  if (sides.some((side) => side.counted) && state.waited && state.wrote) state.wrote = null;
  return true;
}

const VALUES = {
  measure: measures(sides), latency: kindsOf(sides).map(([kind]) => kind), height: ['count', 'share'], shape: sides.some((side) => side.counted) ? ['histogram', 'ecdf'] : ['fine', 'histogram', 'ecdf'], times: ['each', 'same'],
  bioMeasure: ['bytes', 'bios', 'queue', 'device', 'max'], disk: DISK_MEASURES, by: ['ranges', 'file', 'op'], weight: ['syncs', 'syscall', 'writeback', 'journal', 'flush', 'bytes'], phasesBy: ['file', 'thread', 'time'], flame: ['stack', 'file', 'thread'],
};

function isKnown(name, value) {
  if (name === 'file' || name === 'thread') return sides.some((side) => side.numbers[name].has(value));
  return VALUES[name].includes(value);
}

// Returns names without the leading folders that they share.
function shortNames(names) {
  if (names.length < 2) return names;
  const parts = names.map((name) => name.split('/'));
  let same = 0;
  while (parts.every((one) => same < one.length - 1 && one[same] === parts[0][same])) same++;
  return parts.map((one) => one.slice(same).join('/'));
}

function draw(ids = null) {
  const views = VIEWS.filter((view) => !ids || ids.includes(view.id));
  // Widths are read before anything is written. Between two views, the browser would lay out the whole page for each.
  const rooms = views.map((view) => hosts.get(view.id).body.clientWidth);
  if (!ids && hasSyncs) {
    replace(top, tiles(sides, state));
    drawFilters();
  }
  for (const [index, view] of views.entries()) drawView(view, rooms[index]);
}

// Draws a view in a space of the width `room`.
function drawView(view, room) {
  const host = hosts.get(view.id);
  const controls = view.controls?.(state, set, sides) ?? [];
  // A focused text field is not replaced, so that the user can continue typing.
  if (!(host.controls.contains(document.activeElement) && document.activeElement.matches('input'))) replace(host.controls, controls);
  if (view.merged) {
    replace(host.body, view.draw(sides, state, {set, width: Math.max(260, room)}));
    return;
  }
  const scale = view.scale(sides, state);
  const isSideBySide = comparing && room >= 760;
  const width = Math.max(260, Math.floor(isSideBySide ? (room - 24) / 2 : room));
  const panes = sides.map((side, place) => h(`div.pane${comparing && !place ? '.base' : ''}`, {'data-side': side.index}, comparing ? h('h3', {}, h('span.role', {}, place ? 'new' : 'base'), ` ${side.short}`) : null,
    view.draw(side, state, {width, scale, place, set, compared: comparing})));
  replace(host.body, h(`div.panes${isSideBySide ? '.columns' : ''}`, {}, panes));
}

function drawFilters() {
  const chip = (name, text, clear) => h('span.chip', {}, `${name}: `, h('bdi', {}, text), h('button', {'aria-label': `Remove the ${name} filter`, 'data-key': `clear-${name}`, onclick: () => set(clear)}, '✕'));
  const label = (field) => {
    if (state[field] !== OTHERS) {
      const entry = sides.flatMap((side) => side[`${field}s`]).find(({key}) => key === state[field]);
      return format.printable(comparing ? state[field] : (entry?.label ?? state[field]));
    }
    return 'all others';
  };
  const chips = [
    state.file != null && chip('file', label('file'), {file: null}),
    state.thread != null && chip('thread', label('thread'), {thread: null}),
    state.time && chip('time', format.range(...state.time), {time: null}),
    state.waited && chip(`${state.waited.kind} latency`, between(state.waited, 'ns'), {waited: null}),
    state.wrote && chip('amount', between(state.wrote, 'bytes'), {wrote: null}),
  ].filter(Boolean);
  const counts = sides.map((side) => {
    const {total, inexact} = side.select(state);
    return `${comparing ? `${side.index ? 'new' : 'base'} ` : ''}${format.count(total.syncs)} of ${format.counted(side.raw.requests, 'sync')}${inexact.has('others') ? ' (or more: on this page the selection may be among the items that share one row)' : ''}`;
  });
  replace(bar,
    h('strong', {}, chips.length ? 'Selected: ' : 'Everything: '), chips.length ? chips : null,
    h('span', {role: 'status', id: 'selected'}, counts.join('; ')),
    chips.length ? h('button', {'data-key': 'clear-all', onclick: clearAll, 'aria-keyshortcuts': 'Escape'}, 'Clear all (Esc)') : h('span.hint', {}, 'To select, click a file or a thread, click a bar of a histogram, or drag across a chart.'),
    comparing ? choice('Time axes', [['each', 'each side has its own'], ['same', 'the same for both']], state.times, (times) => set({times}, null)) : null,
    chips.length ? selectionSql() : null);
  bar.classList.toggle('on', chips.length > 0);
}

const clearAll = () => set(NOTHING_SELECTED);
const between = ({from, to}, unit) => (to <= 1 ? format.text(0, unit) : `${format.text(from, unit)} to less than ${format.text(to, unit)}`);

// Returns the selection as SQL, for figures that the page does not have.
function selectionSql() {
  const text = (value) => `'${value.replaceAll("'", "''")}'`;
  const side = now;
  const conditions = [];
  if (state.file === OTHERS || state.thread === OTHERS) return null;
  if (state.file != null) {
    const [, ino, dev] = state.file.match(/^inode (\d+) on (\d+,\d+)$/) ?? [];
    if (ino) conditions.push(`path IS NULL AND ino = ${ino} AND dev = ${text(dev)}`);
    else if (state.file === '[unknown file]') conditions.push('path IS NULL AND (ino IS NULL OR dev IS NULL)');
    else conditions.push(`path = ${text(state.file)}`);
  }
  if (state.thread != null) {
    const [number] = side.numbers.thread.get(state.thread) ?? [];
    if (number === undefined) return null;
    const table = side.raw.threads_table;
    const same = (name, value) => (value == null ? `${name} IS NULL` : `${name} = ${typeof value === 'string' ? text(value) : value}`);
    conditions.push(same('comm', table.comm[number]));
    if (!comparing) conditions.push(same('tid', table.tid[number]), same('pid', table.pid[number]), same('run', table.run[number]));
  }
  if (state.time) {
    const {run, first_ns} = side.raw.begun;
    const [from, to] = state.time;
    // Times on the page count from the first request of each run.
    if (run.length === 1) conditions.push(`ts_ns >= ${BigInt(first_ns[0]) + BigInt(from)}`, `ts_ns < ${BigInt(first_ns[0]) + BigInt(to)}`);
    else conditions.push(`ts_ns - (SELECT MIN(ts_ns) FROM syncline_sync AS s WHERE s.run = syncline_sync.run) BETWEEN ${from} AND ${to - 1}`);
  }
  if (state.waited) conditions.push(`${state.waited.kind}_ns >= ${state.waited.from}`, `${state.waited.kind}_ns < ${state.waited.to}`);
  // As the page counts amounts: those of syncs that lack their start or end are not known.
  if (state.wrote) conditions.push(`bytes >= ${state.wrote.from}`, `bytes < ${state.wrote.to}`, "(incomplete IS NULL OR incomplete IN ('call', 'bio'))");
  return h('details.sql', {}, h('summary', {}, 'in SQL'), h('code', {}, `SELECT COUNT(*), SUM(bytes), percentile(syscall_ns, 99) FROM syncline_sync WHERE ${conditions.join(' AND ')}`));
}

// Without an event of a sync, the input does not show whether there were syncs.
const noSync = (side) => (side.raw.answer?.shows_syncs === false ? 'syncs are not recorded' : 'no sync');

function head() {
  const names = comparing ? `${now.short} compared with ${sides[0].short}` : format.printable(now.name);
  document.title = `${names} – Syncline`;
  const theme = h('select', {'aria-label': 'Colours', id: 'theme', onchange: () => { document.documentElement.dataset.theme = theme.value; draw(); }}, THEMES.map(([key, text]) => h('option', {value: key}, text)));
  const facts = sides.map((side) => {
    const {source, events, clock} = side.raw.facts;
    // The facts of one run do not describe a dataset.
    const runs = side.raw.answer?.sentences?.runs;
    return h('p.facts', {}, comparing ? h('span.role', {}, side.index ? 'new' : 'base') : null, [
      comparing ? format.printable(side.name) : null, runs ? format.printable(runs.replace(/\.$/, '')) : null, side.raw.requests ? `${format.counted(side.raw.requests, 'sync')} in ${format.ns(side.length)}` : side.raw.bios ? `${format.counted(side.raw.bios.bios, 'bio')} in ${format.ns(side.raw.bios.end_ns)}, ${noSync(side)}` : noSync(side), source && !runs ? `format ${format.printable(source)}` : null,
      events && !runs ? `${format.count(Number(events))} events` : null, clock && !runs ? `clock ${format.printable(clock)}` : null,
      !side.raw.requests ? null : side.counted ? `syncs counted in bins of ${format.ns(side.raw.width_ns * side.step)}, by ${format.count(side.raw.files_table.path.length)} files and ${format.count(side.raw.threads_table.tid.length)} threads` : 'all syncs are on this page',
    ].filter(Boolean).join(' · '));
  });
  return h('header', {}, h('div', {}, h('h1', {}, names), facts), h('label.choice', {}, 'Colours ', theme));
}

// Returns the place of a view, which `drawView` fills.
function frame(view) {
  const host = {controls: h('div.controls'), body: h('div.body')};
  hosts.set(view.id, host);
  return h(`section.view${HALF.has(view.id) && !comparing ? '.half' : ''}`, {id: view.id, 'aria-labelledby': `${view.id}-title`}, h('div.title', {}, h('h2', {id: `${view.id}-title`}, view.title), host.controls), h('p.help', {}, view.help), host.body);
}

// A heading in the contents is without its mark; a sentence has a shorter name there.
const title = (section) => section.dataset.contents ?? document.getElementById(section.getAttribute('aria-labelledby')).textContent.replace(/^[^\p{L}]+/u, '');

function start() {
  document.documentElement.dataset.theme = 'auto';
  const main = h('main', {});
  const page = document.getElementById('page');
  const contents = h('nav.contents', {'aria-label': 'Contents'});
  page.replaceChildren(h('a.skip', {href: hasSyncs ? '#files' : '#device'}, 'Skip to the tables'), head(), contents, main, h('footer', {}, `Syncline ${data.syncline}. The figures are those of `, h('code', {}, 'syncline report'), '. This page fetches nothing.'));
  const failures = failed(sides);
  if (failures) main.append(failures);
  const answer = answerView(sides, comparing ? data.answer : null, {set});
  if (answer) main.append(answer);
  // Who else used the disk, and what to change, are the next questions. No selection changes these parts.
  if (VIEWS.includes(diskView)) main.append(frame(diskView));
  const longest = longestView(sides, comparing ? data.answer : null, {set});
  if (longest) main.append(longest);
  const advice = adviceView(sides);
  if (advice) main.append(advice);
  if (data.warnings.length) main.append(differing(data.warnings));
  main.append(...sides.map((side) => caveats(side, comparing)));
  if (hasSyncs) main.append(h('section', {id: 'summary', 'aria-labelledby': 'summary-title'}, h('h2', {id: 'summary-title'}, 'Figures'), top, wholeSummary(sides)), bar);
  if (comparing) main.append(h('p.note.verdict', {}, 'A difference may be due to chance: this page does not test for that, `syncline diff` does.'));
  if (!VIEWS.length) main.append(h('p', {}, 'There is no sync request in this input, so there is nothing to draw.'));
  const grid = h('div.grid');
  grid.append(...VIEWS.filter((view) => view !== diskView).map(frame));
  main.append(grid);
  if (MISSING.length) main.append(h('section', {id: 'missing', 'aria-labelledby': 'missing-title'}, h('h2', {id: 'missing-title'}, 'What this input does not hold'), h('ul', {}, MISSING.map(([title, why]) => h('li', {}, `${title}: ${why.replace(/\.$/, '')}.`)))));
  contents.append(h('ul', {}, [...main.querySelectorAll('section[id]')].map((section) => h('li', {}, h('a', {href: `#${section.id}`}, title(section))))));
  // The address keeps the selection, so a link within the page must not replace it.
  page.addEventListener('click', (event) => {
    const target = document.getElementById(event.target.closest('a[href^="#"]')?.hash.slice(1) ?? '');
    if (!target) return;
    event.preventDefault();
    target.tabIndex = -1;
    target.focus({preventScroll: true});
    target.scrollIntoView();
  });
  read();
  bin();
  draw();
  window.addEventListener('popstate', () => {
    if (!read()) return;
    bin();
    draw();
  });
  // On paper the page is as wide as the paper, and charts are drawn for that width.
  const print = (isPrint) => {
    page.classList.toggle('paper', isPrint);
    draw();
  };
  window.addEventListener('beforeprint', () => print(true));
  window.addEventListener('afterprint', () => print(false));
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.defaultPrevented || event.target.matches('input, select')) return;
    if (filtered(state)) clearAll();
  });
  let [timer, before] = [0, window.innerWidth];
  window.addEventListener('resize', () => {
    if (window.innerWidth === before) return;
    before = window.innerWidth;
    clearTimeout(timer);
    timer = setTimeout(draw, 150);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => draw());
}

start();
// Lets tests wait until everything is drawn, and measure when that is.
requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.ready = String(Math.round(performance.now())); }));
