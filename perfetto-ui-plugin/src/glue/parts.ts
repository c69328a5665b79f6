// Pieces of pages that several views use.

import m from 'mithril';
import {duration, percent} from '../logic/format';
import {type Part, textOn} from '../logic/phases';

/** The style sheet of the plugin, which is added to the page once. */
export function addStyle(): void {
  const id = 'syncline-style';
  if (document.getElementById(id)) return;
  const style = document.createElement('style');
  style.id = id;
  style.textContent = STYLE;
  document.head.append(style);
}

export function facts(rows: ReadonlyArray<readonly [string, string]>): m.Children {
  return m('table.syncline-facts', rows.map(([name, value]) => m('tr', m('th', name), m('td', value))));
}

export function table(head: readonly m.Children[], rows: ReadonlyArray<readonly m.Children[]>, isMarked: (row: number) => boolean = () => false): m.Children {
  return m(
    'table.syncline-table',
    m('thead', m('tr', head.map((name) => m('th', name)))),
    m('tbody', rows.map((cells, row) => m('tr', {class: isMarked(row) ? 'syncline-marked' : ''}, cells.map((cell) => m('td', cell))))),
  );
}

/** A button that looks like a link. */
export function link(label: string, go: () => void): m.Children {
  return m('a.syncline-link', {href: '#', onclick: (event: Event) => (event.preventDefault(), go())}, label);
}

/** Boxes side by side to scale, each with what a pointer on it shows. */
export function bar(boxes: ReadonlyArray<{left: number; width: number; colour: string; label: string; hint: string}>): m.Children {
  return m(
    '.syncline-bar',
    boxes.map(({left, width, colour, label, hint}) =>
      m('.syncline-box', {title: hint, style: {left: `${left * 100}%`, width: `${width * 100}%`, background: colour, color: textOn(colour)}}, width > 0.06 ? label : ''),
    ),
  );
}

/** The parts of a whole as one bar. */
export function shareBar(parts: readonly Part[]): m.Children {
  let left = 0;
  return bar(
    parts.map(({name, ns, share, colour}) => {
      const box = {left, width: share, colour, label: name, hint: `${name}: ${duration(ns)}, ${percent(share)}`};
      left += share;
      return box;
    }),
  );
}

export function legend(parts: readonly Part[]): m.Children {
  return m(
    '.syncline-legend',
    parts.map(({name, ns, share, colour}) => m('span', m('i', {style: {background: colour}}), `${name} ${duration(ns)} (${percent(share)})`)),
  );
}

const STYLE = `
.syncline { padding: 8px 12px; font-size: 13px; line-height: 1.45; user-select: text; }
.syncline h1 { font-size: 15px; font-weight: 500; margin: 0 0 6px; overflow-wrap: anywhere; }
.syncline h2 { font-size: 13px; font-weight: 500; margin: 12px 0 4px; }
.syncline p { margin: 2px 0; }
.syncline .syncline-columns { display: flex; flex-wrap: wrap; gap: 4px 32px; align-items: flex-start; }
.syncline table { border-collapse: collapse; }
.syncline th { text-align: left; font-weight: 400; opacity: 0.7; padding: 1px 12px 1px 0; vertical-align: top; }
.syncline td { padding: 1px 12px 1px 0; vertical-align: top; overflow-wrap: anywhere; }
.syncline .syncline-table tr:hover td { background: rgba(128, 128, 128, 0.15); }
.syncline .syncline-marked td { font-weight: 600; }
.syncline .syncline-link { color: var(--pf-color-accent, #1967d2); cursor: pointer; text-decoration: none; }
.syncline .syncline-bar { position: relative; height: 22px; margin: 4px 0; background: rgba(128, 128, 128, 0.2); }
.syncline .syncline-box { position: absolute; top: 0; bottom: 0; min-width: 1px; overflow: hidden; white-space: nowrap; color: #000;
  font-size: 11px; line-height: 22px; padding: 0; text-indent: 4px; box-sizing: border-box; border-right: 1px solid rgba(255, 255, 255, 0.6); }
.syncline .syncline-legend span { display: inline-block; margin-right: 14px; white-space: nowrap; }
.syncline .syncline-legend i { display: inline-block; width: 10px; height: 10px; margin-right: 5px; }
.syncline .syncline-flame { position: relative; }
.syncline .syncline-flame .syncline-box { height: 18px; line-height: 18px; bottom: auto; }
.pf-theme-provider--dark .syncline .syncline-link { color: var(--pf-color-primary, #8ab4f8); }
.syncline .syncline-mini { width: 220px; }
.syncline .syncline-mini .syncline-bar { height: 16px; margin: 1px 0; }
.syncline .syncline-mini .syncline-box { line-height: 16px; }
.syncline select, .syncline button, .syncline input { font: inherit; color: inherit; background: transparent; border: 1px solid rgba(128, 128, 128, 0.5); }
.syncline option { color: #000; }
/* Of the UI that is installed with Syncline, nothing of which concerns a recording of Syncline: syncing of tabs, sources of Python. */
.pf-statusbar, .pf-details-shell .pf-grid-layout h1 { display: none; }
`;
