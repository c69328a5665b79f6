// The details panel of a slice of a sync, of a bio, or of a wait of a write. It shows what Syncline knows of the slice, above what the UI shows of any.

import m from 'mithril';
import type {Database, Parameters} from '../logic/database';
import {type BioView, readBio} from '../logic/bio';
import {duration} from '../logic/format';
import {num} from '../logic/rows';
import {type Bystander, ofSlice, type Other, readSync, type SyncView} from '../logic/sync';
import {ofWrite, readWrite, type WriteView} from '../logic/write';
import type {DetailsPanel, Trace, TrackEventSelection} from '../perfetto';
import type {Focus} from './focus';
import {bar, facts, legend, link, table} from './parts';

// So many fit above the facts, so that both are seen without scrolling.
const FEW_BIOS = 3;

export class SyncPanel implements DetailsPanel {
  private view: SyncView | null = null;
  private write: WriteView | null = null;
  private bio: BioView | null = null;

  constructor(
    private readonly trace: Trace,
    private readonly db: Database,
    private readonly focus: Focus,
    private readonly usual: DetailsPanel | undefined,
  ) {}

  async load(selection: TrackEventSelection): Promise<void> {
    await this.usual?.load?.(selection);
    const found = await ofSlice(this.db, selection.eventId);
    this.view = found && (await readSync(this.db, found.syncId, found.bioId));
    if (this.view) this.focus.set({sliceId: this.view.sliceId, ts: this.view.ts, ns: this.view.ns ?? 0}, this.view.syncId);
    this.bio = found ? null : await readBio(this.db, selection.eventId);
    const waitId = found ? null : await ofWrite(this.db, selection.eventId);
    this.write = waitId === null ? null : await readWrite(this.db, waitId);
  }

  render(): m.Children {
    return [this.view && syncContent(this.trace, this.view, (other) => this.goToBio(other)), this.bio && bioContent(this.trace, this.bio), this.write && writeContent(this.trace, this.write), this.usual?.render()];
  }

  // The bio of a bystander that was in flight the longest meanwhile.
  private async goToBio({row}: Bystander): Promise<void> {
    const of = {sync_id: this.view!.syncId, comm: row['comm'], process: row['process'], cgroup: row['cgroup']} as Parameters;
    const slice = num((await this.db.query('ahead-bio', of))[0]?.['slice_id']);
    if (slice !== null) this.trace.selection.selectSqlEvent('slice', slice, {scrollToSelection: true});
  }
}

// Makes a label a link to its slice. Without a slice, it stays plain text.
type Go = (sliceId: number | null, label: string) => m.Children;

function goIn(trace: Trace): Go {
  return (sliceId, label) => sliceId === null ? label : link(label, () => trace.selection.selectSqlEvent('slice', sliceId, {scrollToSelection: true}));
}

function syncTable(others: readonly Other[], go: Go): m.Children {
  return table(['sync', 'thread', 'length', 'in common'], others.map((other) => [go(other.sliceId, other.what), other.thread, other.length, other.common]));
}

function bioContent(trace: Trace, view: BioView): m.Children {
  return m('.syncline.syncline-bio', [
    m('h1', view.title),
    m('.syncline-columns', [
      m('div', m('h2', 'Bio of no known sync'), facts(view.facts)),
      view.syncs.length > 0 && m('div', m('h2', `Syncs in flight while the device had it: ${view.syncsInAll}`), syncTable(view.syncs, goIn(trace))),
    ]),
  ]);
}

function writeContent(trace: Trace, view: WriteView): m.Children {
  const go = goIn(trace);
  return m('.syncline.syncline-write', [
    m('h1', go(view.sliceId, view.title)),
    m('.syncline-columns', [
      m('div', m('h2', 'Wait of a write'), facts(view.facts)),
      view.syncs.length > 0 && m('div', m('h2', `Syncs for whose work it waits: ${view.syncsInAll}`), syncTable(view.syncs, go)),
    ]),
  ]);
}

function syncContent(trace: Trace, view: SyncView, goToBio: (other: Bystander) => void): m.Children {
  const go = goIn(trace);
  const boxes = view.segments.map(({name, ns, left, width, colour}) => ({left, width, colour, label: name, hint: `${name}: ${duration(ns)}`}));
  const bios = view.bios.length > 0 && [
    m('h2', `Bios: ${view.bios.length}`),
    table(
      ['', 'after', 'length', 'queue', 'device', 'size', 'flags', 'place', 'relation', ''],
      view.bios.map((bio) => [
        go(bio.sliceId, `bio ${bio.id}`), bio.after, bio.length, bio.queue, bio.device, bio.size, bio.flags, bio.place, bio.confidence, bio.problem,
      ]),
      (row) => view.bios[row]!.isSelected,
    ),
  ];
  return m('.syncline.syncline-sync', [
    m('h1', go(view.sliceId, view.title)),
    boxes.length > 0 && [bar(boxes), legend(view.phases)],
    view.bios.length <= FEW_BIOS && bios,
    m('.syncline-columns', [
      m('div', m('h2', 'Sync'), facts(view.facts)),
      view.bystanders.length > 0 &&
        m('div', m('h2', 'Ahead of it at the device'), table(
          ['who', 'at most', 'bios', 'for', 'file'],
          view.bystanders.map((other) => [other.isOthers ? link(other.who, () => goToBio(other)) : other.who, other.ahead, other.amount, other.what, other.path]),
        )),
      view.waits.length > 0 &&
        m('div', m('h2', 'Waits for the journal and the cache flush'), table(
          ['wait', 'length', 'commit', 'who else'],
          view.waits.map((wait) => [wait.what, wait.length, wait.commit, wait.others]),
        )),
      view.others.length > 0 &&
        m('div', m('h2', `Syncs in flight at the same time: ${view.othersInAll}`), syncTable(view.others, go)),
      view.stack.length > 0 && m('div', m('h2', 'Stack, innermost first'), [...view.stack].reverse().map((frame) => m('p', frame))),
    ]),
    view.bios.length > FEW_BIOS && bios,
  ]);
}
