// The answer: who waited, for what, for which file, and who else was at the device. The sentences are those of `syncline report` and
// `syncline diff`; they are of the whole run, and a selection does not change them.

import * as format from '../format.js';
import {command} from '../command.js';
import {h} from '../dom.js';
import {inOrder, phaseClass, phaseName} from '../phases.js';

// Part of the time of the others' syncs, from which on a neighbour stands out.
const NOTABLE = 0.1;

export function answerView(sides, compared, {set}) {
  const now = sides.at(-1).raw.answer;
  if (!now.sentences && !compared) return null;
  const [lines, bars] = compared ? [compared.sentences, compared.phases.map((phases, place) => [place ? 'new' : 'base', phases])] : [[now.sentences.runs, now.sentences.cause, now.sentences.total, now.sentences.devices, now.sentences.phases], [['', now.phases]]];
  const shown = bars.filter(([, phases]) => phases && Object.keys(phases).length);
  const all = inOrder(new Set(shown.flatMap(([, phases]) => Object.keys(phases))));
  return h('section.answers', {id: 'answer', 'aria-labelledby': 'answer-title'},
    h('h2', {id: 'answer-title'}, compared ? 'What changed' : 'The answer'),
    lines.filter(Boolean).map((text) => h('p.answer', {}, format.printable(text))),
    shown.length ? [
      h(`div.shares${compared ? '' : '.one'}`, {}, bars.flatMap(([name, phases]) => (phases && Object.keys(phases).length ? row(name, phases, all, shown) : [h('span.lane', {}, name), h('span.note', {}, 'The phases are not recorded.'), h('span')]))),
      h('ul.legend', {}, all.map((phase) => h('li', {}, h('span', {class: `swatch ${phaseClass(phase)}`}), phaseName(phase)))),
    ] : null,
    !compared && now.sentences.meanings ? h('ul.meanings', {}, now.sentences.meanings.map((text) => h('li', {}, format.printable(text)))) : null,
    h(`div.panes${sides.length > 1 ? '.columns' : ''}`, {}, sides.map((side) => details(side, sides.length > 1, set))));
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

function details(side, titled, set) {
  const {sentences, worst, neighbours, is_device_seen: isSeen} = side.raw.answer;
  if (!sentences?.worst) return titled ? h('div.pane', {}, h('h3', {}, side.short), h('p', {}, sentences?.total ?? '')) : steps(sentences);
  const isNotable = (neighbours?.[0]?.share ?? 0) >= NOTABLE;
  const pick = (place) => {
    const {path, comm, threads, tid} = worst[place];
    const file = side.files.find(({key}) => key === (path ?? '[unknown file]'));
    const thread = side.threads.find((one) => one.comm === (comm ?? '[no name]') && (titled || threads > 1 || side.raw.threads_table.tid[one.number] === tid));
    // A row of a folder has many files, and one of several threads has no key of its own unless threads are compared by name.
    const found = {...(file ? {file: file.key} : {}), ...(thread && (titled || threads === 1) ? {thread: thread.key} : {})};
    return Object.keys(found).length ? found : null;
  };
  return h('div.pane', {'data-side': side.index}, titled ? h('h3', {}, h('span.role', {}, side.index ? 'new' : 'base'), ` ${side.short}`) : null,
    titled ? h('p', {}, format.printable(sentences.total)) : null,
    h(`p.neighbour${isNotable ? '.some' : ''}`, {id: `neighbour-${side.index}`}, isNotable ? h('span', {'aria-hidden': 'true'}, '⚠ ') : null, lines(sentences.neighbours), isSeen ? [' ', h('a', {href: '#bystanders'}, 'All who were there')] : null),
    sentences.slowest ? h('p', {}, format.printable(sentences.slowest), ' ', h('a', {href: '#slowest'}, 'The 20 slowest')) : null,
    h('p', {}, sentences.worst_title),
    h('ol.worst', {}, sentences.worst.map((text, place) => {
      const selection = pick(place);
      return h('li', {}, format.printable(text), selection ? [' ', h('button.small', {'data-key': `worst-${side.index}-${place}`, onclick: () => set(selection)}, 'select')] : null);
    })),
    sentences.advice ? h('p.advice', {}, format.printable(sentences.advice)) : null,
    steps(sentences));
}

// What to type next: the commands with which the answer ends on a terminal.
function steps(sentences) {
  if (!sentences?.next) return null;
  return h('div.next', {}, h('p', {}, 'Go on with'), sentences.next.map((one) => command(one.shows, format.printable(one.command))));
}
