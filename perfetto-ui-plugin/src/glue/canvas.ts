// What all tracks of the plugin draw with.

import type {RenderContext, TimeScale} from '../perfetto';
import type {Scale} from '../logic/lanes';

export const FONT = '11px Roboto, sans-serif';

export interface Theme {
  readonly text: string;
  readonly muted: string;
  readonly background: string;
}

/** The colours of the theme that the UI has at the moment. */
export function theme(): Theme {
  const style = getComputedStyle(document.querySelector('.pf-theme-provider') ?? document.body);
  const of = (name: string, usual: string) => style.getPropertyValue(`--pf-color-${name}`).trim() || usual;
  return {text: of('text', '#333'), muted: of('text-muted', '#75797c'), background: of('background', '#fff')};
}

/** The part of time that is in view, since `origin`. */
export function scaleOf({timescale, size}: {timescale: TimeScale; size: {width: number}}, origin: bigint): Scale {
  const at = (px: number) => {
    const time = timescale.pxToHpTime(px);
    return Number(time.integral - origin) + time.fractional;
  };
  return {from: at(0), to: at(size.width), pixels: size.width};
}

/** Writes a text on a ground, so that it can be read on whatever is below it. */
export function tag({ctx}: RenderContext, {text, background}: Theme, label: string, left: number, top: number, colour?: string): number {
  ctx.font = FONT;
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'left';
  const box = colour === undefined ? 0 : 12;
  const width = ctx.measureText(label).width + box + 6;
  ctx.globalAlpha = 0.85;
  ctx.fillStyle = background;
  ctx.fillRect(left, top, width, 13);
  ctx.globalAlpha = 1;
  if (colour !== undefined) {
    ctx.fillStyle = colour;
    ctx.fillRect(left + 2, top + 2, 9, 9);
  }
  ctx.fillStyle = text;
  ctx.fillText(label, left + box + 3, top + 7);
  return width;
}
