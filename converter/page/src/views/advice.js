// What could be changed, as `syncline advise` has it. Always of the whole run.

import * as format from '../format.js';
import {command} from '../command.js';
import {h} from '../dom.js';
import {steps} from './answer.js';

export function adviceView(sides) {
  const side = sides.at(-1);
  const {advice, answer, typed, requests} = side.raw;
  if (!answer.sentences || !requests) return null;
  const titled = sides.length > 1;
  const found = advice?.found ?? [];
  return h('section', {id: 'advice', 'aria-labelledby': 'advice-title'},
    h('h2', {id: 'advice-title'}, titled ? 'What to change in new' : 'What to change'),
    advice ? null : h('p', {}, 'Among so many syncs, this page does not look for what could be left out, shared or cheaper.'),
    advice && !found.length ? h('p', {}, 'Nothing that was checked shows a sync that could be left out, shared or cheaper, or a risk.') : null,
    found.map((one) => h('article.finding', {'data-finding': one.finding},
      h('h3', {}, `${one.title} `, h('code', {}, one.finding)),
      h('p', {}, format.printable(one.seen)),
      h('p', {}, h('strong', {}, 'What helps: '), one.instead),
      h('p.note', {}, 'Cost: ', format.printable(one.cost), one.inferred ? ` Inferred: ${one.inferred}` : ''),
      one.evidence.length ? h('details', {}, h('summary', {}, `Evidence${one.evidence.length > 1 ? `: the ${one.evidence.length} costliest` : ''}`), h('ul', {}, one.evidence.map((text) => h('li', {}, format.printable(text)))), command('All of it', one.command)) : null)),
    advice?.overlap ? h('p.note', {}, advice.overlap) : null,
    advice?.none.length ? h('p.note', {}, `Checked, not found: ${advice.none.join(', ')}.`) : null,
    advice?.unchecked.length ? h('details', {}, h('summary', {}, `Not checked (${advice.unchecked.reduce((sum, {findings}) => sum + findings.length, 0)})`), h('ul', {}, advice.unchecked.map(({findings, reason}) => h('li', {}, h('b', {}, findings.join(', ')), `: ${format.printable(reason)}.`)))) : null,
    command(advice ? 'On a terminal' : 'What looks for it', `syncline advise ${typed}`),
    titled ? null : steps(side));
}
