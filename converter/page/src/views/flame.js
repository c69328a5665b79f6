// Flame graphs: what was waited for or written, by code, by file or by thread.

import * as format from '../format.js';
import {choice, h} from '../dom.js';
import {OTHERS, OTHER_STACKS, offered} from '../model.js';

const WEIGHTS = {
  syncs: {label: 'number of syncs', unit: 'count'},
  syscall: {label: 'syscall latency', unit: 'ns'},
  writeback: {label: 'writeback latency', unit: 'ns'},
  journal: {label: 'wait for the journal', unit: 'ns'},
  flush: {label: 'cache flushes', unit: 'ns'},
  bytes: {label: 'bytes written back', unit: 'bytes'},
};
const BY = [['stack', 'call stack'], ['file', 'file path'], ['thread', 'thread']];
const ROW = 20;
// Of the width: what is narrower is not drawn.
const LEAST = 0.0015;
const MOVED = 0.01;
// As syncline/frames.py writes it.
const ADDRESS = '[address]';

export const flameView = {
  id: 'flame',
  title: 'Flame graph',
  help: 'Width is the weight, summed over the syncs below a frame; the outermost frame is on top. A click, or Enter, makes a frame fill the width; arrows move between frames, Escape or Backspace leads back.',
  controls: (state, set, sides) => [
    choice('Width is', offered(sides, Object.entries(WEIGHTS)).map(([key, {label}]) => [key, label]), state.weight, (weight) => set({weight})),
    choice('by', BY, state.flame, (flame) => set({flame, zoom: null})),
  ],
  scale(sides, state) {
    const trees = sides.map((side) => tree(side, state));
    // The same frame is zoomed to on both sides; one that is no longer there is left.
    const path = (state.zoom ?? []).reduce((kept, name, depth) => (kept.length === depth && trees.some((root) => find(root, [...kept, name])) ? [...kept, name] : kept), []);
    const roots = trees.map((root) => find(root, path));
    // Of nothing there is no part, and so none that has changed.
    const moves = sides.length > 1 && trees.every(({value}) => value) ? moved(trees, state.flame === 'stack' ? new Set(sides.flatMap((side) => side.raw.nameless)) : null) : null;
    return {trees, roots, path, moves, most: Math.max(...roots.map((root) => root?.value ?? 0)), depth: Math.max(1, ...roots.map((root) => (root ? depthOf(root, root.value * LEAST) : 1)))};
  },
  draw(side, state, {width, scale, place, set, compared}) {
    const {unit, label} = WEIGHTS[state.weight];
    const root = scale.roots[place];
    const total = scale.trees[place].value;
    const status = h('p.note.status', {'aria-live': 'polite'});
    const found = side.select(state);
    const notes = noted(side, state, found);
    if (!root || !root.value) return [h('p.note', {}, `Nothing to draw: ${nothing(found.total, state.weight, scale.path.length)}.`), ...notes];
    // In a comparison, what a frame's share in all has gained or lost; else a colour by name.
    const host = h('div.flame', {role: 'tree', 'aria-label': `Flame graph by ${BY.find(([key]) => key === state.flame)[1]}, width is ${label}, ${side.name}`, style: {height: `${(scale.depth + scale.path.length) * ROW}px`}});
    let narrow = 0;
    const place_ = (node, left, depth, path) => {
      const part = node.value / scale.most;
      if (part < LEAST) {
        narrow++;
        return;
      }
      const name = node.name;
      const key = path.join('\u0000');
      const move = scale.moves?.get(key);
      const shown = format.printable(name);
      const facts = `${format.text(node.value, unit)}, ${format.share(total ? node.value / total : null)} of all${move ? `; ${told(move)}` : ''}`;
      const sign = !move ? '' : move.by === null ? '? ' : Math.abs(move.by) < MOVED ? '' : move.by > 0 ? '▲ ' : '▼ ';
      const element = h('div.frame', {
        role: 'treeitem', tabindex: -1, 'aria-level': depth + 1, 'aria-label': `${shown}: ${facts}`, title: `${shown}\n${facts}`, 'data-key': `flame-${side.index}-${path.join('/')}`, 'data-name': shown, 'data-value': node.value,
        style: {left: `${100 * left}%`, width: `${100 * part}%`, top: `${depth * ROW}px`, background: move ? change(move.by) : colour(name)},
        onclick: () => set({zoom: path}),
        onfocus: () => { status.textContent = `${shown}: ${facts}`; },
        onpointerenter: () => { status.textContent = `${shown}: ${facts}`; },
      }, part * width > 26 ? `${sign}${shown}` : '');
      host.append(element);
      let at = left;
      for (const child of node.children) {
        place_(child, at, depth + 1, [...path, child.name]);
        at += child.value / scale.most;
      }
    };
    // What is zoomed to stands below its callers, which lead back.
    for (let depth = 0; depth < scale.path.length; depth++) {
      const path = scale.path.slice(0, depth);
      const node = find(scale.trees[place], path);
      host.append(h('div.frame.caller', {role: 'treeitem', tabindex: -1, 'aria-level': depth + 1, 'data-key': `flame-${side.index}-${path.join('/')}`, style: {left: 0, width: '100%', top: `${depth * ROW}px`}, onclick: () => set({zoom: path}),
        onfocus: () => { status.textContent = `back to ${format.printable(node?.name ?? '')}`; }}, format.printable(node?.name ?? '')));
    }
    place_(root, 0, scale.path.length, scale.path);
    keys(host, state, scale.path, set);
    status.textContent = narrow ? `${format.count(narrow)} frames are too narrow to be drawn; zoom in to see them.` : '';
    return [host, status, ...notes, compared && side.index === 1 ? (scale.moves ? changeLegend([...scale.moves.values()].some(({by}) => by === null)) : h('p.note', {}, 'What has changed is not told: the base has nothing to compare with.')) : null].filter(Boolean);
  },
};

function tree(side, state) {
  const found = side.select(state);
  const root = {name: 'all syncs', value: 0, children: new Map()};
  const put = (frames, value) => {
    if (!value) return;
    let node = root;
    node.value += value;
    for (const frame of frames) {
      if (!node.children.has(frame)) node.children.set(frame, {name: frame, value: 0, children: new Map()});
      node = node.children.get(frame);
      node.value += value;
    }
  };
  if (state.flame === 'stack') for (const [stack, sums] of found.stacks) put(stack.split(';'), sums[state.weight]);
  else {
    const sums = state.flame === 'file' ? found.files : found.threads;
    const entries = state.flame === 'file' ? side.files : side.threads;
    for (const [number, one] of sums) {
      if (state[state.flame] != null && !found.test[state.flame](number)) continue;
      const entry = entries[number];
      const frames = entry.key === OTHERS ? [entry.label] : state.flame === 'file' ? folders(entry.label) : [entry.comm, entry.label];
      put(frames, one[WEIGHTS[state.weight].unit === 'ns' ? `${state.weight}_ns` : state.weight]);
    }
  }
  return sorted(root);
}

function folders(path) {
  if (!path.startsWith('/')) return [path];
  return path.slice(1).split('/').map((part, index, parts) => (index < parts.length - 1 ? `${part}/` : part));
}

function sorted(node) {
  const children = [...node.children.values()].map(sorted).sort((a, b) => b.value - a.value || (a.name < b.name ? -1 : 1));
  return {...node, children};
}

function find(root, path) {
  return path.reduce((node, name) => node?.children.find((child) => child.name === name), root);
}

function depthOf(node, least) {
  return 1 + Math.max(0, ...node.children.filter((child) => child.value >= least).map((child) => depthOf(child, least)));
}

// What each frame's part in all has gained or lost: `by`, in parts of all; null where it cannot be told, `least` where it is a bound.
//
// A function has a name in one run and none in the other by luck. So a frame may be any other that differs from it only where one of the
// two, or of their callers, lacks a name (Python's syncline/frames.py has the same rule), and its part lies between bounds.
function moved(trees, nameless) {
  const totals = trees.map(({value}) => value || 1);
  const moves = new Map();
  const others = nameless ? trees.map((root) => root.children.find(({name}) => name === OTHER_STACKS)?.value ?? 0) : [0, 0];
  const walk = (key, pair, path, partners) => {
    const own = pair.map((node) => node?.value ?? 0);
    const put = path.length && path[0] !== OTHER_STACKS;
    const more = own.map((_, side) => partners.reduce((sum, one) => sum + (one[side]?.value ?? 0), 0) + (put ? others[side] : 0));
    moves.set(key, change_(own, more, totals));
    const below = called(pair);
    const families = nameless?.size ? [below, ...partners.map(called)] : [];
    for (const [name, children] of below) {
      const rest = families.flatMap((family) => [...family].flatMap(([other, found]) => (found !== children && mayBeOne(name, other, nameless) ? [found] : [])));
      walk(path.length ? `${key}\u0000${name}` : name, children, [...path, name], rest);
    }
  };
  walk('', trees, [], []);
  return moves;
}

function change_(own, more, totals) {
  const part = (side, extra) => (own[side] + (extra ? more[side] : 0)) / totals[side];
  const by = part(1, false) - part(0, false);
  const none = (value) => Math.abs(value) < 1e-9;
  if (!more[0] && !more[1]) return {by};
  // No difference is seen, wherever the names are missing.
  if (none(by) && none(more[1] / totals[1] - more[0] / totals[0])) return {by: 0};
  const [least, most] = [part(1, false) - part(0, true), part(1, true) - part(0, false)];
  if (least > 0) return {by: least, least: true};
  return most < 0 ? {by: most, least: true} : {by: null};
}

function told({by, least}) {
  if (by === null) return 'if its part of all has changed cannot be told, as names of functions are missing';
  return `in the new ${least ? 'at least ' : ''}${format.points(by)} of all against the base`;
}

// The frames below a frame of both sides, by name.
function called(pair) {
  const found = new Map();
  pair.forEach((node, side) => node?.children.forEach((child) => {
    if (!found.has(child.name)) found.set(child.name, [undefined, undefined]);
    found.get(child.name)[side] = child;
  }));
  return found;
}

function mayBeOne(a, b, nameless) {
  if (a === b) return true;
  const [bare, other] = [nameless.has(a), nameless.has(b)];
  // Words such as [no stack] stand for no function.
  if ((!bare && a.startsWith('[')) || (!other && b.startsWith('['))) return false;
  return a === ADDRESS || b === ADDRESS || bare !== other;
}

function colour(name) {
  let hash = 0;
  for (const char of name) hash = (hash * 31 + char.codePointAt(0)) >>> 0;
  return `hsl(${18 + (hash % 38)} var(--flame-s) calc(var(--flame-l) + ${(hash >>> 8) % 9}%))`;
}

function change(moved) {
  if (moved === null) return 'repeating-linear-gradient(135deg, var(--same) 0 6px, var(--open) 6px 12px)';
  const much = Math.min(1, Math.sqrt(Math.abs(moved) / 0.25));
  return Math.abs(moved) < MOVED / 10 ? 'var(--same)' : `color-mix(in oklab, var(${moved > 0 ? '--more' : '--less'}) ${Math.round(15 + 55 * much)}%, var(--same))`;
}

function changeLegend(open) {
  return h('ul.legend', {}, h('li', {}, h('span.swatch', {style: {background: change(0.2)}}), '▲ in the new a larger part of all'), h('li', {}, h('span.swatch', {style: {background: change(-0.2)}}), '▼ a smaller part'), h('li', {}, h('span.swatch', {style: {background: 'var(--same)'}}), 'the same'),
    open ? h('li', {}, h('span.swatch', {style: {background: change(null)}}), '? cannot be told: names are missing') : null);
}

// Why there is no frame: a sum of 0 is known, and not the same as one that is not.
function nothing(total, weight, zoomed) {
  const {label, unit} = WEIGHTS[weight];
  if (zoomed) return `${label}, below this frame known of no sync`;
  return total.known(weight) ? `${label}, ${format.text(0, unit)} in all of ${format.count(total.known(weight))} syncs` : `${label}, known of no sync`;
}

function noted(side, state, found) {
  const notes = [];
  const known = found.total.known(state.weight);
  if (known && known < found.total.syncs) notes.push(`Not known (${WEIGHTS[state.weight].label}) of ${format.count(found.total.syncs - known)} of ${format.count(found.total.syncs)} syncs, which add nothing.`);
  if (state.flame === 'stack' && found.inexact.has('stacks')) notes.push(`≈ Filtered by ${found.stacksBy} alone: which stacks two filters share this page does not hold. Exactly: the SQL above.`);
  return notes.length ? [h('p.note', {}, notes.join(' '))] : [];
}

// One frame is in the order of tabs; arrows move it.
function keys(host, state, path, set) {
  const frames = [...host.children];
  const entry = frames[path.length] ?? frames[0];
  if (entry) entry.tabIndex = 0;
  const box = (frame) => [parseFloat(frame.style.top), parseFloat(frame.style.left), parseFloat(frame.style.width)];
  host.addEventListener('keydown', (event) => {
    const frame = event.target.closest('.frame');
    if (!frame) return;
    const [top, left, wide] = box(frame);
    const middle = left + wide / 2;
    const row = (at) => frames.filter((one) => box(one)[0] === at);
    const over = (one) => box(one)[1] <= middle && middle <= box(one)[1] + box(one)[2];
    const next = {
      ArrowUp: () => row(top - ROW).find(over) ?? row(top - ROW)[0],
      ArrowDown: () => row(top + ROW).find((one) => box(one)[1] >= left - 1e-6 && box(one)[1] < left + wide),
      ArrowLeft: () => row(top).filter((one) => box(one)[1] < left).at(-1),
      ArrowRight: () => row(top).find((one) => box(one)[1] > left),
      Home: () => frames[0],
    }[event.key];
    if (next) {
      event.preventDefault();
      const to = next();
      if (!to) return;
      for (const one of frames) one.tabIndex = -1;
      to.tabIndex = 0;
      to.focus();
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      frame.click();
    } else if ((event.key === 'Backspace' || event.key === 'Escape') && path.length) {
      event.preventDefault();
      event.stopPropagation();
      set({zoom: path.slice(0, -1)});
    }
  });
}
