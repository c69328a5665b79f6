// The slowest of the selected syncs, with their phases, and the commands that lead to each.

import * as format from '../format.js';
import {command, copyButton} from '../command.js';
import {h} from '../dom.js';
import {legend} from './legend.js';
import {inOrder, phaseClass, phaseName} from '../phases.js';

const COUNT = 20;
const LEFT = new Set(['phases, to scale', 'to scale', 'file', 'thread']);

export const slowestView = {
  id: 'slowest',
  title: 'Slowest syncs',
  help: 'The selected syncs that took longest, at most 20, each with its phases to scale. Open a row for the commands that lead to it, or to select its thread and its time.',
  missing: (sides) => (sides.some((side) => side.metric('sync_time_sum')?.value != null) ? null : 'the length of no sync is known'),
  scale(sides, state) {
    const all = sides.map((side) => side.slowest(state, COUNT));
    const longest = all.map(({rows}, place) => (rows.length ? sides[place].point(rows[0]).length : 0));
    const shown = new Set(all.flatMap(({rows}, place) => rows.flatMap((row) => [...sides[place].phasesOf(row).keys(), ...(lacking(sides[place], row) ? ['unknown'] : [])])));
    return {all, max: Math.max(1, ...longest), hasPhases: sides.map((side) => side.phaseNames.length > 0), shown: sides.some((side) => side.phaseNames.length) ? inOrder(shown) : []};
  },
  draw(side, state, {scale, place, set, compared}) {
    const {rows, isCertain} = scale.all[place];
    if (!rows.length) return [h('p.note', {}, side.counted && side.select(state).total.syncs ? `None of the ${format.count(side.raw.limits.longest)} longest syncs, which this page holds, is selected.` : 'No selected sync has a known start and end.')];
    const hasAmounts = side.knows('amount');
    const columns = ['#', 'took', scale.hasPhases[place] ? 'phases, to scale' : 'to scale', 'file', 'thread', 'at (since the first sync)', ...(hasAmounts ? ['written back'] : []), 'go on'];
    const body = rows.flatMap((row, index) => {
      const point = side.point(row);
      const key = `${side.index} ${point.run} ${point.id}`;
      const isOpen = state.opened === key;
      const toggle = () => set({opened: isOpen ? null : key});
      const line = opening(side, point);
      const shown = h(`tr${isOpen ? '.picked' : ''}`, {'data-sync': point.id, 'data-length': point.length},
        h('th', {scope: 'row'}, `${index + 1}`), h('td', {}, format.ns(point.length)), h('td.bar', {}, bar(side, row, point, scale)),
        h('td.left.path', {title: format.printable(point.file.label)}, h('bdi', {}, format.printable(point.file.label))), h('td.left.name', {}, format.printable(point.thread.label)), h('td', {}, format.ns(point.since)),
        hasAmounts ? h('td', {}, `${format.bytes(point.bytes)}${point.bios == null ? '' : ` in ${format.counted(point.bios, 'bio')}`}`) : null,
        h('td', {}, line ? copyButton(`the command that opens sync ${point.id} on the timeline`, line) : null, ' ', h('button.small', {'data-key': `open-${key}`, 'aria-expanded': String(isOpen), 'aria-label': `${isOpen ? 'Close' : 'Open'} sync ${point.id}`, onclick: toggle}, isOpen ? '▾' : '▸')));
      return isOpen ? [shown, h('tr.opened', {}, h('td.left', {colspan: columns.length}, opened(side, row, point, state, set)))] : [shown];
    });
    const note = isCertain ? `${format.count(rows.length)} of ${format.count(side.select(state).total.syncs)} selected syncs.` : `${format.counted(rows.length, 'sync')}: this page holds the ${format.count(side.raw.limits.longest)} longest of the whole run, and other selected syncs may be as slow as some that are listed.`;
    return [
      legend(scale.shown),
      h('div.scroll.tall', {tabindex: 0, role: 'group', 'aria-label': 'The slowest syncs'}, h('table.data.slow', {}, h('thead', {}, h('tr', {}, columns.map((name) => h(`th${LEFT.has(name) ? '.left' : ''}`, {scope: 'col'}, name)))), h('tbody', {}, body))),
      h('p.note', {}, note, scale.hasPhases[place] ? '' : ' This input holds no phases.', compared ? ' The bars of both sides have the same scale.' : ''),
    ];
  },
};

// The part of a sync that has no phase: the call outside the sync function, for example. 0 for an input without phases.
function lacking(side, row) {
  const known = [...side.phasesOf(row).values()].reduce((sum, ns) => sum + ns, 0);
  return side.phaseNames.length ? Math.max(0, side.point(row).length - known) : 0;
}

function bar(side, row, {length}, {max, shown}) {
  const style = {width: `${Math.max(0.5, (100 * length) / max)}%`};
  if (!side.phaseNames.length) return h('div.stack', {style}, h('span.plain', {style: {flexGrow: 1}}));
  const phases = new Map([...side.phasesOf(row), ['unknown', lacking(side, row)]]);
  const parts = shown.filter((phase) => phases.get(phase) > 0);
  return h('div.stack', {role: 'img', 'aria-label': parts.map((phase) => `${phaseName(phase)} ${format.ns(phases.get(phase))}`).join(', '), style},
    parts.map((phase) => h('span', {class: phaseClass(phase), 'data-phase': phase, 'data-value': phases.get(phase), title: `${phaseName(phase)}: ${format.ns(phases.get(phase))} (${format.share(phases.get(phase) / length)})`, style: {flexGrow: phases.get(phase) / length}})));
}

function opened(side, row, point, state, set) {
  const moment = side.moment(point);
  const run = point.run ? ` AND run = ${text(point.run)}` : '';
  const phases = inOrder(side.phasesOf(row).keys()).map((phase) => `${phaseName(phase)} ${format.ns(side.phasesOf(row).get(phase))}`);
  const from = Math.max(0, Math.floor(point.since - point.length * 0.2));
  const to = Math.ceil(point.since + point.length * 1.2);
  const step = side.counted ? side.width : 1;
  return [
    h('p', {}, `${format.printable(point.op)} by ${format.printable(point.thread.label)}${point.run ? ` in ${format.printable(point.run)}` : ''}${moment == null ? '' : `, at ${seconds(moment)} s on the clock of the log`} (sync_id ${point.id}). `,
      h('button.small', {'data-key': `there-${point.id}`, onclick: () => set({thread: point.thread.key, time: [Math.floor(from / step) * step, Math.ceil(to / step) * step], waited: null, wrote: null})}, 'Select its thread and time')),
    phases.length ? h('p', {}, `${phases.join(', ')}.`) : null,
    command('In SQL', `syncline query ${side.raw.typed} ${quoted(`SELECT * FROM syncline_sync WHERE sync_id = ${point.id}${run}`)}`),
    side.phaseNames.length ? command('Its phases', `syncline query ${side.raw.typed} ${quoted(`SELECT phase, ts_ns, dur_ns FROM syncline_phase WHERE sync_id = ${point.id}${run} ORDER BY ts_ns`)}`) : null,
    opening(side, point) ? command('On the timeline', opening(side, point)) : null,
    h('p.note', {}, `On the timeline it is on the track of ${format.printable(point.thread.label)}${moment == null ? '' : `, at ${moment} ns`}.`),
  ];
}

// The command that shows a sync first; null where the UI takes no such input. With several runs, an id stands for several syncs.
const opening = (side, {id, run}) => (side.raw.can_be_shown ? `syncline open ${side.raw.typed}${run ? '' : ` --sync ${id}`}` : null);

const text = (value) => `'${value.replaceAll("'", "''")}'`;
// What a shell takes as one word, whatever is in it.
const quoted = (name) => (/^[\w@%+=:,./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`);
const seconds = (ns) => `${ns / 1000000000n}.${String(ns % 1000000000n).padStart(9, '0')}`;
