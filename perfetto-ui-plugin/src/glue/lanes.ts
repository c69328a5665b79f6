// The first view: what is pinned (the slowest syncs, the inside of the selected one, who used the disk, the journal, latency over time), and below it a lane for each
// thread, by the time that it waited.

import m from 'mithril';
import type {Database} from '../logic/database';
import {type Device, devices} from '../logic/disk';
import {baseName, duration, short} from '../logic/format';
import {heat, range, type Range, rowOf} from '../logic/heat';
import {boxes, fitting, itemAt, type Item, latencyColour} from '../logic/lanes';
import {hash, phaseColour, phaseName, textOn} from '../logic/phases';
import {num, type Row, text} from '../logic/rows';
import {MOST, readSlowest} from '../logic/slowest';
import {slowestBios} from '../logic/slowest_bios';
import type {RenderContext, Renderer, TimeScale, Trace, TrackNode, Workspace} from '../perfetto';
import {FONT, scaleOf, tag, theme} from './canvas';
import {DiskTrack} from './disk';
import type {Focus} from './focus';
import {InsideTrack} from './inside';
import {outline, SlowestTab, SlowestTrack} from './slowest';
import {SlowestBiosTab} from './slowest_bios';

const PREFIX = 'dev.syncline.Sync/';
const TAB = 'dev.syncline.Sync#Slowest';
const BIOS_TAB = 'dev.syncline.Sync#SlowestBios';
// More lanes than anybody compares at one look.
const MOST_LANES = 30;
const LANE_HEIGHT = 24;
const HEAT_HEIGHT = 64;
const HEAT_ROWS = 16;
const HEAT_COLUMN = 8;
// A sync where no phase covers it.
const PLAIN = '#dddddd';
// Tracks of a trace that belong to the first view, if it has them; of several, the first ones.
const JOURNAL = /^Journal /;
const MOST_JOURNALS = 1;
const MOST_DEVICES = 2;

export const COLOURS = ['phase', 'file', 'latency'] as const;
type Colour = (typeof COLOURS)[number];

interface Shared {
  readonly trace: Trace;
  readonly db: Database;
  readonly focus: Focus;
  /** The times of the lanes are since this one. */
  readonly origin: bigint;
  readonly latency: Range;
  colour: Colour;
}

/** Adds the tracks, and tells `lanes` of each whose syncs it shows (see OwnTracks). The other plugins must have made theirs. */
export async function addLanes(trace: Trace, db: Database, focus: Focus, lanes: Map<string, number | null>): Promise<void> {
  const workspace = trace.currentWorkspace ?? trace.workspace;
  if (workspace === undefined) return;
  const makeNode = nodes(workspace);
  if (makeNode === null) return;
  const syncs = await db.query('latencies');
  const places = await db.query('places');
  const origin = earliest([syncs[0], ...places]);
  if (origin === null) return;

  const pinned = makeNode({name: 'Pinned above by Syncline', isSummary: true, collapsed: true});
  const track = (group: TrackNode, name: string, renderer: Renderer, sync: number | null) => {
    const uri = `${PREFIX}${name}`;
    lanes.set(uri, sync);
    trace.tracks.registerTrack({uri, renderer});
    const node = makeNode({name, uri});
    group.addChildLast(node as never);
    return node;
  };
  const pin = (name: string, renderer: Renderer) => workspace.pinTrack(track(pinned, name, renderer, null) as never);

  if (syncs.length > 0) {
    const slowest = await readSlowest(db);
    pin(slowest.length < syncs.length ? `${slowest.length} slowest syncs` : 'Syncs', new SlowestTrack(focus, origin, slowest));
    pin('Inside the selected sync', new InsideTrack(trace, db, focus, origin));
    trace.tabs.registerTab({uri: TAB, content: new SlowestTab(focus, slowest, origin, syncs.length)});
    trace.tabs.addDefaultTab(TAB);
    trace.tabs.showTab(TAB);
    // The panel of the sync that is selected answers more.
    if (trace.selection.selection.kind === 'track_event') trace.tabs.showTab('current_selection');
  }
  const names = new Map((await db.query('devices')).map((row) => [text(row['dev'])!, text(row['name'])!]));
  if (syncs.length === 0) {
    trace.tabs.registerTab({uri: BIOS_TAB, content: new SlowestBiosTab(focus, slowestBios(await db.query('slowest-bios', {most: MOST}), names))});
    trace.tabs.addDefaultTab(BIOS_TAB);
    trace.tabs.showTab(BIOS_TAB);
  }
  // Whose each bio is takes long to find, and the other tracks need not wait for it.
  let read: Promise<Device[]> | undefined;
  const used = async (dev: string) => (await (read ??= db.query('disk').then((rows) => devices(rows, origin)))).find((device) => device.dev === dev) ?? null;
  for (const place of places.slice(0, MOST_DEVICES)) {
    const dev = text(place['place'])!;
    pin(`Who used ${deviceName(dev, names)}`, new DiskTrack(trace, db, focus, origin, dev, () => used(dev)));
  }
  workspace.flatTracks.filter(({name, uri}) => uri !== undefined && JOURNAL.test(name)).slice(0, MOST_JOURNALS).forEach((node) => workspace.pinTrack(node as never));
  if (syncs.length > 0) await addThreads();
  workspace.addChildLast(pinned as never);
  focus.showSelected();

  async function addThreads(): Promise<void> {
    const points = syncs.map((row) => ({start: since(row, origin!), length: num(row['dur_ns'])!}));
    const hasPhases = (await db.query('has-phases')).length > 0;
    const shared: Shared = {trace, db, focus, origin: origin!, latency: range(points)!, colour: hasPhases ? 'phase' : 'latency'};
    pin('Latency of syncs', new HeatTrack(shared, points));
    const threads = await db.query('threads');
    const group = makeNode!({name: 'Time in syncs by thread, longest first', isSummary: true, collapsed: false});
    let first: TrackNode | undefined;
    for (const row of threads.slice(0, MOST_LANES)) {
      const name = [text(row['comm']), text(row['tid'])].filter((part) => part !== null).join(' ') || 'thread not known';
      const node = track(group, `${name}: ${duration(num(row['time_ns']))} in ${short(num(row['syncs'])!)}`, new LaneTrack(shared, row), num(row['sync_id'])!);
      first ??= node;
    }
    workspace!.addChildFirst(group as never);
    // The UI has scrolled to the selected sync. These tracks have moved that, and they come before it.
    trace.scrollTo({track: {uri: first!.uri!, expandGroup: true}});
    addColours(shared);
  }
}

function addColours(shared: Shared): void {
  for (const colour of COLOURS) {
    shared.trace.commands.registerCommand({
      id: `dev.syncline.Sync#ColourBy_${colour}`,
      name: `Syncline: colour syncs by ${colour}`,
      callback: () => {
        shared.colour = colour;
        shared.trace.raf.scheduleFullRedraw();
      },
    });
  }
}

function deviceName(dev: string, names: ReadonlyMap<string, string>): string {
  return dev === '' ? 'the disk' : names.get(dev) ?? `device ${dev}`;
}

// The class of nodes is not in the interface of a trace, but each node is an instance of it.
function nodes(workspace: Workspace): ((args: {name: string; uri?: string; isSummary?: boolean; collapsed?: boolean}) => TrackNode) | null {
  const Node = workspace.flatTracks[0]?.constructor as (new (args: {}) => TrackNode) | undefined;
  return Node === undefined ? null : (args) => new Node(args);
}

function earliest(rows: ReadonlyArray<Row | undefined>): bigint | null {
  let found: bigint | null = null;
  for (const row of rows) {
    const ts = row === undefined ? null : BigInt(row['ts_ns'] as bigint);
    if (ts !== null && (found === null || ts < found)) found = ts;
  }
  return found;
}

function since(row: Row, origin: bigint): number {
  return Number(BigInt(row['ts_ns'] as bigint) - origin);
}

class HeatTrack implements Renderer {
  constructor(
    private readonly shared: Shared,
    private readonly points: ReadonlyArray<{start: number; length: number}>,
  ) {}

  getHeight = (): number => HEAT_HEIGHT;

  render = (context: RenderContext): void => {
    const {ctx, size} = context;
    const scale = scaleOf(context, this.shared.origin);
    const {latency, focus, origin} = this.shared;
    const height = size.height / HEAT_ROWS;
    const columns = Math.max(Math.floor(size.width / HEAT_COLUMN), 1);
    const {cells, most} = heat(this.points, scale, latency, columns, HEAT_ROWS);
    for (const cell of cells) {
      const share = Math.log(cell.count + 1) / Math.log(most + 1);
      ctx.fillStyle = `hsl(215, 70%, ${Math.round(80 - 55 * share)}%)`;
      ctx.fillRect(cell.column * HEAT_COLUMN, size.height - (cell.row + 1) * height, HEAT_COLUMN, height);
    }
    // Those that are long enough on the screen show how long they are.
    ctx.fillStyle = 'hsl(215, 70%, 45%)';
    for (const {start, length} of this.points) {
      const [left, right] = [start, start + length].map((time) => ((time - scale.from) * size.width) / (scale.to - scale.from)) as [number, number];
      if (right - left < HEAT_COLUMN || right < 0 || left > size.width) continue;
      ctx.fillRect(left, size.height - (rowOf(length, latency, HEAT_ROWS) + 1) * height, right - left, height);
    }
    outline(context, focus, origin, 0, size.height);
    const colours = theme();
    tag(context, colours, duration(latency.high), 2, 1);
    // Half of a logarithmic scale.
    tag(context, colours, duration(Math.sqrt(latency.low * latency.high)), 2, size.height / 2 - 7);
    tag(context, colours, duration(latency.low), 2, size.height - 14);
  };
}

class LaneTrack implements Renderer {
  private readonly items: Partial<Record<Colour, readonly Item[]>> = {};
  private readonly reading = new Set<Colour>();
  private hovered: Item | null = null;

  constructor(
    private readonly shared: Shared,
    private readonly thread: Row,
  ) {}

  getHeight = (): number => LANE_HEIGHT;

  render = (context: RenderContext): void => {
    const items = this.items[this.shared.colour];
    if (items === undefined) return this.startReading(this.shared.colour);
    const {ctx, size} = context;
    ctx.font = FONT;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    for (const {left, width, item, busy} of boxes(items, scaleOf(context, this.shared.origin))) {
      ctx.globalAlpha = 0.25 + 0.75 * busy;
      ctx.fillStyle = item.colour;
      ctx.fillRect(left, 2, Math.max(width - (width > 3 ? 1 : 0), 1), size.height - 4);
      ctx.globalAlpha = 1;
      const name = width > 24 ? fitting(item.label, width - 8, (text) => ctx.measureText(text).width) : '';
      if (name) {
        ctx.fillStyle = item.colour.startsWith('#') ? textOn(item.colour) : '#000';
        ctx.fillText(name, left + 4, size.height / 2);
      }
    }
    const focused = this.shared.focus.get();
    if (items.some(({sliceId}) => sliceId !== null && sliceId === focused?.sliceId)) outline(context, this.shared.focus, this.shared.origin, 1, size.height - 2);
  };

  onMouseMove = (event: {x: number; timescale: TimeScale}): void => {
    this.hovered = this.at(event);
  };

  onMouseOut = (): void => {
    this.hovered = null;
  };

  onMouseClick = (event: {x: number; timescale: TimeScale}): boolean => {
    const sliceId = this.at(event)?.sliceId ?? null;
    if (sliceId === null) return false;
    this.shared.trace.selection.selectSqlEvent('slice', sliceId, {scrollToSelection: false, switchToCurrentSelectionTab: true});
    return true;
  };

  renderTooltip = (): m.Children => this.hovered && m('div', m('div', `${this.hovered.label}, ${duration(this.hovered.length)}`), this.hovered.hint && m('div', this.hovered.hint));

  private at({x, timescale}: {x: number; timescale: TimeScale}): Item | null {
    const items = this.items[this.shared.colour];
    const {from, to} = scaleOf({timescale, size: {width: 1}}, this.shared.origin);
    return items ? itemAt(items, from + x * (to - from), 2 * (to - from)) : null;
  }

  private startReading(colour: Colour): void {
    if (this.reading.has(colour)) return;
    this.reading.add(colour);
    this.read(colour)
      .then((items) => {
        this.items[colour] = items;
        this.shared.trace.raf.scheduleFullRedraw();
      })
      .catch((error: unknown) => console.error('syncline:', error));
  }

  private async read(colour: Colour): Promise<Item[]> {
    const {db, origin, latency} = this.shared;
    const of = {tid: num(this.thread['tid']), comm: text(this.thread['comm'])};
    const rows = await db.query('lane', of);
    const syncs = rows.map((row): Item => {
      const path = text(row['path']);
      const length = num(row['dur_ns'])!;
      return {
        start: since(row, origin),
        length,
        hint: path,
        isWhole: colour === 'phase',
        colour: colour === 'phase' ? PLAIN : colour === 'file' ? fileColour(path) : latencyColour(length, latency.low, latency.high),
        label: colour === 'latency' ? duration(length) : baseName(path) ?? 'file not known',
        sliceId: num(row['slice_id']),
      };
    });
    if (colour !== 'phase') return syncs;
    const whole = new Map(syncs.map((sync) => [sync.sliceId, `of ${duration(sync.length)} ${sync.hint ?? sync.label}`]));
    const phases = (await db.query('lane-phases', of)).map((row): Item => {
      const name = text(row['phase'])!;
      const sliceId = num(row['slice_id']);
      return {start: since(row, origin), length: num(row['dur_ns'])!, colour: phaseColour(name), label: phaseName(name), sliceId, hint: whole.get(sliceId) ?? null};
    });
    // What no phase covers is not explained: the sync shows there.
    return [...syncs, ...phases].sort((a, b) => a.start - b.start || b.length - a.length);
  }
}

function fileColour(path: string | null): string {
  return path === null ? '#bbbbbb' : `hsl(${hash(path) % 360}, 60%, 65%)`;
}
