// Latency against amount, one point per sync.

import * as Plot from '@observablehq/plot';
import {symbol as d3symbol, symbolsFill} from 'd3';
import {LATENCY} from '../buckets.js';
import * as format from '../format.js';
import {choice, h} from '../dom.js';
import {KINDS, kindsOf} from './histogram.js';
import {plot} from './plot.js';
import {rectangle} from './rectangle.js';

const MAX_POINTS = 4000;
const COLOURS = 6;
const RANGES = [[0, '0 ranges'], [1, '1 range'], [2, '2 ranges'], [4, '3–4 ranges'], [8, '5–8 ranges'], [Infinity, '9 or more']];
const NO_RANGES = 'not recorded';

const BY = {
  ranges: {label: 'number of ranges', groups: () => [...RANGES.map(([, name]) => name), NO_RANGES], of: (point) => (point.ranges == null ? NO_RANGES : RANGES.find(([max]) => point.ranges <= max)[1])},
  file: {label: 'file', groups: (sides, points) => largest(points, (point) => point.file.label), of: (point) => point.file.label},
  op: {label: 'syscall', groups: (sides, points) => largest(points, (point) => point.op), of: (point) => point.op},
};
const REST = 'all others';

export const scatterView = {
  id: 'scatter',
  title: 'Latency against amount',
  help: 'One point per sync that was recorded from start to end. Both axes are logarithmic; a value of 0 is left of or below the dashed line. The number of ranges (separate runs of file offsets) often explains the groups. Drag a rectangle to select.',
  missing: (sides) => (!sides.some((side) => side.knows('amount')) ? 'no sync has a known amount' : kindsOf(sides).length ? null : 'no latency is known'),
  controls: (state, set, sides) => [
    choice('Show', kindsOf(sides), state.latency, (latency) => set({latency})),
    choice('colour and shape by', Object.entries(BY).map(([key, {label}]) => [key, label]), state.by, (by) => set({by})),
  ],
  scale(sides, state) {
    const drawn = sides.map((side) => pointsOf(side, state));
    const all = drawn.flatMap(({points}) => points);
    const span = (of) => {
      const values = all.map(of).filter((value) => value > 0);
      const low = values.length ? values.reduce((a, b) => Math.min(a, b)) : 1;
      const high = values.length ? values.reduce((a, b) => Math.max(a, b)) : 10;
      return {low: low / 1.3, high: Math.max(high, low * 4) * 1.3, zero: all.some((point) => of(point) === 0)};
    };
    const by = BY[state.by];
    let groups = by.groups(sides, all).filter((name, _, list) => list.length <= COLOURS || list.indexOf(name) < COLOURS - 1);
    const named = new Set(groups);
    const rest = all.some((point) => !named.has(by.of(point)));
    if (state.by === 'ranges') groups = groups.filter((name) => all.some((point) => by.of(point) === name));
    return {drawn, x: span((point) => point.bytes), y: span((point) => point.value), groups: rest ? [...groups, REST] : groups, named, start: state.by === 'ranges' ? Math.max(0, RANGES.findIndex(([, name]) => name === groups[0])) : 0};
  },
  draw(side, state, {width, scale, place, set}) {
    const {points, all, of, longest} = scale.drawn[place];
    const {x, y, groups} = scale;
    const by = BY[state.by];
    const name = KINDS.find(([key]) => key === state.latency)[1];
    const height = Math.max(260, Math.min(420, width * 0.55));
    if (!points.length) return [h('p.note', {}, side.counted && of ? `None of the ${format.count(of)} selected syncs is in the sample (1 of ${format.count(side.raw.limits.every)}) that this page holds. The histograms count all of them.` : `No selected sync was recorded from start to end with a known ${name}.`)];
    const groupOf = (point) => (scale.named.has(by.of(point)) ? by.of(point) : REST);
    // 0 has no logarithm and is drawn a step below the smallest value.
    const zeroX = x.low / (x.high / x.low) ** 0.07;
    const zeroY = y.low / (y.high / y.low) ** 0.09;
    const colours = groups.map((group, index) => (group === REST ? 'var(--muted)' : `var(--c${((index + scale.start) % COLOURS) + 1})`));
    const symbols = groups.map((group, index) => (group === REST ? symbolsFill[6] : symbolsFill[(index + scale.start) % COLOURS]));
    const bounds = {x: powers(x, 2, (width - 80) / 60).map(Math.log10), y: powers(y, 10, height / 30).map(Math.log10)};
    const chart = plot({
      width, height, marginBottom: 48, marginTop: 24,
      ariaLabel: `${name} against bytes written back, ${side.name}: ${points.length} points`,
      // Values are logarithms on a linear scale: Plot's logarithmic scale omits labels.
      x: {type: 'linear', domain: [x.zero ? zeroX / 1.2 : x.low, x.high].map(Math.log10)},
      y: {type: 'linear', domain: [y.zero ? zeroY / 1.2 : y.low, y.high].map(Math.log10)},
      color: {domain: groups, range: colours},
      symbol: {domain: groups, range: symbols},
      marks: [
        Plot.gridX(bounds.x, {stroke: 'var(--grid)', strokeOpacity: 1}),
        Plot.gridY(bounds.y, {stroke: 'var(--grid)', strokeOpacity: 1}),
        Plot.axisX(bounds.x, {tickFormat: (log) => format.bytes(10 ** log), label: 'bytes written back for the sync (logarithmic)', labelAnchor: 'center', labelArrow: 'none', labelOffset: 40}),
        Plot.axisY(bounds.y, {tickFormat: (log) => format.ns(10 ** log), label: `${name} (logarithmic)`, labelArrow: 'none'}),
        x.zero ? [Plot.axisX([Math.log10(zeroX)], {tickFormat: () => '0 B', label: null}), Plot.ruleX([Math.log10(x.low)], {stroke: 'var(--line)', strokeDasharray: '2 3'})] : null,
        y.zero ? [Plot.axisY([Math.log10(zeroY)], {tickFormat: () => '0 ns', label: null}), Plot.ruleY([Math.log10(y.low)], {stroke: 'var(--line)', strokeDasharray: '2 3'})] : null,
        Plot.dot(points, {
          x: (point) => Math.log10(point.bytes || zeroX), y: (point) => Math.log10(point.value || zeroY), fill: groupOf, symbol: groupOf, r: points.length > 800 ? 2.5 : 3.5, fillOpacity: (point) => (point.isOut ? 0.15 : points.length > 800 ? 0.6 : 0.8),
          title: (point) => `${format.ns(point.value)}, ${format.bytes(point.bytes)}${point.ranges == null ? '' : ` in ${format.count(point.ranges)} ${point.ranges === 1 ? 'range' : 'ranges'}`}\n${format.printable(point.file.label)}\n${format.printable(point.op)} of ${format.printable(point.thread.label)}\nat ${format.ns(point.since)}`,
          tip: {fill: 'var(--card)', stroke: 'var(--line)', lineWidth: 40},
        }),
      ],
    });
    const drawn = points.length === all ? '' : `${format.count(points.length)} points drawn`;
    let note = `${format.count(of)} selected syncs${state.waited || state.wrote ? ' (those outside the selected ranges are faint)' : ''}`;
    if (side.counted) note += `. Drawn is a sample: one of every ${format.count(side.raw.limits.every)}, and ${format.count(longest)} of the longest. The histograms count all of them.`;
    else if (drawn) note += `; ${drawn}, one of every ${format.count(Math.ceil(all / points.length))}, so that points do not hide each other.`;
    else note += `; ${format.count(points.length)} of them, recorded from start to end, are drawn.`;
    if (side.counted) note += ' A rectangle selects by latency only: the page has no counts by latency and amount together.';
    const [sx, sy] = [chart.scale('x'), chart.scale('y')];
    const host = rectangle(chart, {
      x: sx, y: sy, selected: outline(state, sx, sy, x, y),
      select(drawn) {
        if (!drawn) return set({waited: null, wrote: null});
        // Left of, or below, the dashed line is 0.
        const value = (log, {low, zero}, up) => (zero && log < Math.log10(low) ? (up ? 1 : 0) : up ? Math.ceil(10 ** log) : Math.floor(10 ** log));
        const [from, to] = [value(sy.invert(drawn[3]), y, false), value(sy.invert(drawn[2]), y, true)];
        if (side.counted) {
          const bucket = (of) => LATENCY.of(Math.max(1, of));
          return set({waited: {kind: state.latency, from: from < 1 ? 0 : LATENCY.lower(bucket(from)), to: to <= 1 ? 1 : LATENCY.upper(bucket(to))}, wrote: null});
        }
        set({waited: {kind: state.latency, from, to}, wrote: {from: value(sx.invert(drawn[0]), x, false), to: value(sx.invert(drawn[1]), x, true)}});
      },
    });
    return [legend(groups, colours, symbols), host, h('p.note', {}, note)];
  },
};

// The selected ranges of latency and amount, as pixels.
function outline(state, sx, sy, x, y) {
  const waited = state.waited?.kind === state.latency ? state.waited : null;
  if (!waited && !state.wrote) return null;
  const place = (scale, {low}, value, end) => {
    const [least, greatest] = [Math.min(...scale.domain), Math.max(...scale.domain)];
    return scale.apply(value == null ? (end ? greatest : least) : value < low ? (end && value > 0 ? Math.log10(low) : least) : Math.min(greatest, Math.log10(value)));
  };
  return [place(sx, x, state.wrote?.from, false), place(sx, x, state.wrote?.to, true), place(sy, y, waited?.to, true), place(sy, y, waited?.from, false)];
}

function pointsOf(side, state) {
  const found = side.select(state);
  const isRanged = state.waited || state.wrote;
  let points = found.points.map((row) => ({...side.point(row), isOut: Boolean(isRanged) && !side.inRanges(state, row)})).map((point) => ({...point, value: point[state.latency]})).filter((point) => point.whole && point.value != null && point.bytes != null);
  const all = points.length;
  const every = Math.ceil(all / MAX_POINTS) || 1;
  if (!side.counted && every > 1) points = points.filter((_, place) => place % every === 0);
  return {points, all: side.counted ? points.length : all, of: found.pointsOf, longest: found.longest};
}

function largest(points, of) {
  const counts = new Map();
  for (const point of points) counts.set(of(point), (counts.get(of(point)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
}

// Returns powers of `base` in a span, at most as many as there is room for.
function powers({low, high}, base, room) {
  const from = Math.ceil(Math.log(low) / Math.log(base) - 1e-9);
  const to = Math.floor(Math.log(high) / Math.log(base) + 1e-9);
  const every = Math.max(1, Math.ceil((to - from + 1) / Math.max(2, room)));
  const found = [];
  for (let power = from; power <= to; power++) if (power % every === 0) found.push(base ** power);
  if (base === 10 && found.length <= 2) return found.flatMap((value) => [value, value * 2, value * 5]).concat(found.map((value) => value / 2), found.map((value) => value / 5)).filter((value, index, list) => value >= low && value <= high && list.indexOf(value) === index).sort((a, b) => a - b);
  return found;
}

function legend(groups, colours, symbols) {
  return h('ul.legend', {}, groups.map((group, index) => {
    const shape = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    shape.setAttribute('viewBox', '-8 -8 16 16');
    shape.setAttribute('aria-hidden', 'true');
    const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    path.setAttribute('d', d3symbol(symbols[index], 70)());
    path.setAttribute('style', `fill:${colours[index]}`);
    shape.append(path);
    return h('li', {title: format.printable(group)}, shape, h('span.middle', {}, format.printable(group)));
  }));
}
