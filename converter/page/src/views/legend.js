// The legend of phases. The first one on a page says what each phase is; the others refer to it.

import * as format from '../format.js';
import {h} from '../dom.js';
import {phaseClass, phaseName} from '../phases.js';

export const FIRST = 'phase-legend';

// `words` says what each phase is, and `shares` has its part of the time.
export function explainedLegend(phases, words, shares) {
  return h('ul.legend.explained', {id: FIRST}, phases.map((phase) => h('li', {},
    h('span', {class: `swatch ${phaseClass(phase)}`}),
    h('span', {}, h('b', {}, phaseName(phase)), shares.has(phase) ? ` ${format.share(shares.get(phase))}` : null, words[phase] ? `: ${words[phase]}` : null))));
}

export function legend(phases) {
  if (!phases.length) return null;
  return h('ul.legend', {}, phases.map((phase) => h('li', {}, h('span', {class: `swatch ${phaseClass(phase)}`}), phaseName(phase))),
    h('li.hint', {}, h('a', {href: `#${FIRST}`}, 'what these are')));
}
