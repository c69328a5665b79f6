// Who used a device, over time, as a stack: its height is the part of the time in which the device worked.

import m from 'mithril';
import type {Database} from '../logic/database';
import {type Device, stacks, usersAt} from '../logic/disk';
import {percent} from '../logic/format';
import type {Scale} from '../logic/lanes';
import {num} from '../logic/rows';
import type {RenderContext, Renderer, TimeScale, Trace} from '../perfetto';
import {scaleOf, tag, theme} from './canvas';
import type {Focus} from './focus';
import {outline} from './slowest';

const HEAD = 15;
const HEIGHT = 62;

export class DiskTrack implements Renderer {
  private drawn: {scale: Scale; stacks: Float64Array[]} | null = null;
  private hovered: {from: number; to: number} | null = null;
  private device: Device | null = null;
  private isReading = false;

  constructor(
    private readonly trace: Trace,
    private readonly db: Database,
    private readonly focus: Focus,
    private readonly origin: bigint,
    private readonly dev: string,
    private readonly readDevice: () => Promise<Device | null>,
  ) {}

  getHeight = (): number => HEIGHT;

  render = (context: RenderContext): void => {
    const {ctx, size} = context;
    const colours = theme();
    const {device} = this;
    if (device === null) {
      tag(context, colours, 'finding out whose the bios are ...', 2, 1);
      return this.startReading();
    }
    const scale = scaleOf(context, this.origin);
    const known = this.drawn?.scale;
    if (known?.from !== scale.from || known.to !== scale.to || known.pixels !== scale.pixels) this.drawn = {scale, stacks: stacks(device, scale)};
    const height = size.height - HEAD - 1;
    const base = new Float64Array(this.drawn!.stacks[0]?.length ?? 0);
    device.users.forEach(({colour}, at) => {
      ctx.fillStyle = colour;
      this.drawn!.stacks[at]!.forEach((share, column) => {
        if (share <= 0) return;
        ctx.fillRect(column, size.height - (base[column]! + share) * height, 1, Math.max(share * height, 0.5));
        base[column]! += share;
      });
    });
    ctx.fillStyle = colours.muted;
    ctx.globalAlpha = 0.4;
    ctx.fillRect(0, HEAD, size.width, 1);
    ctx.globalAlpha = 1;
    let left = 2;
    const all = device.users.reduce((sum, {time}) => sum + time, 0);
    for (const {name, colour, time} of device.users) {
      left += tag(context, colours, `${name} ${percent(time / all)}`, left, 1, colour) + 6;
      if (left > size.width) break;
    }
    outline(context, this.focus, this.origin, HEAD, height);
  };

  onMouseMove = ({x, timescale}: {x: number; timescale: TimeScale}): void => {
    this.hovered = this.around(x, timescale);
  };

  onMouseOut = (): void => {
    this.hovered = null;
  };

  onMouseClick = ({x, timescale}: {x: number; timescale: TimeScale}): boolean => {
    const {from, to} = this.around(x, timescale);
    const times = {from_ns: this.origin + BigInt(Math.floor(from)), until_ns: this.origin + BigInt(Math.ceil(to))};
    this.db.query('disk-bio', {...times, dev: this.dev})
      .then(([row]) => {
        const id = num(row?.['slice_id']);
        if (id !== null) this.trace.selection.selectSqlEvent('slice', id, {scrollToSelection: false, switchToCurrentSelectionTab: true});
      })
      .catch((error: unknown) => console.error('syncline:', error));
    return true;
  };

  renderTooltip = (): m.Children => {
    if (this.hovered === null || this.device === null) return null;
    const users = usersAt(this.device, this.hovered.from, this.hovered.to);
    return m('div', users.length === 0 ? 'nobody' : users.map(({name}) => m('div', name)));
  };

  private startReading(): void {
    if (this.isReading) return;
    this.isReading = true;
    this.readDevice()
      .then((device) => {
        this.device = device;
        this.trace.raf.scheduleFullRedraw();
      })
      .catch((error: unknown) => console.error('syncline:', error));
  }

  private around(x: number, timescale: TimeScale): {from: number; to: number} {
    const {from, to} = scaleOf({timescale, size: {width: 1}}, this.origin);
    return {from: from + (x - 1) * (to - from), to: from + (x + 1) * (to - from)};
  }
}
