// A range on the horizontal axis of a chart: drawn by dragging, its two ends moved with keys. The layer covers the chart, so it also
// shows the tooltip. All values are on the axis of `scale`, a scale of Plot.
//
// domain: the least and the greatest value. range: the selection, or null. key, what: names for the keyboard and for screen readers.
// text, describe: the words for a value, and the tooltip at a place. snap, move: the nearest value that can be selected, and the one that
// is `by` steps further. select: called with a range or null. click: called with a value; by default a click removes the range.

import {h} from '../dom.js';

const KEYS = {ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity};

export function brush({scale, height, domain: [low, high], range: selected, key, what, text, describe, snap, move, select, click = () => select(null)}) {
  const [left, right] = scale.range;
  const span = right - left;
  const layer = h('div.brush', {style: {left: `${left}px`, width: `${span}px`, height: `${height}px`}});
  const value = (clientX) => scale.invert(left + Math.min(Math.max(0, clientX - layer.getBoundingClientRect().left), span));
  const place = (value) => Math.min(Math.max(0, scale.apply(value) - left), span);
  const within = (value) => Math.min(Math.max(low, snap(value)), high);
  const window = h('div.window');
  const tip = h('div.tip', {hidden: true});
  const range = selected ?? [low, high];
  let shown = range;
  const show = ([from, to]) => {
    shown = [from, to];
    Object.assign(window.style, {left: `${place(from)}px`, width: `${place(to) - place(from)}px`});
    window.classList.toggle('all', selected == null && from === range[0] && to === range[1]);
  };
  const choose = (from, to) => select(from <= low && to >= high ? null : [from, to]);
  const handle = (name, index) => {
    const element = h('div.handle', {
      role: 'slider', tabindex: 0, 'aria-label': `${name} of the ${what}`, 'aria-orientation': 'horizontal', 'data-key': `${name}-${key}`,
      'aria-valuemin': low, 'aria-valuemax': high, 'aria-valuenow': range[index], 'aria-valuetext': text(range[index]),
      onkeydown(event) {
        const by = KEYS[event.key];
        if (by === undefined) return;
        event.preventDefault();
        const moved = [...range];
        moved[index] = by === -Infinity ? low : by === Infinity ? high : within(move(range[index], by * (event.shiftKey ? 10 : 1)));
        if (moved[0] < moved[1]) choose(...moved);
      },
    });
    element.style.left = `${place(range[index])}px`;
    return element;
  };
  let dragStart = null;
  layer.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || event.target.classList.contains('handle')) return;
    dragStart = value(event.clientX);
    layer.setPointerCapture(event.pointerId);
  });
  layer.addEventListener('pointermove', (event) => {
    const now = value(event.clientX);
    if (dragStart === null) {
      tip.textContent = describe(now);
      tip.hidden = !tip.textContent;
      const at = place(now);
      Object.assign(tip.style, {top: '30%', left: at < span / 2 ? `${at + 12}px` : 'auto', right: at < span / 2 ? 'auto' : `${span - at + 12}px`});
      return;
    }
    tip.hidden = true;
    show([within(Math.min(dragStart, now)), within(Math.max(dragStart, now))]);
  });
  layer.addEventListener('pointerleave', () => { tip.hidden = true; });
  layer.addEventListener('pointerup', (event) => {
    if (dragStart === null) return;
    const moved = Math.abs(place(dragStart) - place(value(event.clientX)));
    const start = dragStart;
    dragStart = null;
    if (moved < 3) click(start);
    else if (shown[0] < shown[1]) choose(...shown);
    else show(range);
  });
  show(range);
  layer.append(window, handle('begin', 0), handle('end', 1), tip);
  return layer;
}
