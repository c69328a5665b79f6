// What the charts made with Observable Plot share.

import * as Plot from '@observablehq/plot';
import {ticks} from 'd3';
import * as format from '../format.js';

export const HEIGHT = 220;
const LEFT = 64;

export function plot(options) {
  const chart = Plot.plot({marginLeft: LEFT, marginRight: 16, marginBottom: 44, height: HEIGHT, ...options, style: {background: 'none', fontSize: '12px', overflow: 'visible', ...options.style}});
  // Plot's own element may be a figure; what is looked at is the drawing.
  const svg = chart.matches('svg') ? chart : chart.querySelector('svg');
  svg.setAttribute('role', 'img');
  return chart;
}

// Axes of time since the first sync, in one unit.
export function timeAxis(from, to, width) {
  const [unit, name] = format.timeUnit(to);
  const values = ticks(from / unit, to / unit, Math.max(2, Math.floor(width / 90))).map((value) => value * unit);
  return {values, text: (value) => format.grouped(value / unit), label: `time since the first sync (${name})`, unit, name};
}

// Ticks of a linear axis of lengths or bytes, round in the unit that is shown.
export function niceTicks(most, kind, wanted = 4) {
  if (!(most > 0)) return [0];
  if (kind === 'bytes') {
    const unit = 1024 ** Math.max(0, Math.floor(Math.log(most) / Math.log(1024)));
    return ticks(0, most / unit, wanted).map((value) => value * unit);
  }
  return ticks(0, most, wanted).filter((value) => kind !== 'count' || Number.isInteger(value));
}
