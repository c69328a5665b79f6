// Tracks at the top of the timeline: latency over time, and a lane for each thread, by the time that it waited.

import m from 'mithril';
import type {Database} from '../logic/database';
import {baseName, count, duration} from '../logic/format';
import {heat, range, type Range} from '../logic/heat';
import {boxes, itemAt, type Item, latencyColour, type Scale} from '../logic/lanes';
import {hash, phaseColour, phaseName, textOn} from '../logic/phases';
import {num, type Row, text} from '../logic/rows';
import type {RenderContext, Renderer, TimeScale, Trace, TrackNode, Workspace} from '../perfetto';

const PREFIX = 'dev.syncline.Sync/';
// More lanes than anybody compares at one look.
const MOST_LANES = 30;
const LANE_HEIGHT = 24;
const HEAT_HEIGHT = 80;
const HEAT_ROWS = 16;
const HEAT_COLUMN = 8;

export const COLOURS = ['phase', 'file', 'latency'] as const;
type Colour = (typeof COLOURS)[number];

interface Shared {
  readonly trace: Trace;
  readonly db: Database;
  /** The times of the lanes are since this one. */
  readonly origin: bigint;
  readonly latency: Range;
  colour: Colour;
}

/** Adds the tracks, and tells `lanes` of each whose syncs it shows (see OwnTracks). The other plugins must have made theirs. */
export async function addLanes(trace: Trace, db: Database, lanes: Map<string, number | null>): Promise<void> {
  const syncs = await db.query('latencies');
  const workspace = trace.currentWorkspace ?? trace.workspace;
  const first = syncs[0];
  if (first === undefined || workspace === undefined) return;
  const origin = BigInt(first['ts_ns'] as bigint);
  const points = syncs.map((row) => ({start: since(row, origin), length: num(row['dur_ns'])!}));
  const shared: Shared = {trace, db, origin, latency: range(points)!, colour: 'phase'};
  const threads = await db.query('threads');

  const makeNode = nodes(workspace);
  const group = makeNode({name: 'Syncs by thread, longest wait first', isSummary: true, collapsed: false});
  const add = (name: string, renderer: Renderer, sync: number | null) => {
    const uri = `${PREFIX}${name}`;
    lanes.set(uri, sync);
    trace.tracks.registerTrack({uri, renderer});
    group.addChildLast(makeNode({name, uri}) as never);
  };
  const latency = `Latency, ${duration(shared.latency.low)} to ${duration(shared.latency.high)}`;
  add(latency, new HeatTrack(shared, points), null);
  for (const row of threads.slice(0, MOST_LANES)) {
    const name = [text(row['comm']), text(row['tid'])].filter((part) => part !== null).join(' ') || 'thread not known';
    add(`${name}: ${duration(num(row['time_ns']))} in ${count(num(row['syncs'])!, 'sync')}`, new LaneTrack(shared, row), num(row['sync_id'])!);
  }
  workspace.addChildFirst(group as never);
  // The UI has scrolled to the selected sync. These tracks have moved that, and they come before it.
  trace.scrollTo({track: {uri: `${PREFIX}${latency}`, expandGroup: true}});

  for (const colour of COLOURS) {
    trace.commands.registerCommand({
      id: `dev.syncline.Sync#ColourBy_${colour}`,
      name: `Syncline: colour syncs by ${colour}`,
      callback: () => {
        shared.colour = colour;
        trace.raf.scheduleFullRedraw();
      },
    });
  }
}

// The class of nodes is not in the interface of a trace, but each node is an instance of it.
function nodes(workspace: Workspace): (args: {name: string; uri?: string; isSummary?: boolean; collapsed?: boolean}) => TrackNode {
  const Node = workspace.flatTracks[0]!.constructor as new (args: {}) => TrackNode;
  return (args) => new Node(args);
}

function since(row: Row, origin: bigint): number {
  return Number(BigInt(row['ts_ns'] as bigint) - origin);
}

function scaleOf({timescale, size}: {timescale: TimeScale; size: {width: number}}, origin: bigint): Scale {
  const at = (px: number) => {
    const time = timescale.pxToHpTime(px);
    return Number(time.integral - origin) + time.fractional;
  };
  return {from: at(0), to: at(size.width), pixels: size.width};
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
    const columns = Math.max(Math.floor(size.width / HEAT_COLUMN), 1);
    const {cells, most} = heat(this.points, scale, this.shared.latency, columns, HEAT_ROWS);
    const height = size.height / HEAT_ROWS;
    for (const cell of cells) {
      const share = Math.log(cell.count + 1) / Math.log(most + 1);
      ctx.fillStyle = `hsl(215, 70%, ${Math.round(80 - 55 * share)}%)`;
      ctx.fillRect(cell.column * HEAT_COLUMN, size.height - (cell.row + 1) * height, HEAT_COLUMN, height);
    }
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
    ctx.font = '11px Roboto, sans-serif';
    ctx.textBaseline = 'middle';
    for (const {left, width, item} of boxes(items, scaleOf(context, this.shared.origin))) {
      ctx.fillStyle = item.colour;
      ctx.fillRect(left, 2, Math.max(width - (width > 3 ? 1 : 0), 1), size.height - 4);
      if (width > 50) {
        ctx.save();
        ctx.beginPath();
        ctx.rect(left, 0, width - 2, size.height);
        ctx.clip();
        ctx.fillStyle = item.colour.startsWith('#') ? textOn(item.colour) : '#000';
        ctx.fillText(item.label, left + 4, size.height / 2);
        ctx.restore();
      }
    }
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
    this.shared.trace.selection.selectSqlEvent('slice', sliceId, {});
    return true;
  };

  renderTooltip = (): m.Children => this.hovered && m('div', `${this.hovered.label}, ${duration(this.hovered.length)}`);

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
        colour: colour === 'phase' ? '#dddddd' : colour === 'file' ? fileColour(path) : latencyColour(length, latency.low, latency.high),
        label: colour === 'latency' ? duration(length) : baseName(path) ?? 'file not known',
        sliceId: num(row['slice_id']),
      };
    });
    if (colour !== 'phase') return syncs;
    const phases = (await db.query('lane-phases', of)).map((row): Item => {
      const name = text(row['phase'])!;
      return {start: since(row, origin), length: num(row['dur_ns'])!, colour: phaseColour(name), label: phaseName(name), sliceId: num(row['slice_id'])};
    });
    // What no phase covers is not explained: the sync shows there.
    return [...syncs, ...phases].sort((a, b) => a.start - b.start || b.length - a.length);
  }
}

function fileColour(path: string | null): string {
  return path === null ? '#bbbbbb' : `hsl(${hash(path) % 360}, 60%, 65%)`;
}
