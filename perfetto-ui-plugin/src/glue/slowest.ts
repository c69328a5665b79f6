// The syncs that waited longest: a track, and a tab with a table of them.

import m from 'mithril';
import {count, duration} from '../logic/format';
import {boxes, fitting, itemAt, type Item} from '../logic/lanes';
import {phaseColour, phaseName, textOn} from '../logic/phases';
import {chosen, label, mostly, ORDERS, type Order, type Slow} from '../logic/slowest';
import type {RenderContext, Renderer, Tab, TimeScale} from '../perfetto';
import {FONT, scaleOf, theme} from './canvas';
import type {Focus} from './focus';
import {link, shareBar, table} from './parts';

const ROW = 20;
// What has no phases, or none that explains it.
const PLAIN = '#bbbbbb';

/** Two rows: what each is called, in the colour of its longest phase; below, its phases to scale. */
export class SlowestTrack implements Renderer {
  private readonly names: readonly Item[];
  private readonly phases: readonly Item[];
  private readonly of: ReadonlyMap<number, Slow>;
  private readonly slices: ReadonlySet<number | null>;
  private hovered: Item | null = null;

  constructor(
    private readonly focus: Focus,
    private readonly origin: bigint,
    syncs: readonly Slow[],
  ) {
    const since = (ts: bigint) => Number(ts - origin);
    this.of = new Map(syncs.map((sync) => [sync.syncId, sync]));
    this.slices = new Set(syncs.map(({sliceId}) => sliceId));
    const order = (a: Item, b: Item) => a.start - b.start || b.length - a.length;
    this.names = syncs.map((sync): Item => ({
      start: since(sync.ts), length: sync.ns, label: `${label(sync)}, ${sync.thread}`, sliceId: sync.syncId,
      colour: sync.parts[0]?.colour ?? PLAIN, hint: `${sync.op} ${sync.path}, ${mostly(sync)}`,
    })).sort(order);
    this.phases = syncs.flatMap((sync) => sync.phases.filter(({ts}) => ts !== null).map((phase): Item => ({
      start: since(phase.ts!), length: phase.ns, label: phaseName(phase.name), sliceId: sync.syncId, colour: phaseColour(phase.name),
      hint: `of ${label(sync)}`,
    }))).sort(order);
  }

  getHeight = (): number => 2 * ROW + 4;

  render = (context: RenderContext): void => {
    const {ctx} = context;
    const scale = scaleOf(context, this.origin);
    ctx.font = FONT;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    [this.names, this.phases].forEach((items, row) => {
      const top = 2 + row * ROW;
      for (const {left, width, item, busy} of boxes(items, scale)) {
        // Each of them can be seen and clicked, however short it is.
        const shown = row === 0 ? Math.max(width, 3) : width;
        ctx.globalAlpha = 0.4 + 0.6 * busy;
        ctx.fillStyle = item.colour;
        ctx.fillRect(left, top, Math.max(shown - (shown > 3 ? 1 : 0), 1), ROW - 1);
        ctx.globalAlpha = 1;
        ctx.fillStyle = textOn(item.colour);
        const name = width > 24 ? fitting(item.label, width - 8, (text) => ctx.measureText(text).width) : '';
        if (name) ctx.fillText(name, left + 4, top + ROW / 2);
      }
    });
    if (this.slices.has(this.focus.get()?.sliceId ?? null)) outline(context, this.focus, this.origin, 1, this.getHeight() - 2);
  };

  onMouseMove = (event: {x: number; timescale: TimeScale}): void => {
    this.hovered = this.at(event);
  };

  onMouseOut = (): void => {
    this.hovered = null;
  };

  onMouseClick = (event: {x: number; timescale: TimeScale}): boolean => {
    const sync = this.of.get(this.at(event)?.sliceId ?? -1);
    if (sync === undefined || sync.sliceId === null) return false;
    this.focus.go({sliceId: sync.sliceId, ts: sync.ts, ns: sync.ns});
    return true;
  };

  renderTooltip = (): m.Children => this.hovered && m('div', m('div', `${this.hovered.label}, ${duration(this.hovered.length)}`), m('div', this.hovered.hint));

  private at({x, timescale}: {x: number; timescale: TimeScale}): Item | null {
    const {from, to} = scaleOf({timescale, size: {width: 1}}, this.origin);
    const time = from + x * (to - from);
    return itemAt(this.phases, time, 0) ?? itemAt(this.names, time, 3 * (to - from));
  }
}

/** Marks the sync that is selected. */
export function outline(context: RenderContext, focus: Focus, origin: bigint, top: number, height: number): void {
  const focused = focus.get();
  if (focused === null) return;
  const {from, to, pixels} = scaleOf(context, origin);
  const x = (time: number) => ((time - from) * pixels) / (to - from);
  const start = Number(focused.ts - origin);
  const [left, right] = [x(start), x(start + focused.ns)];
  if (right < 0 || left > pixels) return;
  const {ctx} = context;
  ctx.strokeStyle = theme().text;
  ctx.lineWidth = 2;
  ctx.strokeRect(left - 1, top, Math.max(right - left, 2) + 2, height);
}

export class SlowestTab implements Tab {
  private filter = '';
  private order: Order = 'length';

  constructor(
    private readonly focus: Focus,
    private readonly syncs: readonly Slow[],
    private readonly origin: bigint,
    /** All syncs of the recording. */
    private readonly inAll: number,
  ) {}

  getTitle(): string {
    return 'Slowest syncs';
  }

  render(): m.Children {
    const rows = chosen(this.syncs, this.filter, this.order);
    const go = (sync: Slow, text: string) =>
      sync.sliceId === null ? text : link(text, () => this.focus.go({sliceId: sync.sliceId!, ts: sync.ts, ns: sync.ns}));
    return m('.syncline.syncline-slowest', [
      m('p', [
        this.syncs.length < this.inAll ? `The slowest ${this.syncs.length} of ${count(this.inAll, 'sync')}. ` : `All ${count(this.inAll, 'sync')}. `,
        'File or thread: ',
        m('input', {type: 'search', value: this.filter, 'aria-label': 'File or thread', oninput: (event: Event) => { this.filter = (event.target as HTMLInputElement).value; }}),
        ' Sort by: ',
        m('select', {value: this.order, 'aria-label': 'Sort by', onchange: (event: Event) => { this.order = (event.target as HTMLSelectElement).value as Order; }},
          ORDERS.map((order) => m('option', {value: order, selected: order === this.order}, order))),
      ]),
      rows.length === 0
        ? m('p', 'None of them has this text in its file or its thread.')
        : table(
            ['sync', 'length', 'phases', 'file', 'thread', 'call', 'written', 'after'],
            rows.map((sync) => [
              go(sync, `${sync.syncId}`), go(sync, duration(sync.ns)), m('.syncline-mini', {title: mostly(sync)}, shareBar(sync.parts)),
              sync.path, sync.thread, sync.op, sync.amount, duration(Number(sync.ts - this.origin)),
            ]),
            (row) => rows[row]!.sliceId !== null && rows[row]!.sliceId === this.focus.get()?.sliceId,
          ),
    ]);
  }
}
