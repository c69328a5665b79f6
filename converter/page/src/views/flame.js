// Flame graphs of the number, latency or amount of syncs, by call stack, file or thread.

import * as format from '../format.js';
import {choice, h} from '../dom.js';
import {OTHERS, OTHER_STACKS, availableOptions} from '../model.js';

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
// Minimum width of a frame that is drawn, as a part of the whole width.
const MIN_WIDTH = 0.0015;
// Minimum change of a frame's share that is marked.
const MIN_CHANGE = 0.01;
// Placeholder of syncline/frames.py for an address.
const ADDRESS = '[address]';

export const flameView = {
  id: 'flame',
  title: 'Flame graph',
  help: 'The width of a frame is its weight, summed over its syncs. The outermost frame is on top. Click a frame, or press Enter, to zoom in; Escape or Backspace zooms out; the arrow keys move between frames.',
  controls: (state, set, sides) => [
    choice('Width:', availableOptions(sides, Object.entries(WEIGHTS)).map(([key, {label}]) => [key, label]), state.weight, (weight) => set({weight})),
    choice('by', BY, state.flame, (flame) => set({flame, zoom: null})),
  ],
  scale(sides, state) {
    const trees = sides.map((side) => tree(side, state));
    // Both sides zoom to the same frame, or to its nearest caller that still exists.
    const path = (state.zoom ?? []).reduce((kept, name, depth) => (kept.length === depth && trees.some((root) => find(root, [...kept, name])) ? [...kept, name] : kept), []);
    const roots = trees.map((root) => find(root, path));
    // Shares, and so their changes, are defined only if both sides have a weight.
    const changes = sides.length > 1 && trees.every(({value}) => value) ? changesOf(trees, state.flame === 'stack' ? new Set(sides.flatMap((side) => side.raw.nameless)) : null) : null;
    return {trees, roots, path, changes, max: Math.max(...roots.map((root) => root?.value ?? 0)), depth: Math.max(1, ...roots.map((root) => (root ? depthOf(root, root.value * MIN_WIDTH) : 1)))};
  },
  draw(side, state, {width, scale, place, set, compared}) {
    const {unit, label} = WEIGHTS[state.weight];
    const root = scale.roots[place];
    const total = scale.trees[place].value;
    const status = h('p.note.status', {'aria-live': 'polite'});
    const found = side.select(state);
    const notes = notesOf(side, state, found);
    if (found.byBucket && (state.flame === 'stack' || (state.weight !== 'syncs' && state.weight !== 'bytes'))) return [h('p.note', {}, 'Not known for a selection by latency or amount: this page holds only counts. The number of syncs and their bytes are known by file and by thread.')];
    if (!root || !root.value) return [h('p.note', {}, `Nothing to draw: ${whyEmpty(found.total, state.weight, scale.path.length)}.`), ...notes];
    const host = h('div.flame', {role: 'tree', 'aria-label': `Flame graph by ${BY.find(([key]) => key === state.flame)[1]}, width is ${label}, ${side.name}`, style: {height: `${(scale.depth + scale.path.length) * ROW}px`}});
    let narrow = 0;
    const drawFrame = (node, left, depth, path) => {
      const part = node.value / scale.max;
      if (part < MIN_WIDTH) {
        narrow++;
        return;
      }
      const name = node.name;
      const key = path.join('\u0000');
      const change = scale.changes?.get(key);
      const shown = format.printable(name);
      const facts = `${format.text(node.value, unit)}, ${format.share(total ? node.value / total : null)} of all${change ? `; ${describeChange(change)}` : ''}`;
      const sign = !change ? '' : change.by === null ? '? ' : Math.abs(change.by) < MIN_CHANGE ? '' : change.by > 0 ? '▲ ' : '▼ ';
      const element = h('div.frame', {
        role: 'treeitem', tabindex: -1, 'aria-level': depth + 1, 'aria-label': `${shown}: ${facts}`, title: `${shown}\n${facts}`, 'data-key': `flame-${side.index}-${path.join('/')}`, 'data-name': shown, 'data-value': node.value,
        style: {left: `${100 * left}%`, width: `${100 * part}%`, top: `${depth * ROW}px`, background: change ? changeColour(change.by) : nameColour(name)},
        onclick: () => set({zoom: path}),
        onfocus: () => { status.textContent = `${shown}: ${facts}`; },
        onpointerenter: () => { status.textContent = `${shown}: ${facts}`; },
      }, part * width > 26 ? `${sign}${shown}` : '');
      host.append(element);
      let at = left;
      for (const child of node.children) {
        drawFrame(child, at, depth + 1, [...path, child.name]);
        at += child.value / scale.max;
      }
    };
    // Above the zoomed frame are its callers. A click on one zooms out to it.
    for (let depth = 0; depth < scale.path.length; depth++) {
      const path = scale.path.slice(0, depth);
      const node = find(scale.trees[place], path);
      host.append(h('div.frame.caller', {role: 'treeitem', tabindex: -1, 'aria-level': depth + 1, 'data-key': `flame-${side.index}-${path.join('/')}`, style: {left: 0, width: '100%', top: `${depth * ROW}px`}, onclick: () => set({zoom: path}),
        onfocus: () => { status.textContent = `zoom out to ${format.printable(node?.name ?? '')}`; }}, format.printable(node?.name ?? '')));
    }
    drawFrame(root, 0, scale.path.length, scale.path);
    keys(host, state, scale.path, set);
    status.textContent = narrow ? `${format.count(narrow)} frames are too narrow to draw; zoom in to see them.` : '';
    return [host, status, ...notes, compared && side.index === 1 ? (scale.changes ? changeLegend([...scale.changes.values()].some(({by}) => by === null)) : h('p.note', {}, 'Changes are not shown: one side has no weight to compare.')) : null].filter(Boolean);
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

function depthOf(node, minValue) {
  return 1 + Math.max(0, ...node.children.filter((child) => child.value >= minValue).map((child) => depthOf(child, minValue)));
}

// Returns the change of each frame's share: `by`, as a part of the whole; null if it is uncertain. `isBound`: the change is at least `by`.
//
// Whether a function has a name can differ between runs by chance. So a frame may be the same as any other that differs from it only where
// one of the two, or of their callers, has no name (syncline/frames.py has the same rule), and its share has bounds.
function changesOf(trees, nameless) {
  const totals = trees.map(({value}) => value || 1);
  const changes = new Map();
  const others = nameless ? trees.map((root) => root.children.find(({name}) => name === OTHER_STACKS)?.value ?? 0) : [0, 0];
  const walk = (key, pair, path, partners) => {
    const own = pair.map((node) => node?.value ?? 0);
    const put = path.length && path[0] !== OTHER_STACKS;
    const more = own.map((_, side) => partners.reduce((sum, one) => sum + (one[side]?.value ?? 0), 0) + (put ? others[side] : 0));
    changes.set(key, changeOf(own, more, totals));
    const below = calleesOf(pair);
    const families = nameless?.size ? [below, ...partners.map(calleesOf)] : [];
    for (const [name, children] of below) {
      const rest = families.flatMap((family) => [...family].flatMap(([other, found]) => (found !== children && mayBeSame(name, other, nameless) ? [found] : [])));
      walk(path.length ? `${key}\u0000${name}` : name, children, [...path, name], rest);
    }
  };
  walk('', trees, [], []);
  return changes;
}

function changeOf(own, more, totals) {
  const part = (side, extra) => (own[side] + (extra ? more[side] : 0)) / totals[side];
  const by = part(1, false) - part(0, false);
  const isZero = (value) => Math.abs(value) < 1e-9;
  if (!more[0] && !more[1]) return {by};
  // Neither the frame nor the frames that may be the same have changed.
  if (isZero(by) && isZero(more[1] / totals[1] - more[0] / totals[0])) return {by: 0};
  const [lowest, highest] = [part(1, false) - part(0, true), part(1, true) - part(0, false)];
  if (lowest > 0) return {by: lowest, isBound: true};
  return highest < 0 ? {by: highest, isBound: true} : {by: null};
}

function describeChange({by, isBound}) {
  if (by === null) return 'change unknown: names of functions are missing';
  return `share changed by ${isBound ? 'at least ' : ''}${format.points(by)}`;
}

// Returns the callees of a frame by name, each as [base, new].
function calleesOf(pair) {
  const found = new Map();
  pair.forEach((node, side) => node?.children.forEach((child) => {
    if (!found.has(child.name)) found.set(child.name, [undefined, undefined]);
    found.get(child.name)[side] = child;
  }));
  return found;
}

function mayBeSame(a, b, nameless) {
  if (a === b) return true;
  const [aIsNameless, bIsNameless] = [nameless.has(a), nameless.has(b)];
  // Placeholders such as [no stack] are not functions.
  if ((!aIsNameless && a.startsWith('[')) || (!bIsNameless && b.startsWith('['))) return false;
  return a === ADDRESS || b === ADDRESS || aIsNameless !== bIsNameless;
}

function nameColour(name) {
  let hash = 0;
  for (const char of name) hash = (hash * 31 + char.codePointAt(0)) >>> 0;
  return `hsl(${18 + (hash % 38)} var(--flame-s) calc(var(--flame-l) + ${(hash >>> 8) % 9}%))`;
}

function changeColour(by) {
  if (by === null) return 'repeating-linear-gradient(135deg, var(--same) 0 6px, var(--open) 6px 12px)';
  const strength = Math.min(1, Math.sqrt(Math.abs(by) / 0.25));
  return Math.abs(by) < MIN_CHANGE / 10 ? 'var(--same)' : `color-mix(in oklab, var(${by > 0 ? '--more' : '--less'}) ${Math.round(15 + 55 * strength)}%, var(--same))`;
}

function changeLegend(hasUnknown) {
  return h('ul.legend', {}, h('li', {}, h('span.swatch', {style: {background: changeColour(0.2)}}), '▲ larger share in new'), h('li', {}, h('span.swatch', {style: {background: changeColour(-0.2)}}), '▼ smaller share in new'), h('li', {}, h('span.swatch', {style: {background: 'var(--same)'}}), 'same share'),
    hasUnknown ? h('li', {}, h('span.swatch', {style: {background: changeColour(null)}}), '? unknown: names are missing') : null);
}

// Explains why there is no frame: the sum is 0, or the value is not known.
function whyEmpty(total, weight, zoomed) {
  const {label, unit} = WEIGHTS[weight];
  if (zoomed) return `${label} is not known for any sync below this frame`;
  return total.known(weight) ? `${label} is ${format.text(0, unit)} in all of ${format.counted(total.known(weight), 'sync')}` : `${label} is not known for any sync`;
}

function notesOf(side, state, found) {
  const notes = [];
  const known = found.total.known(state.weight);
  if (known && known < found.total.syncs) notes.push(`${WEIGHTS[state.weight].label} is not known for ${format.count(found.total.syncs - known)} of ${format.counted(found.total.syncs, 'sync')}, which are not included.`);
  if (state.flame === 'stack' && found.inexact.has('stacks')) notes.push(`≈ Filtered only by ${found.stacksBy}: this page does not hold stacks by two filters at once. The SQL above gives the exact figures.`);
  return notes.length ? [h('p.note', {}, notes.join(' '))] : [];
}

// Keyboard control: one frame is in the tab order, and the arrow keys move it.
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
