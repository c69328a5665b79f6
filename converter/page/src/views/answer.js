// The answer: who waited, for what and for which file. The sentences are those of `syncline report` and `syncline diff`; they are of the
// whole run, and a selection does not change them. The view of the disks has the sentence about neighbours, and the advice what to do.

import * as format from '../format.js';
import {command} from '../command.js';
import {h} from '../dom.js';
import {inOrder, phaseClass, phaseName} from '../phases.js';
import {explainedLegend} from './legend.js';

// Part of the time of the others' syncs, from which on a neighbour stands out.
const NOTABLE = 0.1;
// Rows of the view of the slowest syncs.
const SLOWEST = 20;

export function answerView(sides, compared, {set}) {
  const now = sides.at(-1).raw.answer;
  if (!now.sentences && !compared) return null;
  const [lines, bars] = compared ? [compared.sentences, compared.phases.map((phases, place) => [place ? 'new' : 'base', phases])] : [[now.sentences.runs, now.sentences.cause, now.sentences.total, now.sentences.devices, now.sentences.phases], [['', now.phases]]];
  const shown = bars.filter(([, phases]) => phases && Object.keys(phases).length);
  const all = inOrder(new Set(shown.flatMap(([, phases]) => Object.keys(phases))));
  const words = Object.assign({}, ...sides.map((side) => side.raw.answer.sentences?.phase_words));
  const last = shown.at(-1)?.[1] ?? {};
  const shares = new Map(Object.entries(last).map(([phase, ns]) => [phase, ns / total(last)]));
  const isFirst = (text) => text === (now.sentences?.cause ?? lines.find(Boolean)) || compared;
  return h('section.answers', {id: 'answer', 'aria-labelledby': 'answer-title'},
    h('h2', {id: 'answer-title'}, compared ? 'What changed' : 'The answer'),
    lines.filter(Boolean).map((text) => h(`p${isFirst(text) ? '.answer' : ''}`, {}, format.printable(text))),
    shown.length ? [
      h(`div.shares${compared ? '' : '.one'}`, {}, bars.flatMap(([name, phases]) => (phases && Object.keys(phases).length ? row(name, phases, all, shown) : [h('span.lane', {}, name), h('span.note', {}, 'The phases are not recorded.'), h('span')]))),
      compared && shown.length > 1 ? h('p.note', {}, 'Both bars have the same scale. The shares below are those of new.') : null,
      explainedLegend(all, words, shares),
    ] : null,
    compared ? h('div.panes.columns', {}, sides.map((side) => h('div.pane', {'data-side': side.index}, h('h3', {}, h('span.role', {}, side.index ? 'new' : 'base'), ` ${side.short}`), ofSide(side, set)))) : now.sentences.worst ? null : steps(sides[0]));
}

// Who waited longest: the slowest sync, and the files and threads with the most time. In a comparison the answer has it, by side.
export function longestView(sides, compared, {set}) {
  if (compared || !sides[0].raw.answer.sentences?.worst) return null;
  return h('section.answers', {id: 'longest', 'aria-labelledby': 'longest-title'}, h('h2', {id: 'longest-title'}, 'Who waited longest'), sides[0].raw.disk ? null : neighboursOf(sides[0]), longest(sides[0], false, set));
}

function ofSide(side, set) {
  const {sentences} = side.raw.answer;
  const total = h('p', {}, format.printable(sentences?.total ?? ''));
  return sentences?.worst ? [total, neighboursOf(side), longest(side, true, set), sentences.advice ? h('p.advice', {}, format.printable(sentences.advice)) : null, steps(side)] : total;
}

function row(name, phases, all, shown) {
  const sum = total(phases);
  const longest = Math.max(...shown.map(([, one]) => total(one)));
  const parts = all.filter((phase) => phases[phase] > 0);
  // A share has its number in the bar where there is room.
  return [name ? h('span.lane', {}, name) : null, h('div.room', {}, h('div.stack.large', {role: 'img', 'aria-label': `${name} ${parts.map((phase) => `${phaseName(phase)} ${format.share(phases[phase] / sum)}`).join(', ')}`, style: {width: `${Math.max(0.3, (100 * sum) / longest)}%`}},
    parts.map((phase) => h('span', {class: phaseClass(phase), 'data-phase': phase, 'data-value': Math.round(phases[phase]), title: `${phaseName(phase)}: ${format.ns(phases[phase])} (${format.share(phases[phase] / sum)})`, style: {flexGrow: phases[phase] / sum}},
      phases[phase] / longest > 0.12 ? h('b', {}, `${phaseName(phase)} ${format.share(phases[phase] / sum)}`) : null)))), h('span.sum', {}, format.ns(sum))];
}

// A text of several lines, of which the later ones are indented.
const lines = (text) => text.split('\n').flatMap((line, number) => [number ? h('br') : null, format.printable(line.trim())]);

const total = (phases) => Object.values(phases).reduce((sum, ns) => sum + ns, 0);

// Says who else used the disks; null without a sentence.
export function neighboursOf(side) {
  const {sentences, neighbours} = side.raw.answer;
  if (!sentences?.neighbours) return null;
  const isNotable = (neighbours?.[0]?.share ?? 0) >= NOTABLE;
  return h(`p.neighbour${isNotable ? '.some' : ''}`, {id: `neighbour-${side.index}`}, isNotable ? h('span', {'aria-hidden': 'true'}, '⚠ ') : null, lines(sentences.neighbours));
}

function longest(side, titled, set) {
  const {sentences, worst} = side.raw.answer;
  const pick = (place) => {
    const {path, comm, threads, tid} = worst[place];
    const file = side.files.find(({key}) => key === (path ?? '[unknown file]'));
    const thread = side.threads.find((one) => one.comm === (comm ?? '[no name]') && (titled || threads > 1 || side.raw.threads_table.tid[one.number] === tid));
    // A row of a folder has many files, and one of several threads has no key of its own unless threads are compared by name.
    const found = {...(file ? {file: file.key} : {}), ...(thread && (titled || threads === 1) ? {thread: thread.key} : {})};
    return Object.keys(found).length ? found : null;
  };
  const known = side.metric('sync_time_sum')?.known ?? 0;
  return [
    sentences.slowest ? h('p', {}, format.printable(sentences.slowest), known > 1 ? [' ', h('a', {href: '#slowest'}, known > SLOWEST ? `The ${SLOWEST} slowest` : `All ${format.count(known)}`)] : null) : null,
    h('p', {}, sentences.worst_title),
    h('ol.worst', {}, sentences.worst.map((text, place) => {
      const selection = pick(place);
      return h('li', {}, format.printable(text), selection ? [' ', h('button.small', {'data-key': `worst-${side.index}-${place}`, onclick: () => set(selection)}, 'select')] : null);
    })),
  ];
}

// What to type next: the commands with which the answer ends on a terminal.
export function steps(side) {
  const next = side.raw.answer.sentences?.next;
  if (!next) return null;
  return h('div.next', {}, h('p', {}, 'Go on with'), next.map((one) => command(one.shows, format.printable(one.command))));
}
