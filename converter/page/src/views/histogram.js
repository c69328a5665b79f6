// Histograms of latency and amount, in the buckets of the reports.

import * as Plot from '@observablehq/plot';
import {AMOUNT, LATENCY} from '../buckets.js';
import * as format from '../format.js';
import {choice, h} from '../dom.js';
import {filtered, percentile, percentileBounds} from '../model.js';
import {table} from './numbers.js';
import {HEIGHT, plot} from './plot.js';

export const KINDS = [['syscall', 'syscall latency'], ['writeback', 'writeback latency']];

export const latencyView = {
  id: 'latency',
  title: 'Latency',
  help: 'Syscall latency is from the entry of the call to its exit. Writeback latency is from the first bio submit to the last bio completion, 0 for an empty sync. Only syncs whose latency is known are counted.',
  controls: (state, set) => [choice('Show', KINDS, state.latency, (latency) => set({latency})), shareChoice(state, set)],
  ...histogram((state) => ({kind: state.latency, label: KINDS.find(([key]) => key === state.latency)[1], buckets: LATENCY, unit: 'ns'})),
};

export const amountView = {
  id: 'amount',
  title: 'Amount',
  help: 'Bytes written back per sync. The bucket from 0 to 1 byte holds empty syncs. Only syncs recorded from start to end are counted.',
  controls: (state, set) => [shareChoice(state, set)],
  ...histogram(() => ({kind: 'amount', label: 'bytes written back', buckets: AMOUNT, unit: 'bytes'})),
};

function shareChoice(state, set) {
  return choice('as', [['count', 'number of syncs'], ['share', 'share of syncs']], state.height, (height) => set({height}));
}

function histogram(describe) {
  return {
    scale(sides, state) {
      const {kind} = describe(state);
      const all = sides.map((side) => counts(side, state, kind));
      const filled = all.flatMap(({list}) => list.flatMap((count, bucket) => (count && bucket ? [bucket] : [])));
      const low = filled.length ? Math.min(...filled) : 1;
      const high = filled.length ? Math.max(...filled) : 1;
      // At least six buckets, so that none is as wide as the page.
      const room = Math.max(0, 6 - (high - low + 1));
      return {
        zero: all.some(({list}) => list[0]), first: Math.max(1, low - Math.ceil(room / 2)), last: high + Math.floor(room / 2),
        max: Math.max(...all.map(({list, total}) => Math.max(0, ...list.map((count) => count / (state.height === 'share' ? total || 1 : 1))))) || 1,
      };
    },
    draw(side, state, {width, scale}) {
      const {kind, label, buckets, unit} = describe(state);
      const {list, total} = counts(side, state, kind);
      const bars = barsOf(list, scale, buckets, (count) => (state.height === 'share' ? count / (total || 1) : count));
      const chart = draw(bars, scale, {width, label: `${label} (logarithmic)`, buckets, unit, aria: `Histogram of ${label}, ${side.name}`,
        title: (bar) => `${format.text(bar.lower, unit)} to ${format.text(bar.upper, unit)}\n${format.count(bar.count)} syncs, ${format.share(total ? bar.count / total : null)}`,
        y: {domain: [0, scale.max], format: state.height === 'share' ? format.share : format.count, integers: state.height !== 'share', label: state.height === 'share' ? 'share of syncs' : 'syncs'}});
      return [
        chart,
        h('p.note', {}, quantiles(side, state, kind, unit, list, total)),
        table(`${label[0].toUpperCase()}${label.slice(1)} as a table`, ['from', 'to', 'syncs', 'share'], () => bars.map((bar) => [format.text(bar.lower, unit), format.text(bar.upper, unit), format.count(bar.count), format.share(total ? bar.count / total : null)])),
      ];
    },
    // The change of each bucket's share of the syncs.
    difference(sides, state, {width, scale}) {
      const {kind, label, buckets, unit} = describe(state);
      const [base, now] = sides.map((side) => counts(side, state, kind));
      if (!base.total || !now.total) return [h('p.note', {}, 'No difference shown: on one side this is not known for any sync.')];
      const shares = [];
      for (let bucket = 0; bucket <= scale.last; bucket++) shares[bucket] = (now.list[bucket] ?? 0) / now.total - (base.list[bucket] ?? 0) / base.total;
      const bars = barsOf(shares, scale, buckets, (share) => share);
      if (bars.every(({value}) => value === 0)) return [h('p.note', {}, 'No difference: each bucket has the same share of syncs on both sides.')];
      const max = Math.max(0.001, ...bars.map(({value}) => Math.abs(value)));
      return [draw(bars, scale, {width, label: `${label} (logarithmic)`, buckets, unit, height: 150, aria: `Difference of shares by ${label}`,
        fill: (bar) => (bar.value > 0 ? 'var(--more)' : 'var(--less)'),
        title: (bar) => `${format.text(bar.lower, unit)} to ${format.text(bar.upper, unit)}\n${format.points(bar.value)} of syncs`,
        y: {domain: [-max, max], format: format.points, integers: false, label: 'share of syncs, new minus base'}})];
    },
  };
}

function counts(side, state, kind) {
  const list = Array.from(side.select(state).buckets[kind], (count) => count ?? 0);
  return {list, total: list.reduce((sum, count) => sum + count, 0)};
}

// Bars are at integer positions: the bucket of 0, a gap, then the others, which are logarithmic.
function barsOf(list, {zero, first, last}, buckets, value) {
  const bars = [];
  if (zero) bars.push({from: first - 1.6, to: first - 0.6, bucket: 0});
  for (let bucket = first; bucket <= last; bucket++) bars.push({from: bucket, to: bucket + 1, bucket});
  return bars.map((bar) => ({...bar, count: list[bar.bucket] ?? 0, value: value(list[bar.bucket] ?? 0), lower: buckets.lower(bar.bucket), upper: buckets.upper(bar.bucket)}));
}

function draw(bars, {zero, first, last}, {width, label, buckets, unit, aria, title, y, fill = 'var(--bar)', height = HEIGHT}) {
  const each = (width - 80) / (last - first + 3);
  // Labels as many bounds as there is room for, preferring powers of ten.
  const every = unit === 'ns' ? (each < 22 ? 3 : 1) : Math.ceil(56 / each);
  const bounds = [];
  for (let bucket = first; bucket <= last + 1; bucket++) if ((bucket - 1) % every === 0) bounds.push(bucket);
  if (every === 1 && each < 52) bounds.splice(0, bounds.length, ...bounds.filter((bucket) => (bucket - 1) % 3 === 0 || last - first < 4));
  return plot({
    width, height, ariaLabel: aria,
    x: {domain: [zero ? first - 1.8 : first - 0.2, last + 1.2], type: 'linear'},
    y: {domain: y.domain, type: 'linear'},
    marks: [
      Plot.gridY({stroke: 'var(--grid)', strokeOpacity: 1, ticks: 4}),
      Plot.axisY({tickFormat: (value) => (y.integers && !Number.isInteger(value) ? '' : y.format(value)), label: y.label, labelArrow: 'none', tickSize: 0, ticks: 4}),
      Plot.axisX(bounds, {tickFormat: (bucket) => format.text(buckets.lower(bucket), unit), label, labelAnchor: 'center', labelArrow: 'none', labelOffset: 36}),
      zero ? Plot.axisX([first - 1.1], {tickFormat: () => '0', tickSize: 0, label: null}) : null,
      Plot.rectY(bars, {x1: 'from', x2: 'to', y: 'value', fill, insetLeft: 1, insetRight: 1, title, tip: {fill: 'var(--card)', stroke: 'var(--line)'}}),
      Plot.ruleY([0], {stroke: 'var(--line)'}),
    ],
  });
}

function quantiles(side, state, kind, unit, list, total) {
  const {values, total: sums} = side.select(state);
  const syncs = sums.syncs;
  const of = total === syncs ? `${format.count(total)} syncs` : `${format.count(total)} of ${format.count(syncs)} syncs for which it is known`;
  if (!total) return `Not known for any of ${format.count(syncs)} syncs.`;
  const name = kind === 'amount' ? 'writeback_amount' : `${kind}_latency`;
  const figures = [50, 90, 99].map((percent) => {
    const whole = filtered(state) ? null : side.metric(`${name}_p${percent}`)?.value;
    if (whole != null) return `p${percent} ${format.text(whole, unit)}`;
    if (values) return `p${percent} ${format.text(percentile(values[kind], percent), unit)}`;
    const {from, to} = percentileBounds(list, percent, kind === 'amount' ? AMOUNT : LATENCY, sums[`${kind}_max_ns`]);
    return `p${percent} between ${format.text(from, unit)} and ${format.text(to, unit)}`;
  });
  return `${of}: ${figures.join(', ')}.`;
}
