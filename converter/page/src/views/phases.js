// Where the time went: the phases of the selected syncs, of all together and of those with the most time.

import * as format from '../format.js';
import {choice, h} from '../dom.js';
import {OTHERS} from '../model.js';
import {inOrder, phaseClass} from '../phases.js';
import {legend} from './legend.js';
import {table} from './numbers.js';

const ROWS = 8;
// Said where the report has no words for it.
const NO_PHASES = 'they need the start and the end of each sync.';
const GROUPS = [['file', 'file'], ['thread', 'thread'], ['time', 'time']];

export const phasesView = {
  id: 'phases',
  title: 'Where the time went, by file, thread and time',
  help: 'Each instant of a sync, from the start of the file system\'s sync function to its end, is in one phase. Of what ran in parallel, the part that ended last counts. The first bar has all selected syncs. The length of each bar is the summed time, to one scale.',
  missing: (sides) => (sides.some((side) => side.phaseNames.length) ? null : sides.at(-1).raw.why.phases || NO_PHASES),
  controls: (state, set, sides) => (sides.some((side) => side.phaseNames.length) ? [choice('Below by', GROUPS, state.phasesBy, (phasesBy) => set({phasesBy}))] : []),
  scale(sides, state) {
    // Groups that share one row are not a file or a thread to compare with the others. The note has their sum.
    const all = sides.map((side) => {
      const found = side.phases(state, state.phasesBy);
      const isOthers = ({key}) => ({file: side.files, thread: side.threads}[state.phasesBy]?.[key].key === OTHERS);
      return {...found, groups: found.groups.filter((group) => !isOthers(group)), others: found.groups.find(isOthers)};
    });
    const shown = inOrder(new Set(all.flatMap(({total}) => [...total.keys()])));
    return {all, shown, max: Math.max(1, ...all.map(({sum}) => sum))};
  },
  draw(side, state, {scale, place, set}) {
    const {total, groups, others, sum} = scale.all[place];
    if (!side.phaseNames.length) return [h('p.note', {}, `This input holds no phases: ${side.raw.why.phases || NO_PHASES}`)];
    if (side.select(state).byBucket) return [h('p.note', {}, 'Not known for a selection by latency or amount: this page holds only counts. The SQL of the selection gives the syncs.')];
    if (!sum) return [h('p.note', {}, 'No selected sync has a known start and end.')];
    const largest = [...total].filter(([phase]) => phase !== 'residue').sort((a, b) => b[1] - a[1]).slice(0, 3);
    const answer = `${format.ns(sum)} in sync: ${largest.map(([phase, ns]) => `${format.share(ns / sum)} ${phase}`).join(', ')}${total.get('residue') ? `, ${format.share(total.get('residue') / sum)} not explained` : ''}.`;
    const rows = groups.slice(0, groups.length > ROWS + 1 ? ROWS : groups.length);
    const label = {file: (key) => side.files[key], thread: (key) => side.threads[key]}[state.phasesBy];
    const bars = rows.flatMap(({key, phases, sum}) => {
      const entry = label?.(key);
      const name = entry ? format.printable(entry.label) : format.range(key * side.width, (key + 1) * side.width);
      const selection = entry ? {[state.phasesBy]: state[state.phasesBy] === entry.key ? null : entry.key} : {time: [key * side.width, (key + 1) * side.width]};
      return [
        h('button.lane.middle', {'data-key': `phases-${side.index}-${state.phasesBy}-${key}`, title: name, onclick: () => set(selection)}, h('bdi', {}, name)),
        bar(phases, sum, scale, sum / scale.max, `${name}: ${format.ns(sum)}`), h('span.sum', {}, format.ns(sum)),
      ];
    });
    const more = groups.length - rows.length;
    return [
      h('p.answer', {'data-value': sum}, answer),
      h('div.shares', {}, h('span.lane', {}, 'all selected'), bar(total, sum, scale, sum / scale.max, `All selected syncs: ${format.ns(sum)}`), h('span.sum', {}, format.ns(sum)), bars),
      legend(scale.shown),
      others ? h('p.note', {}, `${label(others.key).label}, together: ${format.ns(others.sum)}.`) : null,
      more > 0 ? h('p.note', {}, `${format.count(more)} more ${state.phasesBy === 'time' ? 'bins of time' : `${state.phasesBy}s`} have less time each.`) : null,
      table('Phases as a table', ['phase', 'time', 'share'], () => inOrder(total.keys()).map((phase) => [phase, format.ns(total.get(phase)), format.share(total.get(phase) / sum)])),
    ];
  },
};

// Returns one stacked bar. `length` is its part of the full width.
function bar(phases, sum, {shown}, length, name) {
  const parts = shown.filter((phase) => phases.get(phase)).map((phase) => h('span', {
    class: phaseClass(phase), 'data-phase': phase, 'data-value': phases.get(phase), title: `${phase}: ${format.ns(phases.get(phase))} (${format.share(phases.get(phase) / sum)})`,
    style: {flexGrow: phases.get(phase) / sum},
  }));
  return h('div.room', {}, h('div.stack', {role: 'img', 'aria-label': `${name}. ${shown.filter((phase) => phases.get(phase)).map((phase) => `${phase} ${format.share(phases.get(phase) / sum)}`).join(', ')}`, style: {width: `${100 * length}%`}}, parts));
}
