// Who used the disks while the syncs ran: processes with their control groups, over time. Always of the whole run.

import * as Plot from '@observablehq/plot';
import * as format from '../format.js';
import {choice, h} from '../dom.js';
import {neighboursOf} from './answer.js';
import {table} from './numbers.js';
import {niceTicks, plot, timeAxis} from './plot.js';

const HEIGHT = 170;
const COLOURS = 6;
const REST = 'all others';
// What is summed is divided by the length of its bin, so that bins of any length have one scale.
const MEASURES = {
  load: {label: 'bios at the device, on average', unit: 'ratio', of: (slots, cell, width) => slots.device_ns[cell] / width},
  bytes: {label: 'bytes a second', unit: 'bytes', of: (slots, cell, width) => (slots.bytes[cell] == null ? null : (slots.bytes[cell] * 1e9) / width)},
  bios: {label: 'bios a second', unit: 'count', of: (slots, cell, width) => (slots.bios[cell] * 1e9) / width},
};
export const DISK_MEASURES = Object.keys(MEASURES);
const WHAT = {syncs: 'its syncs', journal: 'commits of the journal', reads: 'reads', writes: 'writes', discards: 'discards'};

export const diskView = {
  id: 'disk',
  title: 'Who used the disk',
  help: 'By process and control group. A commit belongs to who started it, and data to who wrote them, where that is known. All devices together, from the first sync to the end of the last one.',
  missing: (sides) => (sides.some(({raw}) => raw.disk) ? null : reason(sides)),
  controls: (state, set) => [choice('Show', DISK_MEASURES.map((key) => [key, MEASURES[key].label]), state.disk, (disk) => set({disk}))],
  scale(sides, state) {
    const {of} = MEASURES[state.disk];
    const ends = sides.map((side) => Math.max(1, side.length));
    const all = sides.map((side) => {
      if (!side.raw.disk) return {bars: [], users: []};
      const {users, slots} = side.raw.disk;
      const width = side.raw.width_ns;
      const names = users.number.map((_, row) => nameOf(users, row));
      const place = new Map(users.number.map((number, row) => [number, row]));
      const bars = slots.bin.map((bin, cell) => ({bin, name: names[place.get(slots.number[cell])], from: bin * width, to: Math.min((bin + 1) * width, side.length), value: of(slots, cell, width)})).filter(({value}) => value);
      return {bars, users: names.map((name, row) => ({name, bios: users.bios[row], bytes: users.bytes[row], ns: users.device_ns[row]}))};
    });
    const sums = all.map(({bars}) => bars.reduce((found, {bin, value}) => found.set(bin, (found.get(bin) ?? 0) + value), new Map()));
    const names = [...new Set(all.flatMap(({users}) => users.map(({name}) => name)))].filter((name) => !name.startsWith(REST));
    const rest = [...new Set(all.flatMap(({users}) => users.map(({name}) => name)))].filter((name) => name.startsWith(REST));
    return {
      all, domain: [...names, ...rest], colours: [...names.map((_, place) => (place < COLOURS ? `var(--c${place + 1})` : 'var(--muted)')), ...rest.map(() => 'var(--muted)')],
      max: Math.max(0, ...sums.flatMap((one) => [...one.values()])), ends: state.times === 'each' ? ends : ends.map(() => Math.max(...ends)),
    };
  },
  draw(side, state, {width, scale, place, compared}) {
    const {bars, users} = scale.all[place];
    if (!side.raw.disk) return [h('p.note', {}, `Not known: ${reason([side])}`)];
    const measure = MEASURES[state.disk];
    const {domain, colours, max} = scale;
    const axis = timeAxis(0, scale.ends[place], width);
    const values = niceTicks(max, measure.unit, 3);
    const unit = (value) => (measure.unit === 'ratio' ? format.level(value) : format.text(value, measure.unit));
    const chart = plot({
      width, height: HEIGHT, marginTop: 20, ariaLabel: `${measure.label} by process and control group over time, ${side.name}`,
      x: {domain: [0, scale.ends[place]], type: 'linear'}, y: {domain: [0, max || 1], type: 'linear'}, color: {domain, range: colours},
      marks: [
        Plot.gridY(values, {stroke: 'var(--grid)', strokeOpacity: 1}),
        Plot.axisY(values, {tickFormat: unit, label: measure.label, labelArrow: 'none', tickSize: 0}),
        Plot.axisX(axis.values, {tickFormat: axis.text, label: axis.label, labelAnchor: 'center', labelArrow: 'none', labelOffset: 36}),
        Plot.rectY(bars, {x1: 'from', x2: 'to', y: 'value', fill: 'name', inset: 0.3, title: ({name, value, from, to}) => `${format.range(from, to)}\n${name}: ${unit(value)}`, tip: {fill: 'var(--card)', stroke: 'var(--line)'}, order: domain}),
        Plot.ruleY([0], {stroke: 'var(--line)'}),
      ],
    });
    return [
      compared ? null : neighboursOf(side),
      chart,
      h('ul.legend.users', {}, users.map(({name, bios, bytes, ns}) => h('li', {'data-user': name, 'data-value': ns}, h('span.swatch.by', {style: {background: colours[domain.indexOf(name)]}}), h('span', {}, h('b', {}, name), `: ${format.ns(ns)} at the device, ${format.counted(bios, 'bio')}, ${format.bytes(bytes)}`)))),
      table(`Who used the disk, as a table${side.total > 1 ? `, ${side.name}` : ''}`, ['begin', 'who', measure.label], () => bars.map(({from, name, value}) => [format.ns(from), name, unit(value)])),
    ];
  },
};

const reason = (sides) => sides.at(-1).raw.why.bystanders ?? 'no bio has a known device and completion.';

function nameOf({process, cgroup, what, users}, row) {
  if (users[row] > 1) return `${REST} (${format.count(users[row])})`;
  // The root says nothing: all processes are below it.
  const group = cgroup[row] && cgroup[row] !== '/' ? ` in ${format.printable(cgroup[row])}` : '';
  return `${format.printable(process[row] || '[no name]')}${group}: ${WHAT[what[row]]}`;
}
