// A tab with the bios that took longest, for recordings without syncs.

import m from 'mithril';
import {HEADINGS, type SlowBio} from '../logic/slowest_bios';
import type {Tab} from '../perfetto';
import type {Focus} from './focus';
import {link, table} from './parts';

export class SlowestBiosTab implements Tab {
  constructor(
    private readonly focus: Focus,
    private readonly bios: readonly SlowBio[],
  ) {}

  getTitle = (): string => 'Slowest bios';

  render = (): m.Children => m('.syncline.syncline-slowest', [
    m('p', 'The recording has no syncs. These bios took longest; a click leads to one.'),
    table(HEADINGS, this.bios.map(({sliceId, ts, ns, cells: [length, ...rest]}) => [sliceId === null ? length! : link(length!, () => this.focus.go({sliceId, ts, ns})), ...rest])),
  ]);
}
