// An input that knows bios and no syncs, such as a blktrace: what the devices did over time, and the slowest bios.

import * as Plot from '@observablehq/plot';
import * as format from '../format.js';
import {choice, h} from '../dom.js';
import {phaseClass} from '../phases.js';
import {table} from './numbers.js';
import {niceTicks, plot, timeAxis} from './plot.js';

const SERIES = 5;
const REST = 'other threads';
const MEASURES = {
  bytes: {label: 'size of the bios', unit: 'bytes', of: ({bytes}) => bytes, isSum: true},
  bios: {label: 'bios', unit: 'count', of: ({bios}) => bios, isSum: true},
  queue: {label: 'average time in the queue', unit: 'ns', of: ({queues, queue_ns}) => (queues ? queue_ns / queues : null)},
  device: {label: 'average time at the device', unit: 'ns', of: ({served, device_ns}) => (served ? device_ns / served : null)},
  max: {label: 'longest from submit to completion', unit: 'ns', of: ({max_ns}) => max_ns},
};

export const bioTimeView = {
  id: 'bio-time',
  title: 'Bios over time',
  help: 'A bio counts in the bin in which it begins. Sums are divided by the name of the thread that submitted the bios.',
  controls: (state, set) => [choice('Show', Object.entries(MEASURES).map(([key, {label}]) => [key, label]), state.bioMeasure, (bioMeasure) => set({bioMeasure}))],
  scale: () => null,
  draw(side, state, {width}) {
    const measure = MEASURES[state.bioMeasure];
    const slots = rowsOf(side.raw.bios.slots);
    const {width_ns: bin, end_ns: end} = side.raw.bios;
    const names = largest(slots, measure);
    const nameOf = (slot) => (!measure.isSum ? measure.label : names.includes(label(slot)) ? label(slot) : REST);
    const groups = new Map();
    for (const slot of slots) {
      const key = JSON.stringify([slot.bin, nameOf(slot)]);
      const one = groups.get(key) ?? {bin: slot.bin, name: nameOf(slot), bios: 0, bytes: null, queues: 0, queue_ns: 0, served: 0, device_ns: 0, max_ns: null};
      one.bios += slot.bios;
      if (slot.bytes != null) one.bytes = (one.bytes ?? 0) + slot.bytes;
      for (const sum of ['queues', 'queue_ns', 'served', 'device_ns']) one[sum] += slot[sum] ?? 0;
      if (slot.max_ns != null) one.max_ns = Math.max(one.max_ns ?? 0, slot.max_ns);
      groups.set(key, one);
    }
    const bars = [...groups.values()].map((one) => ({...one, value: measure.of(one), from: one.bin * bin, to: (one.bin + 1) * bin})).filter(({value}) => value != null);
    if (!bars.length) return [h('p.note', {}, `The ${measure.label} is not recorded.`)];
    const domain = measure.isSum ? [...names, ...(bars.some(({name}) => name === REST) ? [REST] : [])] : [measure.label];
    const colours = domain.map((name, index) => (name === REST ? 'var(--muted)' : measure.isSum ? `var(--c${index + 1})` : 'var(--bar)'));
    const sums = new Map();
    for (const {bin: at, value} of bars) sums.set(at, (sums.get(at) ?? 0) + value);
    const max = Math.max(...sums.values());
    const axis = timeAxis(0, Math.max(1, end), width);
    const values = niceTicks(max, measure.unit);
    const chart = plot({
      width, marginTop: 20, ariaLabel: `${measure.label} over time`,
      x: {domain: [0, Math.max(1, end, ...bars.map(({to}) => to))], type: 'linear'}, y: {domain: [0, max || 1], type: 'linear'}, color: {domain, range: colours},
      marks: [
        Plot.gridY(values, {stroke: 'var(--grid)', strokeOpacity: 1}),
        Plot.axisY(values, {tickFormat: (value) => format.text(value, measure.unit), label: null, tickSize: 0}),
        Plot.axisX(axis.values, {tickFormat: axis.text, label: axis.label.replace('sync', 'bio'), labelAnchor: 'center', labelArrow: 'none', labelOffset: 36}),
        Plot.rectY(bars, {x1: 'from', x2: 'to', y: 'value', fill: 'name', inset: 0.4, title: ({name, value, from, to}) => `${format.range(from, to)}\n${name}: ${format.text(value, measure.unit)}`, tip: {fill: 'var(--card)', stroke: 'var(--line)'}, order: domain}),
        Plot.ruleY([0], {stroke: 'var(--line)'}),
      ],
    });
    return [
      measure.isSum ? h('ul.legend', {}, domain.map((name, index) => h('li', {}, h('span.swatch', {style: {background: colours[index]}}), name))) : null,
      chart,
      h('p.note', {}, `${format.counted(side.raw.bios.bios, 'bio')}, in bins of ${format.ns(bin)}.`),
      table('Bios over time as a table', ['begin', ...(measure.isSum ? ['thread'] : []), measure.label], () => bars.map(({from, name, value}) => [format.ns(from), ...(measure.isSum ? [name] : []), format.text(value, measure.unit)])),
    ];
  },
};

const DEVICE = [['bios', 'count'], ['bytes', 'bytes'], ['requests', 'count'], ['flushes', 'count'], ['errors', 'count'], ['busy_ns', 'ns'], ['busy', 'share'], ['depth', 'ratio'], ['max_depth', 'count'], ['queue_ns', 'ns'], ['device_ns', 'ns'], ['max_ns', 'ns']];

export const deviceView = {
  id: 'device',
  title: 'Devices',
  help: 'What each device was busy with, and for whom, as the report `device` has it. A bio is sync if somebody waits for it. Depth is the average number of requests at the device while it was busy.',
  scale: () => null,
  draw(side) {
    const rows = rowsOf(side.raw.bios.devices);
    if (!rows.length) return [h('p.note', {}, 'The bios have no known device, or no known completion.')];
    const name = ({part, comm}) => (part === 'thread' ? format.printable(comm ?? '[no name]') : {all: 'the whole device', sync: 'bios that somebody waits for', async: 'other bios', unknown: 'bios without known flags'}[part]);
    return [scroll('Devices', ['device', 'bios of', ...DEVICE.map(([key]) => key.replace(/_ns$/, '').replace('_', ' '))], rows.map((row) => [format.printable(`${row.dev}${row.run ? ` (${row.run})` : ''}`), name(row), ...DEVICE.map(([key, unit]) => format.text(row[key], unit))]), 2)];
  },
};

export const slowBiosView = {
  id: 'slow-bios',
  title: 'Slowest bios',
  help: 'The bios that took longest from submit to completion, at most 20: their time in the queue, and at the device.',
  scale: () => null,
  draw(side) {
    const rows = rowsOf(side.raw.bios.slowest);
    if (!rows.length) return [h('p.note', {}, 'No bio has a known submit and completion.')];
    const max = rows[0].dur_ns;
    const bar = ({queue_ns: queue, device_ns: device, dur_ns: whole}) => {
      const parts = queue == null || device == null ? [['plain', 'from submit to completion', whole]] : [[phaseClass('queue'), 'queue', queue], [phaseClass('device'), 'device', device]];
      return h('div.stack', {style: {width: `${Math.max(0.5, (100 * whole) / max)}%`}}, parts.filter(([, , ns]) => ns > 0).map(([of, text, ns]) => h('span', {class: of, title: `${text}: ${format.ns(ns)}`, style: {flexGrow: ns / whole}})));
    };
    return [
      h('ul.legend', {}, h('li', {}, h('span', {class: `swatch ${phaseClass('queue')}`}), 'queue'), h('li', {}, h('span', {class: `swatch ${phaseClass('device')}`}), 'device')),
      h('div.scroll.tall', {tabindex: 0, role: 'group', 'aria-label': 'The slowest bios'}, h('table.data.slow', {}, h('thead', {}, h('tr', {}, ['#', 'took', 'queue and device', 'thread', 'at', 'size', 'flags', 'device', 'bio_id'].map((text) => h(['queue and device', 'thread', 'flags'].includes(text) ? 'th.left' : 'th', {scope: 'col'}, text)))),
        h('tbody', {}, rows.map((row, index) => h('tr', {'data-bio': row.bio_id}, h('th', {scope: 'row'}, `${index + 1}`), h('td', {}, format.ns(row.dur_ns)), h('td.bar', {}, bar(row)), h('td.left', {}, format.printable(`${row.comm ?? '[no name]'} ${row.tid ?? ''}`)), h('td', {}, format.ns(row.since_ns)), h('td', {}, format.bytes(row.bytes)), h('td.left', {}, format.text(row.rwbs, 'text')), h('td', {}, format.text(row.dev, 'text')), h('td', {}, `${row.bio_id}`)))))),
    ];
  },
};

export const BIO_VIEWS = [bioTimeView, deviceView, slowBiosView];

function largest(slots, {of}) {
  const sums = new Map();
  for (const slot of slots) sums.set(label(slot), (sums.get(label(slot)) ?? 0) + (of(slot) ?? 0));
  const names = [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
  return names.slice(0, names.length > SERIES + 1 ? SERIES : SERIES + 1);
}

const label = ({comm}) => format.printable(comm ?? '[no name]');

// Returns a table of columns as a list of objects.
function rowsOf(columns) {
  const names = Object.keys(columns);
  return (columns[names[0]] ?? []).map((_, row) => Object.fromEntries(names.map((name) => [name, columns[name][row]])));
}

function scroll(title, heads, rows, left) {
  return h('div.scroll', {tabindex: 0, role: 'group', 'aria-label': `Table: ${title}`}, h('table.data', {}, h('thead', {}, h('tr', {}, heads.map((text, column) => h(column < left ? 'th.left' : 'th', {scope: 'col'}, text)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, row.map((cell, column) => (column ? h(column < left ? 'td.left' : 'td', {}, cell) : h('th', {scope: 'row'}, cell))))))));
}
