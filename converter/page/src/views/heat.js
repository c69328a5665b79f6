// Latency over time: a point for each sync, or a map of counts if there are many. A rectangle selects by time and latency.

import * as Plot from '@observablehq/plot';
import {FINE, LATENCY, position} from '../buckets.js';
import * as format from '../format.js';
import {choice, h} from '../dom.js';
import {kindsOf, KINDS} from './histogram.js';
import {plot, timeAxis} from './plot.js';
import {rectangle} from './rectangle.js';

const HEIGHT = 260;
// More points hide each other.
const MAX_POINTS = 400;
const COLUMN = 7;
const ROWS = 28;

export const heatView = {
  id: 'heat',
  title: 'Latency over time',
  help: 'When the slow syncs were. A sync is at the time at which it begins. Drag a rectangle to select by time and latency.',
  missing: (sides) => (kindsOf(sides).length ? null : 'no latency is known'),
  controls: (state, set, sides) => [choice('Show', kindsOf(sides), state.latency, (latency) => set({latency}))],
  scale(sides, state) {
    const ends = sides.map((side) => Math.max(1, side.length, side.bins * side.width));
    const all = sides.map((side) => side.latencies(state, state.latency));
    const places = all.flatMap((found) => (found?.points ? found.points.map(({value}) => placeOf(FINE, value)) : found ? found.cells.map(({bucket}) => placeOf(FINE, LATENCY.lower(bucket))) : []));
    const tops = all.flatMap((found) => (found?.cells ? found.cells.map(({bucket}) => placeOf(FINE, LATENCY.upper(bucket))) : []));
    const known = places.filter((place) => place > 0);
    const least = known.reduce((a, b) => Math.min(a, b), Infinity);
    const greatest = [...known, ...tops].reduce((a, b) => Math.max(a, b), 0);
    const low = known.length ? Math.floor(least - 0.5) : 1;
    const high = known.length ? Math.max(Math.ceil(greatest + 0.5), low + 6) : 7;
    // Syncs of 0 ns are in a row below the others.
    const zero = places.some((place) => place <= 0);
    return {ends: state.times === 'each' ? ends : ends.map(() => Math.max(...ends)), all, low, high, zero, floor: zero ? low - Math.max(2, (high - low) / 10) : low};
  },
  draw(side, state, {width, scale, place, set}) {
    const found = scale.all[place];
    if (!found) return [h('p.note', {}, 'Not known for this selection: the page holds only counts, and none by latency and amount together.')];
    const {low, high, zero, floor} = scale;
    const end = scale.ends[place];
    const axis = timeAxis(0, end, width);
    const isPoints = found.points && found.points.length <= MAX_POINTS;
    const cells = isPoints ? [] : found.cells ? binned(side, found.cells, scale) : mapped(found.points, width, end, scale);
    const max = Math.max(1, ...cells.map(({syncs}) => syncs));
    const selected = found.points?.filter(({row}) => isPoints && side.inRanges({...state, wrote: null}, row) && inTime(state, side.point(row).since));
    const isFiltered = state.time || state.waited;
    const chosen = new Set(isFiltered ? selected?.map(({row}) => row) : []);
    const bounds = ticks(low, high);
    const name = KINDS.find(([key]) => key === state.latency)[1];
    const chart = plot({
      width, height: HEIGHT, marginTop: 24, ariaLabel: `${name} over time, ${side.name}`,
      x: {domain: [0, end], type: 'linear'},
      y: {domain: [floor, high], type: 'linear'},
      marks: [
        Plot.gridY(bounds.map(({at}) => at), {stroke: 'var(--grid)', strokeOpacity: 1}),
        Plot.axisY(bounds.map(({at}) => at), {tickFormat: (at) => format.ns(bounds.find((one) => one.at === at).value), label: `${name} (logarithmic)`, labelArrow: 'none', tickSize: 0}),
        zero ? [Plot.axisY([(floor + low) / 2], {tickFormat: () => '0 ns', label: null, tickSize: 0}), Plot.ruleY([low], {stroke: 'var(--line)', strokeDasharray: '2 3'})] : null,
        Plot.axisX(axis.values, {tickFormat: axis.text, label: axis.label, labelAnchor: 'center', labelArrow: 'none', labelOffset: 36}),
        isPoints ? Plot.dot(found.points, {
          x: 'time', y: ({value}) => (value < 1 ? (floor + low) / 2 : placeOf(FINE, value)), r: 3, fill: 'var(--bar)', fillOpacity: ({row}) => (isFiltered && !chosen.has(row) ? 0.2 : 0.85),
          title: ({row, value}) => describe(side.point(row), value), tip: {fill: 'var(--card)', stroke: 'var(--line)', lineWidth: 40},
        }) : Plot.rect(cells, {
          x1: 'from', x2: 'to', y1: 'low', y2: 'high', fill: 'var(--bar)', fillOpacity: ({syncs}) => shade(syncs, max), insetRight: 0.5,
          title: (cell) => `${format.range(cell.from, cell.to)}\n${cell.least < 1 ? '0 ns' : `${format.ns(cell.least)} to ${format.ns(cell.most)}`}\n${format.counted(cell.syncs, 'sync')}`, tip: {fill: 'var(--card)', stroke: 'var(--line)'},
        }),
        Plot.ruleY([floor], {stroke: 'var(--line)'}),
      ],
    });
    const [x, y] = [chart.scale('x'), chart.scale('y')];
    const waited = state.waited?.kind === state.latency ? state.waited : null;
    const placed = (value, otherwise) => (value == null || value === Infinity ? otherwise : value < 1 ? floor : Math.min(high, Math.max(low, placeOf(FINE, value))));
    const box = isFiltered && (state.time || waited) ? [x.apply(Math.min(end, state.time?.[0] ?? 0)), x.apply(Math.min(end, state.time?.[1] ?? end)), y.apply(placed(waited?.to, high)), y.apply(placed(waited?.from, floor))] : null;
    const buckets = side.counted ? LATENCY : FINE;
    const host = rectangle(chart, {
      x, y, selected: box,
      select(drawn) {
        if (!drawn) return set({time: null, waited: null});
        const step = side.counted ? side.width : 1;
        const time = [Math.floor(x.invert(drawn[0]) / step) * step, Math.ceil(x.invert(drawn[1]) / step) * step];
        const [from, to] = [y.invert(drawn[3]), y.invert(drawn[2])];
        // On a page of counts the ends are bounds of buckets.
        const value = (place, up) => (place < low ? (up ? 1 : 0) : snapped(buckets, 10 ** ((place - 1) / 10), up));
        set({time: time[0] <= 0 && time[1] >= end ? null : time, waited: from <= floor && to >= high ? null : {kind: state.latency, from: value(from, false), to: value(to, true)}, ...(side.counted ? {wrote: null} : {})});
      },
    });
    return [
      isPoints ? null : h('ul.legend', {}, steps(max).map((syncs) => h('li', {}, h('span.swatch', {style: {background: 'var(--bar)', opacity: shade(syncs, max)}}), `${format.count(syncs)} ${syncs === 1 ? 'sync' : 'syncs'}`))),
      host,
      h('p.note', {}, isPoints ? `${format.counted(found.points.length, 'sync')}, each a point.` : found.cells ? 'Each cell counts the syncs of a bin of time and of a bucket of the report `latency`. The shade is logarithmic.' : `${format.counted(found.points.length, 'sync')}, counted by cell. The shade is logarithmic.`),
    ];
  },
};

// The place of a value on an axis with ten places for each power of ten; 0 for less than 1.
const placeOf = (buckets, value) => (value < 1 ? 0 : buckets === FINE ? 1 + 10 * Math.log10(value) : position(buckets, value));

const snapped = (buckets, value, up) => {
  const bucket = buckets.of(Math.max(1, Math.round(value)));
  return up ? buckets.upper(bucket) : buckets.lower(bucket);
};

const inTime = ({time}, since) => time == null || (since >= time[0] && since < time[1]);

function mapped(points, width, end, {low, high, floor}) {
  const columns = Math.max(10, Math.floor((width - 80) / COLUMN));
  const height = (high - low) / Math.min(ROWS, Math.max(6, Math.round((high - low) * 2)));
  const cells = new Map();
  for (const {time, value} of points) {
    const column = Math.min(columns - 1, Math.floor((time / end) * columns));
    const row = value < 1 ? -1 : Math.floor((placeOf(FINE, value) - low) / height);
    const key = column * 1000 + row;
    const cell = cells.get(key);
    if (cell) cell.syncs++;
    else {
      const [from, to] = [low + row * height, low + (row + 1) * height];
      cells.set(key, {from: (column * end) / columns, to: ((column + 1) * end) / columns, low: row < 0 ? floor : from, high: row < 0 ? low : to, least: row < 0 ? 0 : 10 ** ((from - 1) / 10), most: 10 ** ((to - 1) / 10), syncs: 1});
    }
  }
  return [...cells.values()];
}

function binned(side, cells, {low, floor}) {
  return cells.map(({bin, bucket, syncs}) => ({
    from: bin * side.width, to: (bin + 1) * side.width, syncs, least: LATENCY.lower(bucket), most: LATENCY.upper(bucket),
    low: bucket === 0 ? floor : placeOf(FINE, LATENCY.lower(bucket)), high: bucket === 0 ? low : placeOf(FINE, LATENCY.upper(bucket)),
  }));
}

const shade = (syncs, max) => 0.14 + 0.86 * (max > 1 ? Math.log(syncs) / Math.log(max) : 1);
const steps = (max) => [...new Set([1, Math.round(Math.sqrt(max)), max])];

function ticks(low, high) {
  const found = [];
  for (let power = 0; power < 14; power++) {
    for (const lead of high - low < 40 ? [1, 2, 5] : [1]) {
      const at = placeOf(FINE, lead * 10 ** power);
      if (at >= low && at <= high) found.push({at, value: lead * 10 ** power});
    }
  }
  return found;
}

const describe = (point, value) => `${format.ns(value)}, ${format.bytes(point.bytes)}\n${format.printable(point.file.label)}\n${format.printable(point.op)} of ${format.printable(point.thread.label)}\nat ${format.ns(point.since)}`;
