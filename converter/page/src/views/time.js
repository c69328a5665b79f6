// Amount, syncs and latency over time, with a brush that selects a time range.

import * as Plot from '@observablehq/plot';
import * as format from '../format.js';
import {choice, h} from '../dom.js';
import {availableOptions} from '../model.js';
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

export const timeView = {
  id: 'time',
  title: 'Over time',
  help: 'A sync counts in the bin in which it begins. Drag across the chart, or move the two handles with the arrow keys, to select a time range. The selection applies to all views.',
  controls: (state, set, sides) => [choice('Show', availableOptions(sides, Object.entries(MEASURES)).map(([key, {label}]) => [key, label]), state.measure, (measure) => set({measure}))],
  scale(sides, state) {
    const {of} = MEASURES[state.measure];
    const max = Math.max(0, ...sides.flatMap((side) => side.select(state).time.map((sums) => of(sums) ?? 0)));
    return {max, end: Math.max(1, ...sides.map((side) => Math.max(side.length, side.bins * side.width)))};
  },
  draw(side, state, {width, scale, set}) {
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
    const host = h('div.brushed', {}, chart, brush(side, state, chart.scale('x'), scale.end, describe, set));
    const unknown = bins.filter(({value}) => value == null).length;
    return [
      host,
      h('p.note', {}, `${bins.length} bins of ${format.ns(side.width)}${unknown && measure.unit === 'ns' ? `; ${unknown} of them have no sync for which this is known` : ''}.`),
      table(`Over time as a table${side.total > 1 ? `, ${side.name}` : ''}`, ['begin', measure.label], () => bins.map(({from, value}) => [format.ns(from), format.text(value, measure.unit)])),
    ];
  },
};

// The selected range: drawn by dragging, its two ends moved with keys. The layer covers the chart, so it also shows the tooltip.
function brush(side, state, x, end, describe, set) {
  const step = side.counted ? side.width : Math.max(1, Math.round(end / 1000));
  const snap = (time) => Math.min(Math.max(0, Math.round(time / step) * step), Math.ceil(end / step) * step);
  const [left, right] = x.range;
  const layer = h('div.brush', {style: {left: `${left}px`, width: `${right - left}px`, height: `${HEIGHT - 44}px`}});
  const span = right - left;
  const time = (clientX) => x.invert(left + Math.min(Math.max(0, clientX - layer.getBoundingClientRect().left), span));
  const place = (time) => Math.min(Math.max(0, x.apply(time) - left), span);
  const window = h('div.window');
  const tip = h('div.tip', {hidden: true});
  const range = state.time ?? [0, Math.ceil(end / step) * step];
  let shown = range;
  const show = ([from, to]) => {
    shown = [from, to];
    Object.assign(window.style, {left: `${place(from)}px`, width: `${place(to) - place(from)}px`});
    window.classList.toggle('all', state.time == null && from === range[0] && to === range[1]);
  };
  const select = (from, to) => set({time: from <= 0 && to >= end ? null : [from, to]});
  const handle = (name, index) => {
    const element = h('div.handle', {
      role: 'slider', tabindex: 0, 'aria-label': `${name} of the time range`, 'aria-orientation': 'horizontal', 'data-key': `${name}-${side.index}`,
      'aria-valuemin': 0, 'aria-valuemax': end, 'aria-valuenow': range[index], 'aria-valuetext': format.ns(range[index]),
      onkeydown(event) {
        const by = {ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity}[event.key];
        if (by === undefined) return;
        event.preventDefault();
        // A key press moves the end by a visible distance.
        const distance = Math.max(step, snap(end / 100));
        const moved = [...range];
        moved[index] = by === -Infinity ? 0 : by === Infinity ? Math.ceil(end / step) * step : snap(range[index] + by * distance * (event.shiftKey ? 10 : 1));
        if (moved[0] < moved[1]) select(...moved);
      },
    });
    element.style.left = `${place(range[index])}px`;
    return element;
  };
  let dragStart = null;
  layer.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || event.target.classList.contains('handle')) return;
    dragStart = time(event.clientX);
    layer.setPointerCapture(event.pointerId);
  });
  layer.addEventListener('pointermove', (event) => {
    const now = time(event.clientX);
    if (dragStart === null) {
      tip.textContent = describe(now);
      tip.hidden = !tip.textContent;
      const at = place(now);
      Object.assign(tip.style, {top: '30%', left: at < span / 2 ? `${at + 12}px` : 'auto', right: at < span / 2 ? 'auto' : `${span - at + 12}px`});
      return;
    }
    tip.hidden = true;
    show([snap(Math.min(dragStart, now)), snap(Math.max(dragStart, now))]);
  });
  layer.addEventListener('pointerleave', () => { tip.hidden = true; });
  layer.addEventListener('pointerup', (event) => {
    if (dragStart === null) return;
    const moved = Math.abs(x.apply(dragStart) - x.apply(time(event.clientX)));
    dragStart = null;
    // A click without dragging removes the range.
    if (moved < 3) set({time: null});
    else if (shown[0] < shown[1]) select(...shown);
    else show(range);
  });
  show(range);
  layer.append(window, handle('begin', 0), handle('end', 1), tip);
  return layer;
}
