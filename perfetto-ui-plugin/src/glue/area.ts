// The tab of an area selection.

import m from 'mithril';
import {type AreaView, type Item, type OwnTracks, readArea} from '../logic/area';
import type {Database} from '../logic/database';
import {flame, type Weight, WEIGHTS} from '../logic/flame';
import {bytes, count, duration, percent} from '../logic/format';
import {hash} from '../logic/phases';
import type {AreaSelection, AreaTab, Trace} from '../perfetto';
import {facts, legend, shareBar, table} from './parts';

export class SyncAreaTab implements AreaTab {
  readonly id = 'dev.syncline.Sync#Area';
  readonly name = 'Syncs';
  readonly priority = 100;
  private shown: AreaSelection | undefined;
  private view: AreaView | undefined;
  private weight: Weight = 'time';
  // Reads one after another: all use one table.
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly trace: Trace,
    private readonly db: Database,
    private readonly own: OwnTracks,
  ) {}

  render(selection: AreaSelection): {isLoading: boolean; content: m.Children} | undefined {
    if (!isSame(selection, this.shown)) {
      this.shown = selection;
      this.view = undefined;
      this.last = this.last.then(() => this.read(selection)).catch((error: unknown) => console.error('syncline:', error));
    }
    if (this.view === undefined) return {isLoading: true, content: m('.syncline', 'reading the syncs ...')};
    return {isLoading: false, content: this.content(this.view)};
  }

  private async read(selection: AreaSelection): Promise<void> {
    if (selection !== this.shown) return;
    const view = await readArea(this.db, selection, this.own);
    if (selection !== this.shown) return;
    this.view = view;
    this.trace.raf.scheduleFullRedraw();
  }

  private content(view: AreaView): m.Children {
    if (view.syncs === 0) return m('.syncline.syncline-area', ['No sync is in flight in this area.', writes(view)]);
    return m('.syncline.syncline-area', [
      view.phases.length > 0 && [m('h2', 'Where the time went'), shareBar(view.phases), legend(view.phases)],
      m('.syncline-columns', [
        m('div', m('h2', 'Each sync counted once'), facts(view.facts)),
        m('div', m('h2', `Files: ${view.fileCount}`), items('file', view.files)),
        m('div', m('h2', `Threads: ${view.threadCount}`), items('thread', view.threads)),
      ]),
      writes(view),
      m('h2', 'Where the syncs come from, by ', m('select', {
        value: this.weight,
        onchange: (event: Event) => { this.weight = (event.target as HTMLSelectElement).value as Weight; },
      }, WEIGHTS.map((weight) => m('option', {value: weight, selected: weight === this.weight}, weight)))),
      flameGraph(view, this.weight),
    ]);
  }
}

function isSame(a: AreaSelection, b: AreaSelection | undefined): boolean {
  return b !== undefined && a.start === b.start && a.end === b.end
    && a.tracks.length === b.tracks.length && a.tracks.every((track, at) => track.uri === b.tracks[at]!.uri);
}

function items(name: string, rows: readonly Item[]): m.Children {
  return table([name, 'syncs', 'time', 'share', 'longest'], rows.map((row) => [row.name, row.syncs, row.time, percent(row.share), row.longest]));
}

function writes(view: AreaView): m.Children {
  return view.writesInAll !== null && [
    m('h2', `Waits of writes: ${view.writesInAll}`),
    table(
      ['thread', 'waits for', 'waits', 'time', 'longest', 'made dirty'],
      view.writes.map((row) => [row.name, row.wait, row.waits, row.time, row.longest, row.amount ?? '–']),
    ),
  ];
}

function flameGraph(view: AreaView, weight: Weight): m.Children {
  const boxes = flame(view.stacks, weight);
  if (boxes.length === 0) return m('p', `No ${weight} is recorded.`);
  const shown = (value: number) => weight === 'time' ? duration(value) : weight === 'bytes' ? bytes(value) : count(value, 'sync');
  const rows = Math.max(...boxes.map((box) => box.depth)) + 1;
  return m('.syncline-flame', {style: {height: `${rows * 18}px`}}, boxes.filter((box) => box.width > 0.001).map((box) =>
    m('.syncline-box', {
      title: `${box.name}: ${shown(box.value)}, ${percent(box.width)}`,
      style: {
        top: `${box.depth * 18}px`, left: `${box.left * 100}%`, width: `${box.width * 100}%`,
        background: `hsl(${20 + (hash(box.name) % 40)}, 80%, ${68 + (hash(box.name) >> 8) % 12}%)`,
      },
    }, box.width > 0.03 ? box.name : '')));
}
