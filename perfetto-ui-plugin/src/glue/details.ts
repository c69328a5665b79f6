// The details panel of a slice of a sync: what Syncline knows of the sync, above what the UI shows of any slice.

import m from 'mithril';
import type {Database} from '../logic/database';
import {duration} from '../logic/format';
import {ofSlice, readSync, type SyncView} from '../logic/sync';
import type {DetailsPanel, Trace, TrackEventSelection} from '../perfetto';
import {bar, facts, legend, link, table} from './parts';

export class SyncPanel implements DetailsPanel {
  private view: SyncView | null = null;

  constructor(
    private readonly trace: Trace,
    private readonly db: Database,
    private readonly usual: DetailsPanel | undefined,
  ) {}

  async load(selection: TrackEventSelection): Promise<void> {
    await this.usual?.load?.(selection);
    const found = await ofSlice(this.db, selection.eventId);
    this.view = found && (await readSync(this.db, found.syncId, found.bioId));
  }

  render(): m.Children {
    return [this.view && syncContent(this.trace, this.view), this.usual?.render()];
  }
}

/** The content of the panel. */
export function syncContent(trace: Trace, view: SyncView): m.Children {
  const go = (sliceId: number | null, label: string) =>
    sliceId === null ? label : link(label, () => trace.selection.selectSqlEvent('slice', sliceId, {scrollToSelection: true}));
  const boxes = view.segments.map(({name, ns, left, width, colour}) => ({left, width, colour, label: name, hint: `${name}: ${duration(ns)}`}));
  return m('.syncline.syncline-sync', [
    m('h1', go(view.sliceId, view.title)),
    boxes.length > 0 && [bar(boxes), legend(view.phases)],
    m('.syncline-columns', [
      m('div', m('h2', 'Sync'), facts(view.facts)),
      view.waits.length > 0 &&
        m('div', m('h2', 'Waits for the journal and the cache flush'), table(
          ['wait', 'length', 'commit', 'who else'],
          view.waits.map((wait) => [wait.what, wait.length, wait.commit, wait.others]),
        )),
      view.others.length > 0 &&
        m('div', m('h2', `Syncs in flight at the same time: ${view.othersInAll}`), table(
          ['sync', 'thread', 'length', 'in common'],
          view.others.map((other) => [go(other.sliceId, other.what), other.thread, other.length, other.common]),
        )),
      view.stack.length > 0 && m('div', m('h2', 'Stack, innermost first'), [...view.stack].reverse().map((frame) => m('p', frame))),
    ]),
    view.bios.length > 0 && [
      m('h2', `Bios: ${view.bios.length}`),
      table(
        ['', 'after', 'length', 'queue', 'device', 'size', 'flags', 'place', 'relation', ''],
        view.bios.map((bio) => [
          go(bio.sliceId, `bio ${bio.id}`), bio.after, bio.length, bio.queue, bio.device, bio.size, bio.flags, bio.place, bio.confidence, bio.problem,
        ]),
        (row) => view.bios[row]!.isSelected,
      ),
    ],
  ]);
}
