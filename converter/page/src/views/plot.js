// Helpers for charts made with Observable Plot.

import * as Plot from '@observablehq/plot';
import {ticks} from 'd3';
import * as format from '../format.js';

export const HEIGHT = 220;
const LEFT = 64;

export function plot(options) {
  const chart = Plot.plot({marginLeft: LEFT, marginRight: 16, marginBottom: 44, height: HEIGHT, ...options, style: {background: 'none', fontSize: '12px', overflow: 'visible', ...options.style}});
  // Plot may return a figure element around the svg.
  const svg = chart.matches('svg') ? chart : chart.querySelector('svg');
  svg.setAttribute('role', 'img');
  // The parts of an image have no names of their own: screen readers do not reach them, and would refuse a name on a plain group.
  for (const part of svg.querySelectorAll('[aria-label]')) {
    part.dataset.mark = part.getAttribute('aria-label');
    part.removeAttribute('aria-label');
  }
  return chart;
}

// Returns ticks and labels of an axis of the time since the first sync, in one unit.
export function timeAxis(from, to, width) {
  const [unit, name] = format.timeUnit(to);
  const values = ticks(from / unit, to / unit, Math.max(2, Math.floor(width / 90))).map((value) => value * unit);
  return {values, text: (value) => format.grouped(value / unit), label: `time since the first sync (${name})`, unit, name};
}

// Returns the ticks of a linear axis, at round values of the unit that is shown.
export function niceTicks(max, kind, wanted = 4) {
  if (!(max > 0)) return [0];
  if (kind === 'bytes') {
    const unit = 1024 ** Math.max(0, Math.floor(Math.log(max) / Math.log(1024)));
    return ticks(0, max / unit, wanted).map((value) => value * unit);
  }
  return ticks(0, max, wanted).filter((value) => kind !== 'count' || Number.isInteger(value));
}
