// The page: reads its data, holds the selection, and redraws the views when the selection changes.

import * as format from './format.js';
import {h, replace} from './dom.js';
import {OTHERS, Side, commonWidth, filtered} from './model.js';
import {bystandersView} from './views/bystanders.js';
import {flameView} from './views/flame.js';
import {amountView, latencyView} from './views/histogram.js';
import {lanesView} from './views/lanes.js';
import {phasesView} from './views/phases.js';
import {scatterView} from './views/scatter.js';
import {caveats, differing, tiles, wholeSummary} from './views/summary.js';
import {filesView, threadsView} from './views/tables.js';
import {timeView} from './views/time.js';

const VIEWS = [phasesView, bystandersView, timeView, lanesView, latencyView, amountView, scatterView, flameView, filesView, threadsView];
const HALF = new Set(['latency', 'amount']);
const THEMES = [['auto', 'system'], ['light', 'light'], ['dark', 'dark']];

const data = JSON.parse(document.getElementById('data').textContent);
const comparing = data.sides.length > 1;
const sides = data.sides.map((raw, index) => Object.assign(new Side(raw, index, comparing), {total: data.sides.length}));
const now = sides.at(-1);
const width = commonWidth(sides);
for (const side of sides) side.binAs(width);

let state = {
  file: null, thread: null, time: null,
  measure: 'bytes', latency: sides.some((side) => side.metric('syscall_latency_avg')?.known) ? 'syscall' : 'writeback', height: comparing ? 'share' : 'count',
  by: 'ranges', weight: 'syncs', phasesBy: 'file', flame: sides.some((side) => side.raw.stack_names.length) ? 'stack' : 'file', zoom: null,
  search: {files: '', threads: ''}, rows: {files: 50, threads: 50},
  sort: {files: {key: 'sum', down: true, changed: false}, threads: {key: 'sum', down: true, changed: false}},
};
// Views that depend on an option. A change of another option or of the selection redraws all views.
const VIEWS_OF_OPTION = {measure: ['time'], latency: ['latency', 'scatter'], height: ['latency', 'amount'], by: ['scatter'], weight: ['flame'], flame: ['flame'], zoom: ['flame'], phasesBy: ['phases']};

const hosts = new Map();
const top = h('div');
const bar = h('div.filters', {role: 'region', 'aria-label': 'Selection'});

function set(change, ids) {
  state = {...state, ...change};
  const affected = ids ?? (Object.keys(change).every((name) => name in VIEWS_OF_OPTION) ? Object.keys(change).flatMap((name) => VIEWS_OF_OPTION[name]) : null);
  draw(affected);
}

function draw(ids = null) {
  if (!ids) {
    replace(top, tiles(sides, state));
    drawFilters();
  }
  for (const view of VIEWS) if (!ids || ids.includes(view.id)) drawView(view);
}

function drawView(view) {
  const host = hosts.get(view.id);
  const controls = view.controls?.(state, set, sides) ?? [];
  // A focused text field is not replaced, so that the user can continue typing.
  if (!(host.controls.contains(document.activeElement) && document.activeElement.matches('input'))) replace(host.controls, controls);
  if (view.merged) {
    replace(host.body, view.draw(sides, state, {set}));
    return;
  }
  const scale = view.scale(sides, state);
  const room = host.body.clientWidth;
  const isSideBySide = comparing && room >= 760;
  const width = Math.max(260, Math.floor(isSideBySide ? (room - 24) / 2 : room));
  const panes = sides.map((side, place) => h(`div.pane${comparing && !place ? '.base' : ''}`, {'data-side': side.index}, comparing ? h('h3', {}, h('span.role', {}, place ? 'new' : 'base'), ` ${format.printable(side.name)}`) : null,
    view.draw(side, state, {width, scale, place, set, compared: comparing})));
  const difference = comparing && view.difference ? h('div.pane.difference', {}, h('h3', {}, 'difference: new minus base'), view.difference(sides, state, {width: Math.max(260, isSideBySide ? Math.min(room, 900) : room), scale})) : null;
  replace(host.body, h(`div.panes${isSideBySide ? '.columns' : ''}`, {}, panes), difference);
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
  ].filter(Boolean);
  const counts = sides.map((side) => {
    const {total, inexact} = side.select(state);
    return `${comparing ? `${side.index ? 'new' : 'base'} ` : ''}${format.count(total.syncs)} of ${format.count(side.raw.requests)} syncs${inexact.has('others') ? ' (or more: on this page the selection may be among the items that share one row)' : ''}`;
  });
  replace(bar,
    h('strong', {}, chips.length ? 'Selected: ' : 'Everything: '), chips.length ? chips : null,
    h('span', {role: 'status', id: 'selected'}, counts.join('; ')),
    chips.length ? h('button', {'data-key': 'clear-all', onclick: clearAll, 'aria-keyshortcuts': 'Escape'}, 'Clear all (Esc)') : h('span.hint', {}, 'Click a file or thread in a table, or drag across a time chart, to select.'),
    chips.length ? selectionSql() : null);
  bar.classList.toggle('on', chips.length > 0);
}

const clearAll = () => set({file: null, thread: null, time: null});

// Returns the selection as SQL, for figures that the page does not have.
function selectionSql() {
  const text = (value) => `'${value.replaceAll("'", "''")}'`;
  const side = now;
  const conditions = [];
  if (state.file === OTHERS || state.thread === OTHERS) return null;
  if (state.file != null) conditions.push(state.file === '[unknown file]' ? 'path IS NULL' : `path = ${text(state.file)}`);
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
  return h('details.sql', {}, h('summary', {}, 'in SQL'), h('code', {}, `SELECT COUNT(*), SUM(bytes), percentile(syscall_ns, 99) FROM syncline_sync WHERE ${conditions.join(' AND ')}`));
}

function head() {
  const names = comparing ? `${format.printable(now.name)} compared with ${format.printable(sides[0].name)}` : format.printable(now.name);
  document.title = `${names} – Syncline`;
  const theme = h('select', {'aria-label': 'Colours', id: 'theme', onchange: () => { document.documentElement.dataset.theme = theme.value; draw(); }}, THEMES.map(([key, text]) => h('option', {value: key}, text)));
  const facts = sides.map((side) => {
    const {source, events, clock} = side.raw.facts;
    return h('p.facts', {}, comparing ? h('span.role', {}, side.index ? 'new' : 'base') : null, [
      comparing ? format.printable(side.name) : null, `${format.count(side.raw.requests)} syncs in ${format.ns(side.length)}`, source ? `format ${format.printable(source)}` : null,
      events ? `${format.count(Number(events))} events` : null, clock ? `clock ${format.printable(clock)}` : null,
      side.counted ? `syncs counted in bins of ${format.ns(side.raw.width_ns * side.step)}, by ${format.count(side.raw.files_table.path.length)} files and ${format.count(side.raw.threads_table.tid.length)} threads` : 'all syncs are on this page',
    ].filter(Boolean).join(' · '));
  });
  return h('header', {}, h('div', {}, h('h1', {}, names), facts), h('label.choice', {}, 'Colours ', theme));
}

function start() {
  document.documentElement.dataset.theme = 'auto';
  const main = h('main', {});
  const page = document.getElementById('page');
  page.replaceChildren(h('a.skip', {href: '#files'}, 'Skip to the tables'), head(), main, h('footer', {}, `Syncline ${data.syncline}. The figures are those of `, h('code', {}, 'syncline report'), '. This page fetches nothing.'));
  if (data.warnings.length) main.append(differing(data.warnings));
  main.append(...sides.map((side) => caveats(side, comparing)), h('section', {'aria-label': 'Summary'}, top, wholeSummary(sides)), bar);
  if (comparing) main.append(h('p.note.verdict', {}, 'Both sides have the same scales. A difference may be due to chance: this page does not test for that, `syncline diff` does.'));
  if (!sides.some((side) => side.raw.requests)) {
    main.append(h('p', {}, 'There is no sync request in this input, so there is nothing to draw.'));
    replace(top, tiles(sides, state));
    return;
  }
  const grid = h('div.grid');
  for (const view of VIEWS) {
    const host = {controls: h('div.controls'), body: h('div.body')};
    hosts.set(view.id, host);
    grid.append(h(`section.view${HALF.has(view.id) && !comparing ? '.half' : ''}`, {id: view.id, 'aria-labelledby': `${view.id}-title`}, h('div.title', {}, h('h2', {id: `${view.id}-title`}, view.title), host.controls), h('p.help', {}, view.help), host.body));
  }
  main.append(grid);
  draw();
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
