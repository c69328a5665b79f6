// A rectangle that is drawn over a chart with two axes. The chart keeps its tooltips: only the outline is above it, and takes no events.
//
// x, y: scales of Plot; the rectangle stays within them. selected: [left, right, top, bottom] in pixels of the chart, or null.
// select: called with the pixels, or with null after a click inside the rectangle that is selected.

import {h} from '../dom.js';

export function rectangle(chart, {x, y, selected, select}) {
  const [left, right] = [Math.min(...x.range), Math.max(...x.range)];
  const [top, bottom] = [Math.min(...y.range), Math.max(...y.range)];
  const outline = h('div.window.rectangle', {hidden: !selected});
  const host = h('div.brushed.two-axes', {}, chart, outline);
  const show = ([from, to, above, below]) => {
    outline.hidden = false;
    Object.assign(outline.style, {left: `${from}px`, width: `${to - from}px`, top: `${above}px`, height: `${below - above}px`});
  };
  if (selected) show(selected);
  const place = (event) => {
    const box = host.getBoundingClientRect();
    return [Math.min(Math.max(left, event.clientX - box.left), right), Math.min(Math.max(top, event.clientY - box.top), bottom)];
  };
  let start = null;
  // Before the chart, which would pin its tooltip and stop the event.
  host.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    event.stopPropagation();
    start = place(event);
  }, true);
  host.addEventListener('pointermove', (event) => {
    if (start === null) return;
    const now = place(event);
    if (Math.hypot(now[0] - start[0], now[1] - start[1]) < 4) return;
    // Captured only now, so that a click still reaches the chart.
    if (!host.hasPointerCapture(event.pointerId)) host.setPointerCapture(event.pointerId);
    show(ordered(start, now));
  });
  host.addEventListener('pointerup', (event) => {
    if (start === null) return;
    const now = place(event);
    const drawn = ordered(start, now);
    const isClick = Math.hypot(now[0] - start[0], now[1] - start[1]) < 4;
    start = null;
    if (!isClick) select(drawn);
    else if (selected && now[0] >= selected[0] && now[0] <= selected[1] && now[1] >= selected[2] && now[1] <= selected[3]) select(null);
  });
  return host;
}

const ordered = (a, b) => [Math.min(a[0], b[0]), Math.max(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[1], b[1])];
