// The figures of a chart as a table.

import {h} from '../dom.js';

export function table(title, columns, rows) {
  const details = h('details.numbers', {}, h('summary', {}, title));
  details.addEventListener('toggle', () => {
    if (!details.open || details.querySelector('table')) return;
    details.append(h('div.scroll', {tabindex: 0, role: 'group', 'aria-label': title}, h('table', {},
      h('thead', {}, h('tr', {}, columns.map((name) => h('th', {scope: 'col'}, name)))),
      h('tbody', {}, rows().map((row) => h('tr', {}, row.map((cell) => h('td', {}, cell))))))));
  });
  return details;
}
