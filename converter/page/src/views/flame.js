// Flame graphs: what was waited for or written, by code, by file or by thread.

import * as format from '../format.js';
import {choice, h} from '../dom.js';
import {OTHERS} from '../model.js';

const WEIGHTS = {
  syncs: {label: 'number of syncs', unit: 'count'},
  syscall: {label: 'syscall latency', unit: 'ns'},
  writeback: {label: 'writeback latency', unit: 'ns'},
  bytes: {label: 'bytes written back', unit: 'bytes'},
};
const BY = [['stack', 'call stack'], ['file', 'file path'], ['thread', 'thread']];
const ROW = 20;
// Of the width: what is narrower is not drawn.
const LEAST = 0.0015;
const MOVED = 0.01;

export const flameView = {
  id: 'flame',
  title: 'Flame graph',
  help: 'Width is the weight, summed over the syncs below a frame; the outermost frame is on top. A click, or Enter, makes a frame fill the width; arrows move between frames, Escape or Backspace leads back.',
  controls: (state, set) => [
    choice('Width is', Object.entries(WEIGHTS).map(([key, {label}]) => [key, label]), state.weight, (weight) => set({weight})),
    choice('by', BY, state.flame, (flame) => set({flame, zoom: null})),
  ],
  scale(sides, state) {
    const trees = sides.map((side) => tree(side, state));
    // The same frame is zoomed to on both sides; one that is no longer there is left.
    const path = (state.zoom ?? []).reduce((kept, name, depth) => (kept.length === depth && trees.some((root) => find(root, [...kept, name])) ? [...kept, name] : kept), []);
    const roots = trees.map((root) => find(root, path));
    return {trees, roots, path, most: Math.max(...roots.map((root) => root?.value ?? 0)), depth: Math.max(1, ...roots.map((root) => (root ? depthOf(root, root.value * LEAST) : 1)))};
  },
  draw(side, state, {width, scale, place, set, compared}) {
    const {unit, label} = WEIGHTS[state.weight];
    const root = scale.roots[place];
    const total = scale.trees[place].value;
    const status = h('p.note.status', {'aria-live': 'polite'});
    const found = side.select(state);
    const notes = noted(side, state, found);
    if (!root || !root.value) return [h('p.note', {}, `Nothing to draw: no sync with a known ${label}${scale.path.length ? ' below this frame' : ''}.`), ...notes];
    // In a comparison, what a frame's share in all has gained or lost; else a colour by name.
    const [before, after] = compared ? scale.trees.map(shares) : [];
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
      const moved = compared ? (after.get(key) ?? 0) - (before.get(key) ?? 0) : null;
      const shown = format.printable(name);
      const facts = `${format.text(node.value, unit)}, ${format.share(total ? node.value / total : null)} of all${moved === null ? '' : `, in the new ${moved > 0 ? '+' : ''}${(100 * moved).toFixed(1)} % of all against the base`}`;
      const sign = moved === null || Math.abs(moved) < MOVED ? '' : moved > 0 ? '▲ ' : '▼ ';
      const element = h('div.frame', {
        role: 'treeitem', tabindex: -1, 'aria-level': depth + 1, 'aria-label': `${shown}: ${facts}`, title: `${shown}\n${facts}`, 'data-key': `flame-${side.index}-${path.join('/')}`, 'data-name': shown, 'data-value': node.value,
        style: {left: `${100 * left}%`, width: `${100 * part}%`, top: `${depth * ROW}px`, background: moved === null ? colour(name) : change(moved)},
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
    return [host, status, ...notes, compared && side.index === 1 ? changeLegend() : null].filter(Boolean);
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
      put(frames, {syncs: one.syncs, syscall: one.syscall_ns, writeback: one.writeback_ns, bytes: one.bytes}[state.weight]);
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

function shares(root) {
  const found = new Map();
  const walk = (node, path) => {
    found.set(path.join('\u0000'), root.value ? node.value / root.value : 0);
    for (const child of node.children) walk(child, [...path, child.name]);
  };
  walk(root, []);
  return found;
}

function colour(name) {
  let hash = 0;
  for (const char of name) hash = (hash * 31 + char.codePointAt(0)) >>> 0;
  return `hsl(${18 + (hash % 38)} var(--flame-s) calc(var(--flame-l) + ${(hash >>> 8) % 9}%))`;
}

function change(moved) {
  const much = Math.min(1, Math.sqrt(Math.abs(moved) / 0.25));
  return Math.abs(moved) < MOVED / 10 ? 'var(--same)' : `color-mix(in oklab, var(${moved > 0 ? '--more' : '--less'}) ${Math.round(15 + 55 * much)}%, var(--same))`;
}

function changeLegend() {
  return h('ul.legend', {}, h('li', {}, h('span.swatch', {style: {background: change(0.2)}}), '▲ in the new a larger part of all'), h('li', {}, h('span.swatch', {style: {background: change(-0.2)}}), '▼ a smaller part'), h('li', {}, h('span.swatch', {style: {background: 'var(--same)'}}), 'the same'));
}

function noted(side, state, found) {
  const notes = [];
  const known = {syscall: 'syscalls', writeback: 'writebacks'}[state.weight];
  if (known && found.total[known] < found.total.syncs) notes.push(`Of ${format.count(found.total.syncs - found.total[known])} of ${format.count(found.total.syncs)} syncs the ${WEIGHTS[state.weight].label} is not known; they add nothing.`);
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
