// The track of what happened during the sync that is selected.

import m from 'mithril';
import type {Database} from '../logic/database';
import {duration} from '../logic/format';
import {inside, type Lane} from '../logic/inside';
import {boxes, fitting, itemAt, type Item} from '../logic/lanes';
import {textOn} from '../logic/phases';
import type {RenderContext, Renderer, TimeScale, Trace} from '../perfetto';
import {FONT, scaleOf, tag, theme} from './canvas';
import type {Focus} from './focus';
import {outline} from './slowest';

const ROW = 17;

export class InsideTrack implements Renderer {
  private lanes: readonly Lane[] = [];
  private hovered: Item | null = null;

  constructor(
    private readonly trace: Trace,
    private readonly db: Database,
    private readonly focus: Focus,
    private readonly origin: bigint,
  ) {
    focus.onSync((syncId) => void this.read(syncId));
  }

  getHeight = (): number => Math.max(this.lanes.length, 1) * ROW + 4;

  render = (context: RenderContext): void => {
    const {ctx} = context;
    const colours = theme();
    if (this.lanes.length === 0) return void tag(context, colours, 'select a sync: its phases, its bios and the commit that it waits for are here', 2, 4);
    const scale = scaleOf(context, this.origin);
    this.lanes.forEach(({items}, row) => {
      const top = 2 + row * ROW;
      ctx.font = FONT;
      ctx.textBaseline = 'middle';
      ctx.textAlign = 'left';
      for (const {left, width, item, busy} of boxes(items, scale)) {
        ctx.globalAlpha = 0.4 + 0.6 * busy;
        ctx.fillStyle = item.colour;
        ctx.fillRect(left, top, Math.max(width - (width > 3 ? 1 : 0), 1), ROW - 1);
        ctx.globalAlpha = 1;
        ctx.fillStyle = textOn(item.colour);
        const name = width > 24 ? fitting(item.label, width - 8, (text) => ctx.measureText(text).width) : '';
        if (name) ctx.fillText(name, left + 4, top + ROW / 2);
      }
    });
    outline(context, this.focus, this.origin, 1, this.getHeight() - 2);
    this.lanes.forEach(({name}, row) => name !== null && tag(context, colours, name, 2, 3 + row * ROW));
  };

  onMouseMove = (event: {x: number; y: number; timescale: TimeScale}): void => {
    this.hovered = this.at(event);
  };

  onMouseOut = (): void => {
    this.hovered = null;
  };

  onMouseClick = (event: {x: number; y: number; timescale: TimeScale}): boolean => {
    const sliceId = this.at(event)?.sliceId ?? null;
    if (sliceId === null) return false;
    this.trace.selection.selectSqlEvent('slice', sliceId, {scrollToSelection: false, switchToCurrentSelectionTab: true});
    return true;
  };

  renderTooltip = (): m.Children => this.hovered && m('div', m('div', `${this.hovered.label}, ${duration(this.hovered.length)}`), this.hovered.hint && m('div', this.hovered.hint));

  private at({x, y, timescale}: {x: number; y: number; timescale: TimeScale}): Item | null {
    const items = this.lanes[Math.floor((y - 2) / ROW)]?.items;
    const {from, to} = scaleOf({timescale, size: {width: 1}}, this.origin);
    return items ? itemAt(items, from + x * (to - from), 2 * (to - from)) : null;
  }

  private async read(syncId: number): Promise<void> {
    try {
      this.lanes = inside(await this.db.query('inside', {sync_id: syncId}), this.origin);
      this.trace.raf.scheduleFullRedraw();
    } catch (error) {
      console.error('syncline:', error);
    }
  }
}
