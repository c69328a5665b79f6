// Histograms and cumulative shares (ECDF) of latency and amount. Two sides are drawn in one chart.

import * as Plot from '@observablehq/plot';
import {AMOUNT, FINE, LATENCY, position} from '../buckets.js';
import * as format from '../format.js';
import {choice, h} from '../dom.js';
import {filtered, percentile, percentileBounds} from '../model.js';
import {brush} from './brush.js';
import {table} from './numbers.js';
import {HEIGHT, plot} from './plot.js';

export const KINDS = [['syscall', 'syscall latency'], ['writeback', 'writeback latency']];
export const kindsOf = (sides) => KINDS.filter(([kind]) => sides.some((side) => side.knows(kind)));
const LINES = [50, 99];
// Points of an ECDF: more would not be visible.
const POINTS = 600;
// Width of a letter of a label, in pixels.
const LETTER = 6.6;

export const latencyView = {
  id: 'latency',
  title: 'Latency',
  help: 'Syscall latency is from the entry of the call to its exit. Writeback latency is from the first bio submit to the last bio completion, 0 for an empty sync. Only syncs whose latency is known are counted. Drag, or click a bar, to select syncs by latency.',
  missing: (sides) => (kindsOf(sides).length ? null : 'no latency is known'),
  controls: (state, set, sides) => [choice('Show', kindsOf(sides), state.latency, (latency) => set({latency})), shapeChoice(state, set, sides), shareChoice(state, set)],
  ...distribution((state, sides) => ({
    kind: state.latency, label: KINDS.find(([key]) => key === state.latency)[1], unit: 'ns', report: LATENCY, buckets: state.shape === 'histogram' || sides.some((side) => side.counted) ? LATENCY : FINE,
    range: state.waited?.kind === state.latency ? state.waited : null, selection: (range) => ({waited: range && {kind: state.latency, ...range}, ...(range && sides.some((side) => side.counted) ? {wrote: null} : {})}),
  })),
};

export const amountView = {
  id: 'amount',
  title: 'Amount',
  help: 'Bytes written back per sync. The bucket from 0 to 1 byte holds empty syncs. Only syncs recorded from start to end are counted. Drag, or click a bar, to select syncs by amount.',
  missing: (sides) => (sides.some((side) => side.knows('amount')) ? null : 'no sync has a known amount'),
  controls: (state, set) => [shareChoice(state, set)],
  ...distribution((state, sides) => ({
    kind: 'amount', label: 'bytes written back', unit: 'bytes', report: AMOUNT, buckets: AMOUNT,
    range: state.wrote, selection: (range) => ({wrote: range, ...(range && sides.some((side) => side.counted) ? {waited: null} : {})}),
  })),
};

function shapeChoice(state, set, sides) {
  const shapes = [['fine', 'fine histogram'], ['histogram', 'histogram of the report'], ['ecdf', 'cumulative share (ECDF)']];
  return choice('as', sides.some((side) => side.counted) ? shapes.slice(1) : shapes, state.shape, (shape) => set({shape}));
}

function shareChoice(state, set) {
  return choice('in', [['count', 'number of syncs'], ['share', 'share of syncs']], state.height, (height) => set({height}));
}

function distribution(describe) {
  const drawing = (sides, state, width) => {
    const what = describe(state, sides);
    const isEcdf = what.kind !== 'amount' && state.shape === 'ecdf';
    const all = sides.map((side) => counts(side, state, what));
    const filled = all.flatMap(({list}) => list.flatMap((count, bucket) => (count && bucket ? [bucket] : [])));
    const low = filled.length ? Math.min(...filled) : 1;
    const high = filled.length ? Math.max(...filled) : 1;
    // At least six buckets, so that none is as wide as the page.
    const room = Math.max(0, 6 - (high - low + 1));
    const scale = {zero: all.some(({list}) => list[0]), first: Math.max(1, low - Math.ceil(room / 2)), last: high + Math.floor(room / 2)};
    const isShare = isEcdf || state.height === 'share';
    const heights = all.flatMap(({list, total}) => list.map((count) => count / (isShare ? total || 1 : 1)));
    return {what, isEcdf, isShare, all, scale, width, max: isEcdf ? 1 : Math.max(0, ...heights) || 1};
  };
  return {
    merged: true,
    draw(sides, state, {width, set}) {
      const made = drawing(sides, state, width);
      const {what, isEcdf, isShare, all, scale, max} = made;
      const {kind, label, buckets, unit} = what;
      const comparing = sides.length > 1;
      const titles = sides.map((side) => (comparing ? (side.index ? 'new ' : 'base ') : ''));
      const notes = sides.map((side, place) => h('p.note', {}, comparing ? h('span.role', {}, titles[place].trim()) : null, quantiles(side, state, what, all[place])));
      if (all.every(({total}) => !total)) return notes;
      const bars = all.map(({list, total}) => barsOf(list, scale, buckets, (count) => (isShare ? count / (total || 1) : count)));
      const zeroAt = scale.first - 1.1;
      const lines = sides.flatMap((side, place) => LINES.flatMap((percent) => linesOf(side, state, what, all[place], percent).map((value) => ({place, percent, value, at: value < 1 ? zeroAt : position(buckets, value)}))));
      const marks = isEcdf ? all.map((one, place) => curve(one, what, zeroAt, place, comparing)) : [
        // A percentage of the height of a bar is its own: of two sides, the new one is filled and the base is an outline.
        Plot.rectY(bars.at(-1), {x1: 'from', x2: 'to', y: 'value', fill: 'var(--bar)', insetLeft: 0.5, insetRight: 0.5}),
        comparing ? Plot.line(outline(bars[0]), {x: 'at', y: 'value', stroke: 'var(--base)', strokeWidth: 2.5, strokeDasharray: '6 3'}) : null,
      ];
      const above = percentiles(lines, scale, comparing, unit, width);
      const chart = axes({...made, rows: above.rows, aria: `${isEcdf ? 'Cumulative share' : 'Histogram'} of ${label}, ${sides.map(({name}) => name).join(' and ')}`, marks: [...marks, ...above.marks],
        y: {domain: [0, max], format: isShare ? format.share : format.count, integers: !isShare, label: isEcdf ? 'share of syncs that took at most this long' : isShare ? 'share of syncs' : 'syncs'}});
      const range = what.range && [what.range.from, what.range.to].map((value) => (value < 1 ? scale.first - 1.6 : value === Infinity ? scale.last + 1 : position(buckets, value)));
      const domain = [scale.zero ? scale.first - 1.6 : scale.first, scale.last + 1];
      const valueAt = (place) => (place < scale.first ? 0 : buckets.lower(Math.round(place)));
      const choose = (range) => set(what.selection(range && rangeOf(range, what, scale)));
      const layer = brush({
        scale: chart.scale('x'), height: HEIGHT + 14 * (above.rows - 1) - 44, domain, range, key: kind === 'amount' ? 'amount' : 'latency', what: `range of the ${label}`, text: (place) => format.text(valueAt(place), unit),
        describe: (place) => tooltip(place, bars, all, sides, what), snap: (place) => (place < scale.first - 0.3 ? scale.first - 1.6 : Math.max(scale.first, Math.round(place))), move: (place, by) => (place < scale.first && by > 0 ? scale.first - 1 + by : place + by),
        select: choose,
        // A click on a bar selects it, and a second one removes the selection.
        click(place) {
          const bar = bars.at(-1).find((one) => place >= one.from && place < one.to);
          if (!bar || !bars.some((list) => list.some((one) => one.bucket === bar.bucket && one.count))) return choose(null);
          const wanted = [bar.from, bar.to];
          choose(range && Math.abs(range[0] - wanted[0]) < 0.01 && Math.abs(range[1] - wanted[1]) < 0.01 ? null : wanted);
        },
      });
      return [
        comparing ? h('ul.legend', {}, h('li', {}, h('span.swatch.dashed'), 'base'), h('li', {}, h('span.swatch', {style: {background: 'var(--bar)'}}), 'new')) : null,
        h('div.brushed', {}, chart, layer),
        ...notes,
        table(`${label[0].toUpperCase()}${label.slice(1)} as a table`, ['from', 'to', ...titles.flatMap((title) => [`${title}syncs`, `${title}share`])], () => bars[0].map((bar, row) => [
          format.text(bar.lower, unit), format.text(bar.upper, unit), ...all.flatMap(({total}, place) => [format.count(bars[place][row].count), format.share(total ? bars[place][row].count / total : null)])])),
        comparing ? h('div.difference', {}, h('h3', {}, 'difference: new minus base'), difference(made)) : null,
      ];
    },
  };
}

// The change of each bucket's share of the syncs.
function difference({what, all, scale, width}) {
  const {buckets, label, unit} = what;
  const [base, now] = all;
  if (!base.total || !now.total) return h('p.note', {}, 'No difference shown: on one side this is not known for any sync.');
  const shares = [];
  for (let bucket = 0; bucket <= scale.last; bucket++) shares[bucket] = (now.list[bucket] ?? 0) / now.total - (base.list[bucket] ?? 0) / base.total;
  const bars = barsOf(shares, scale, buckets, (share) => share);
  if (bars.every(({value}) => value === 0)) return h('p.note', {}, 'No difference: each bucket has the same share of syncs on both sides.');
  const max = Math.max(0.001, ...bars.map(({value}) => Math.abs(value)));
  return axes({what, scale, width, height: 150, rows: 0, aria: `Difference of shares by ${label}`,
    marks: [Plot.rectY(bars, {x1: 'from', x2: 'to', y: 'value', fill: (bar) => (bar.value > 0 ? 'var(--more)' : 'var(--less)'), insetLeft: 0.5, insetRight: 0.5, title: (bar) => `${format.text(bar.lower, unit)} to ${format.text(bar.upper, unit)}\n${format.points(bar.value)} of syncs`, tip: {fill: 'var(--card)', stroke: 'var(--line)'}})],
    y: {domain: [-max, max], format: format.points, integers: false, label: 'share of syncs, new minus base'}});
}

// Counts by bucket, and where they are known the values, of the selected syncs and of those outside the range of this kind.
function counts(side, state, {kind, report, buckets}) {
  const found = side.select(state);
  const values = found.spreadValues?.[kind] ?? null;
  let list = Array.from(found.spread[kind], (count) => count ?? 0);
  if (values && buckets !== report) {
    list = [];
    for (const value of values) list[buckets.of(value)] = (list[buckets.of(value)] ?? 0) + 1;
    list = Array.from(list, (count) => count ?? 0);
  }
  return {list, values, total: list.reduce((sum, count) => sum + count, 0)};
}

// Bars are at integer positions: the bucket of 0, a gap, then the others, which are logarithmic.
function barsOf(list, {zero, first, last}, buckets, value) {
  const bars = [];
  if (zero) bars.push({from: first - 1.6, to: first - 0.6, bucket: 0});
  for (let bucket = first; bucket <= last; bucket++) bars.push({from: bucket, to: bucket + 1, bucket});
  return bars.map((bar) => ({...bar, count: list[bar.bucket] ?? 0, value: value(list[bar.bucket] ?? 0), lower: buckets.lower(bar.bucket), upper: buckets.upper(bar.bucket)}));
}

const outline = (bars) => bars.flatMap(({from, to, value}) => [{at: from, value}, {at: to, value}]);

// The curve of an ECDF. Counts by bucket determine it at the bounds of the buckets only.
function curve({list, values, total}, {buckets}, zeroAt, place, comparing) {
  const points = [];
  if (values) {
    const step = Math.max(1, Math.ceil(values.length / POINTS));
    for (let rank = 0; rank < values.length; rank += step) points.push({at: values[rank] < 1 ? zeroAt : position(buckets, values[rank]), value: (rank + 1) / total});
    if (values.length) points.push({at: values.at(-1) < 1 ? zeroAt : position(buckets, values.at(-1)), value: 1});
  } else {
    let sum = 0;
    const first = list.findIndex((count) => count);
    if (first > 0) points.push({at: first, value: 0});
    list.forEach((count, bucket) => {
      sum += count;
      if (bucket >= first && total) points.push({at: bucket === 0 ? zeroAt : bucket + 1, value: sum / total});
    });
  }
  const isBase = comparing && !place;
  return Plot.line(points, {x: 'at', y: 'value', stroke: isBase ? 'var(--base)' : 'var(--bar)', strokeWidth: 2, strokeDasharray: isBase ? '6 3' : null, curve: values ? 'step-after' : 'linear'});
}

// Returns the value of a percentile, or its bounds, of the syncs that the chart shows.
function linesOf(side, state, {kind, report}, {values, list, total}, percent) {
  if (!total) return [];
  if (values) return [percentile(values, percent)];
  const whole = filtered(state) ? null : side.metric(`${kind === 'amount' ? 'writeback_amount' : `${kind}_latency`}_p${percent}`)?.value;
  if (whole != null) return [whole];
  const {from, to} = percentileBounds(list, percent, report, null);
  return [from, to];
}

// Draws a line for each percentile, and its label above the chart: as low as it finds room.
function percentiles(lines, {zero, first, last}, comparing, unit, width) {
  const same = (a, b) => a.place === b.place && a.percent === b.percent;
  const label = (line) => `${comparing ? (line.place ? 'new ' : 'base ') : ''}p${line.percent} ${lines.filter((one) => same(one, line)).map(({value}) => format.text(value, unit)).join(' to ')}`;
  // A percentile that is known by its bounds has two lines and one label.
  const named = lines.filter((line, index) => !lines.slice(0, index).some((one) => same(one, line)));
  const low = zero ? first - 1.8 : first - 0.2;
  const pixel = (at) => ((at - low) / (last + 1.2 - low)) * (width - 80);
  const stroke = ({place}) => (comparing && !place ? 'var(--base)' : 'var(--ink)');
  const taken = [];
  const placed = named.sort((a, b) => a.at - b.at).map((line) => {
    const size = label(line).length * LETTER + 8;
    const right = pixel(line.at) + size < width - 70;
    const span = right ? [pixel(line.at), pixel(line.at) + size] : [pixel(line.at) - size, pixel(line.at)];
    let row = 0;
    while (taken[row]?.some(([from, to]) => from < span[1] && to > span[0])) row++;
    (taken[row] ??= []).push(span);
    return {...line, right, row};
  });
  return {
    rows: Math.max(1, taken.length),
    marks: [
      ...[0, 1].map((place) => Plot.ruleX(lines.filter((line) => line.place === place), {x: 'at', stroke, strokeDasharray: comparing && !place ? '6 3' : null, strokeWidth: 1.2})),
      ...placed.map((line) => Plot.text([line], {x: 'at', text: label, frameAnchor: 'top', textAnchor: line.right ? 'start' : 'end', dx: line.right ? 3 : -3, dy: -12 - 14 * line.row, fill: stroke, stroke: 'var(--card)', strokeWidth: 3})),
    ],
  };
}

function axes({what: {buckets, label, unit, kind}, scale: {zero, first, last}, width, rows, aria, marks, y, height = HEIGHT}) {
  const each = (width - 80) / (last - first + 3);
  const bounds = [];
  const [low, high] = [buckets.lower(first), buckets.upper(last)];
  if (kind === 'amount') {
    const every = Math.ceil(56 / each);
    for (let bucket = first; bucket <= last + 1; bucket++) if ((bucket - 1) % every === 0) bounds.push({at: bucket, value: buckets.lower(bucket)});
  } else {
    // Labels as many bounds as there is room for, preferring powers of ten.
    const perTen = position(buckets, 1e4) - position(buckets, 1e3);
    const leads = (perTen * each) / 3 >= 52 || Math.log10(high / low) < 1.5 ? [1, 2, 5] : [1];
    for (let power = 1; power <= high; power *= 10) {
      for (const lead of leads) {
        const value = lead * power;
        if (value >= low && value <= high) bounds.push({at: position(buckets, value), value});
      }
    }
  }
  return plot({
    width, height: height + 14 * Math.max(0, rows - 1), marginTop: rows ? 24 + 14 * rows : 20, ariaLabel: aria,
    x: {domain: [zero ? first - 1.8 : first - 0.2, last + 1.2], type: 'linear'},
    y: {domain: y.domain, type: 'linear'},
    marks: [
      Plot.gridY({stroke: 'var(--grid)', strokeOpacity: 1, ticks: 4}),
      Plot.axisY({tickFormat: (value) => (y.integers && !Number.isInteger(value) ? '' : y.format(value)), label: y.label, labelArrow: 'none', tickSize: 0, ticks: 4}),
      Plot.axisX(bounds.map(({at}) => at), {tickFormat: (at) => format.text(bounds.find((one) => one.at === at).value, unit), label: `${label} (logarithmic)`, labelAnchor: 'center', labelArrow: 'none', labelOffset: 36}),
      zero ? Plot.axisX([first - 1.1], {tickFormat: () => '0', tickSize: 0, label: null}) : null,
      ...marks,
      Plot.ruleY([0], {stroke: 'var(--line)'}),
    ],
  });
}

// The range of values that belongs to places on the axis. The bucket of 0 is left of the others.
function rangeOf([from, to], {buckets}, {first}) {
  const lower = from < first - 0.3 ? 0 : buckets.lower(Math.round(from));
  return {from: lower, to: to < first ? 1 : buckets.lower(Math.round(to))};
}

function tooltip(place, bars, all, sides, {unit}) {
  const at = bars[0].findIndex((bar) => place >= bar.from && place < bar.to);
  if (at < 0) return '';
  const {lower, upper} = bars[0][at];
  const lines = sides.map((side, index) => `${sides.length > 1 ? (index ? 'new: ' : 'base: ') : ''}${format.counted(bars[index][at].count, 'sync')}, ${format.share(all[index].total ? bars[index][at].count / all[index].total : null)}`);
  return `${format.text(lower, unit)} to ${format.text(upper, unit)}\n${lines.join('\n')}`;
}

function quantiles(side, state, {kind, unit, report}, {total: shown}) {
  const found = side.select(state);
  const {values, total: sums} = found;
  const list = Array.from(found.buckets[kind], (count) => count ?? 0);
  const total = list.reduce((sum, count) => sum + count, 0);
  const syncs = sums.syncs;
  if (found.byBucket && !shown) return 'Not known for this selection: the page holds only counts by bucket, of latency or of amount.';
  const of = total === syncs ? format.counted(total, 'sync') : `${format.count(total)} of ${format.count(syncs)} syncs for which it is known`;
  if (!total) return `Not known for any of ${format.counted(syncs, 'sync')}.`;
  const name = kind === 'amount' ? 'writeback_amount' : `${kind}_latency`;
  const figures = [50, 90, 99].map((percent) => {
    const whole = filtered(state) ? null : side.metric(`${name}_p${percent}`)?.value;
    if (whole != null) return `p${percent} ${format.text(whole, unit)}`;
    if (values) return `p${percent} ${format.text(percentile(values[kind], percent), unit)}`;
    const {from, to} = percentileBounds(list, percent, report, sums[`${kind}_max_ns`]);
    return `p${percent} between ${format.text(from, unit)} and ${format.text(to, unit)}`;
  });
  return `${of}: ${figures.join(', ')}.`;
}
