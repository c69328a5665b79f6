// Amount, syncs and latency over time, with a brush that selects a time range.

import * as Plot from '@observablehq/plot';
import * as format from '../format.js';
import {choice, h} from '../dom.js';
import {availableOptions} from '../model.js';
import {brush} from './brush.js';
import {table} from './numbers.js';
import {HEIGHT, niceTicks, plot, timeAxis} from './plot.js';

const MEASURES = {
  bytes: {label: 'written back', unit: 'bytes', of: (sums) => sums.sum('bytes', 'amounts')},
  syncs: {label: 'syncs', unit: 'count', of: (sums) => sums.syncs},
  empty: {label: 'empty syncs', unit: 'count', of: (sums) => sums.empty},
  syscall: {label: 'average syscall latency', unit: 'ns', of: (sums) => sums.average('syscall')},
  syscallMax: {label: 'maximum syscall latency', unit: 'ns', of: (sums) => sums.syscall_max_ns},
  writeback: {label: 'average writeback latency', unit: 'ns', of: (sums) => sums.average('writeback')},
  journal: {label: 'average journal wait', unit: 'ns', of: (sums) => sums.average('journal')},
  flush: {label: 'average time in cache flushes', unit: 'ns', of: (sums) => sums.average('flush')},
};

// Returns the measures that a side has.
export function measures(sides) {
  const needs = {bytes: 'amount', empty: 'amount', syscall: 'syscall', syscallMax: 'syscall', writeback: 'writeback'};
  return availableOptions(sides, Object.keys(MEASURES).map((key) => [key])).flat().filter((key) => !needs[key] || sides.some((side) => side.knows(needs[key])));
}

export const timeView = {
  id: 'time',
  title: 'Over time',
  help: 'A sync counts in the bin in which it begins. Drag across the chart, or move the two handles with the arrow keys, to select a time range. The selection applies to all views.',
  controls: (state, set, sides) => [choice('Show', measures(sides).map((key) => [key, MEASURES[key].label]), state.measure, (measure) => set({measure}))],
  scale(sides, state) {
    const {of} = MEASURES[state.measure];
    const max = sides.map((side) => Math.max(0, ...side.select(state).time.map((sums) => of(sums) ?? 0)));
    const end = sides.map((side) => Math.max(1, side.length, side.bins * side.width));
    const both = (list) => list.map(() => Math.max(...list));
    // Bins of two lengths make sums that cannot be compared, unlike averages and maxima.
    const hasOwn = new Set(sides.map(({width}) => width)).size > 1 && MEASURES[state.measure].unit !== 'ns';
    return {max: hasOwn ? max : both(max), end: state.times === 'each' ? end : both(end), hasOwn};
  },
  draw(side, state, {width, scale: scales, place, set}) {
    const scale = {max: scales.max[place], end: scales.end[place]};
    const measure = MEASURES[state.measure];
    const bins = side.select(state).time.map((sums, bin) => ({from: bin * side.width, to: (bin + 1) * side.width, value: measure.of(sums)}));
    const axis = timeAxis(0, scale.end, width);
    const values = niceTicks(scale.max, measure.unit);
    const marks = side.raw.marks.name.map((name, row) => ({name: format.printable(name), at: side.raw.marks.since_ns[row]})).filter(({at}) => at >= 0 && at <= scale.end);
    const chart = plot({
      width, marginTop: marks.length ? 34 : 20,
      ariaLabel: `${measure.label} over time, ${side.name}`,
      x: {domain: [0, scale.end], type: 'linear'},
      y: {domain: [0, scale.max || 1], nice: false, type: 'linear'},
      marks: [
        Plot.gridY(values, {stroke: 'var(--grid)', strokeOpacity: 1}),
        Plot.axisY(values, {tickFormat: (value) => format.text(value, measure.unit), label: null, tickSize: 0}),
        Plot.axisX(axis.values, {tickFormat: axis.text, label: axis.label, labelAnchor: 'center', labelArrow: 'none', labelOffset: 36}),
        Plot.rectY(bins.filter(({value}) => value != null), {x1: 'from', x2: 'to', y: 'value', fill: 'var(--bar)', inset: (width / Math.max(1, scale.end / side.width)) > 4 ? 0.4 : 0}),
        Plot.ruleX(marks, {x: 'at', stroke: 'var(--ink)', strokeDasharray: '3 3', title: 'name'}),
        marks.length <= 12 ? Plot.text(marks, {x: 'at', text: 'name', frameAnchor: 'top', textAnchor: 'start', dx: -2, dy: -18, fill: 'var(--ink)', lineWidth: 12, textOverflow: 'ellipsis'}) : null,
        Plot.ruleY([0], {stroke: 'var(--line)'}),
      ],
    });
    const describe = (time) => {
      const bin = bins[Math.floor(time / side.width)];
      return bin ? `${format.range(bin.from, bin.to)}\n${measure.label}: ${format.text(bin.value, measure.unit)}` : '';
    };
    const step = side.counted ? side.width : Math.max(1, Math.round(scale.end / 1000));
    const snap = (time) => Math.round(time / step) * step;
    const layer = brush({
      scale: chart.scale('x'), height: HEIGHT - 44, domain: [0, Math.ceil(scale.end / step) * step], range: state.time, key: side.index, what: 'time range', text: format.ns, describe, snap,
      // A key press moves the end by a visible distance.
      move: (time, by) => time + by * Math.max(step, snap(scale.end / 100)),
      select: (time) => set({time}),
    });
    const host = h('div.brushed', {}, chart, layer);
    const unknown = bins.filter(({value}) => value == null).length;
    return [
      host,
      h('p.note', {}, `${bins.length} bins of ${format.ns(side.width)}${unknown && measure.unit === 'ns' ? `; ${unknown} of them have no sync for which this is known` : ''}.${scales.hasOwn ? ' The bins of the other side have another length, so the heights of the two are not to one scale.' : ''}`),
      table(`Over time as a table${side.total > 1 ? `, ${side.name}` : ''}`, ['begin', measure.label], () => bins.map(({from, value}) => [format.ns(from), format.text(value, measure.unit)])),
    ];
  },
};
