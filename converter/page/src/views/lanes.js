// One lane per thread that shows when its syncs were in flight, and a strip with the number in flight over all threads.

import {ticks} from 'd3';
import * as format from '../format.js';
import {css, h} from '../dom.js';
import {timeAxis} from './plot.js';

const LANE = 18;
const STRIP = 64;
const AXIS = 40;
const MAX_LANES = 48;
// Average room for a bar, in pixels, below which lanes are drawn by density, and the width of a cell.
const BAR_WIDTH = 4;
const CELL = 4;
// Number of ops that have a colour and a pattern of their own.
const OPS = 5;

export const lanesView = {
  id: 'lanes',
  title: 'Threads side by side',
  help: 'One lane per thread, longest time in sync first. The strip above shows the number of syncs in flight. Syncs that overlap in time waited in parallel. Click a name to select the thread; drag across the lanes to select a time range.',
  scale(sides, state) {
    const longest = Math.max(1, ...sides.map((side) => side.length));
    const spans = sides.map((side) => {
      const end = state.times === 'each' ? Math.max(1, side.length) : longest;
      const [from, to] = state.time ?? [0, end];
      return {from, to: Math.min(to, end) > from ? Math.min(to, end) : to};
    });
    // An op has the same colour and pattern on both sides.
    const ops = [...new Set(sides.flatMap((side) => side.raw.operations))];
    const all = sides.map((side, place) => (side.counted ? binned(side, state, spans[place].from, spans[place].to) : single(side, state, spans[place].from, spans[place].to, ops)));
    return {ops, spans, all, max: Math.max(...all.map(({strip}) => Math.max(0, ...strip.map(({value}) => value)))) || 1, share: Math.max(...all.map(({lanes}) => Math.max(0, ...lanes.flatMap(({bars}) => bars.map(({share}) => share ?? 0))))) || 1};
  },
  draw(side, state, {width, scale, place, set}) {
    const {lanes, strip, more} = scale.all[place];
    const {from, to} = scale.spans[place];
    const left = Math.min(150, Math.round(width * 0.3));
    const canvas = h('canvas', {role: 'img', 'aria-label': `${lanes.length} threads and the times in which their syncs were in flight, ${side.name}; at most ${format.level(Math.max(0, ...strip.map(({value}) => value)))} in flight${side.counted ? ', averaged over a bin' : ''}`});
    const height = STRIP + lanes.length * LANE + AXIS;
    const inner = width - left - 8;
    const names = lanes.map(({thread}) => h('button.lane', {
      'data-key': `lane-${side.index}-${thread.number}`, title: format.printable(thread.label), 'aria-pressed': String(state.thread === thread.key),
      style: {height: `${LANE}px`}, onclick: () => set({thread: state.thread === thread.key ? null : thread.key}),
    }, h('span', {}, format.printable(thread.comm ?? thread.label)), thread.comm == null ? null : h('span.id', {}, format.printable(thread.label.slice(thread.comm.length)))));
    const max = niceMax(scale.max);
    const caption = h('div.strip', {style: {height: `${STRIP}px`}}, h('span', {}, 'syncs in flight'), h('span.top', {}, format.level(max)), h('span.zero', {}, '0'));
    const tip = h('div.tip', {hidden: true});
    const host = h('div.lanes', {style: {gridTemplateColumns: `${left}px 1fr`, height: `${height}px`}}, h('div', {}, caption, names), h('div.canvas', {}, canvas, tip));
    // So many syncs that their bars would merge: each lane shows the part of the time in which the thread had one in flight.
    const isDense = !side.counted && lanes.reduce((sum, {bars}) => sum + bars.length, 0) > (lanes.length * inner) / BAR_WIDTH;
    if (isDense) for (const lane of lanes) lane.dense = density(lane.bars, from, to, Math.max(1, Math.floor(inner / CELL)));
    const darkest = isDense ? Math.max(...lanes.map(({dense}) => dense.reduce((a, b) => Math.max(a, b), 0))) || 1 : scale.share;
    paint(canvas, side, state, {inner, height, lanes, strip, max, share: darkest, from, to});
    drag(canvas, tip, side, {inner, lanes, strip, from, to, set});
    const notes = [];
    const hasBios = lanes.some(({bars}) => bars.some((bar) => bar.hasBios));
    const runs = side.raw.begun.run.length;
    if (runs > 1) notes.push(`These are ${format.count(runs)} runs, aligned at the first sync of each. Only syncs of the same run were in parallel; the strip adds up all runs.`);
    if (more) notes.push(`${format.count(more)} more threads are in the table below.`);
    if (side.counted && (state.waited || state.wrote)) notes.push('A selection by latency or amount does not change this view: the page holds only counts.');
    if (isDense) notes.push(`${format.count(lanes.reduce((sum, {bars}) => sum + bars.length, 0))} syncs are too many for a bar each. The darker a cell is, the larger the part of its time in which the thread had a sync in flight. Drag to see single syncs.`);
    else notes.push(side.counted ? `Each cell is ${format.ns(side.width)} wide. The darker it is, the larger the part of that time in which the thread had a sync in flight. A request counts in every bin that it overlaps.` : hasBios ? 'A filled bar is a sync that caused bios, a hollow bar is an empty sync.' : 'A bar is a sync. Which syncs are empty is not known, because no bio is recorded.');
    return [side.counted || isDense ? ramp(darkest) : legend(scale.ops, hasBios), host, h('p.note', {}, notes.join(' '))];
  },
};

function single(side, state, from, to, ops) {
  const {rows} = side.raw;
  const number = side.raw.operations.map((op) => ops.indexOf(op));
  const files = state.file == null ? null : (side.numbers.file.get(state.file) ?? new Set());
  const chosen = state.thread == null ? null : (side.numbers.thread.get(state.thread) ?? new Set());
  const isRanged = state.waited != null || state.wrote != null;
  const byThread = new Map();
  const edges = [];
  for (let row = 0; row < rows.since_ns.length; row++) {
    const begin = rows.since_ns[row];
    const length = rows.dur_ns[row];
    const end = begin + (length ?? 0);
    if (begin >= to || end < from || (files && !files.has(rows.file[row]))) continue;
    if (isRanged && !side.inRanges(state, row)) continue;
    const thread = rows.thread[row];
    if (!byThread.has(thread)) byThread.set(thread, {thread: side.threads[thread], bars: [], sum: 0});
    const lane = byThread.get(thread);
    lane.bars.push({begin, end, row, open: length == null, hasBios: rows.bios[row] != null, empty: rows.bios[row] === 0 && !rows.failed[row], op: number[rows.op[row]]});
    lane.sum += Math.min(end, to) - Math.max(begin, from);
    if (length > 0 && (!chosen || chosen.has(thread))) edges.push([Math.max(begin, from), 1], [Math.min(end, to), -1]);
  }
  const [lanes, more] = ordered([...byThread.values()], chosen);
  // At the same time, ends sort before starts.
  edges.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const strip = [{from, value: 0}];
  let inFlight = 0;
  for (const [time, step] of edges) {
    inFlight += step;
    const last = strip[strip.length - 1];
    if (last.from === time) last.value = inFlight;
    else strip.push({from: time, value: inFlight});
  }
  strip.forEach((one, index) => { one.to = strip[index + 1]?.from ?? to; });
  return {lanes, more, strip};
}

// Returns the part of each of `count` cells in which the thread had a sync in flight. Its syncs do not overlap.
function density(bars, from, to, count) {
  const cells = new Array(count).fill(0);
  const width = (to - from) / count;
  for (const {begin, end} of bars) {
    const last = Math.min(count - 1, Math.floor((Math.min(end, to) - from) / width));
    for (let cell = Math.max(0, Math.floor((begin - from) / width)); cell <= last; cell++) {
      const left = from + cell * width;
      cells[cell] += Math.max(0, Math.min(end, left + width) - Math.max(begin, left)) / width;
    }
  }
  return cells.map((part) => Math.min(1, part));
}

function binned(side, state, from, to) {
  // The time in flight is not known by latency or amount.
  if (state.waited || state.wrote) state = {...state, waited: null, wrote: null};
  const chosen = state.thread == null ? null : (side.numbers.thread.get(state.thread) ?? new Set());
  const found = side.busy(state);
  const lanes = [];
  const strip = Array.from({length: Math.ceil(side.length / side.width)}, (_, bin) => ({from: bin * side.width, to: (bin + 1) * side.width, value: 0}));
  for (const [number, bins] of found) {
    const bars = [];
    let sum = 0;
    for (const [bin, busy] of bins) {
      const begin = bin * side.width;
      if (begin >= to || begin + side.width <= from) continue;
      bars.push({begin, end: begin + side.width, share: busy / side.width, busy});
      sum += busy;
      if (strip[bin] && (!chosen || chosen.has(number))) strip[bin].value += busy / side.width;
    }
    if (bars.length) lanes.push({thread: side.threads[number], bars, sum});
  }
  const [kept, more] = ordered(lanes, chosen);
  return {lanes: kept, more, strip: strip.filter((one) => one.from < to && one.to > from)};
}

function ordered(lanes, chosen) {
  lanes.sort((a, b) => b.sum - a.sum || a.thread.number - b.thread.number);
  const kept = lanes.slice(0, MAX_LANES);
  // The selected threads are always shown.
  for (const lane of lanes.slice(MAX_LANES)) if (chosen?.has(lane.thread.number) && kept.length < MAX_LANES + 8) kept.push(lane);
  for (const lane of kept) lane.faint = chosen !== null && !chosen.has(lane.thread.number);
  return [kept, lanes.length - kept.length];
}

function niceMax(max) {
  return ticks(0, max, 4).find((tick) => tick >= max) ?? Math.ceil(max);
}

function paint(canvas, side, state, {inner, height, lanes, strip, max, share, from, to}) {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(inner * scale);
  canvas.height = Math.round(height * scale);
  Object.assign(canvas.style, {width: `${inner}px`, height: `${height}px`});
  const context = canvas.getContext('2d');
  context.scale(scale, scale);
  const x = (time) => ((time - from) / (to - from)) * inner;
  const [ink, grid, line, bar, muted] = ['--muted', '--grid', '--line', '--bar', '--c1'].map(css);
  const colours = Array.from({length: OPS + 1}, (_, index) => css(`--c${index + 1}`));
  const axis = timeAxis(from, to, inner);
  const bottom = STRIP + lanes.length * LANE;

  context.fillStyle = grid;
  for (const value of axis.values) context.fillRect(Math.round(x(value)), 0, 1, bottom);
  lanes.forEach((_, index) => context.fillRect(0, STRIP + (index + 1) * LANE - 1, inner, 1));

  context.fillStyle = bar;
  const tall = STRIP - 14;
  const base = STRIP - 6;
  for (const {from: begin, to: end, value} of strip) {
    const size = (value / max) * tall;
    context.fillRect(x(begin), base - size, Math.max(0.5, x(end) - x(begin)), size);
  }
  context.fillStyle = line;
  context.fillRect(0, base, inner, 1);

  lanes.forEach(({bars, faint, dense}, index) => {
    const top = STRIP + index * LANE + 3;
    if (dense) {
      const wide = inner / dense.length;
      context.fillStyle = muted;
      dense.forEach((part, cell) => {
        if (!part) return;
        context.globalAlpha = (faint ? 0.25 : 1) * shade(part / share);
        context.fillRect(cell * wide, top, wide + 0.3, LANE - 6);
      });
      context.globalAlpha = 1;
      return;
    }
    for (const one of bars) {
      const begin = x(one.begin);
      const wide = Math.max(1, x(one.end) - begin);
      if (side.counted) {
        context.globalAlpha = (faint ? 0.25 : 1) * shade(one.share / share);
        context.fillStyle = muted;
        context.fillRect(begin, top, wide, LANE - 6);
        continue;
      }
      context.globalAlpha = faint ? 0.2 : 1;
      const colour = colours[Math.min(one.op, OPS)];
      context.fillStyle = context.strokeStyle = colour;
      if (one.empty && wide >= 3) context.strokeRect(begin + 0.5, top + 0.5, wide - 1, LANE - 7);
      else context.fillRect(begin, top, wide, LANE - 6);
      // Wide bars of all ops but the first are striped, so that ops differ without colour.
      if (one.op > 0 && wide >= 6 && !one.empty) stripes(context, begin, top, wide, one.op);
    }
    context.globalAlpha = 1;
  });

  context.fillStyle = ink;
  context.font = '12px system-ui, sans-serif';
  context.textAlign = 'center';
  for (const value of axis.values) {
    const at = x(value);
    if (at > 12 && at < inner - 12) context.fillText(axis.text(value), at, bottom + 15);
  }
  context.fillText(axis.label, inner / 2, bottom + 34);
}

function stripes(context, left, top, wide, op) {
  context.save();
  context.beginPath();
  context.rect(left, top, wide, LANE - 6);
  context.clip();
  context.strokeStyle = css('--card');
  context.lineWidth = 1.2;
  const gap = 3 + 2 * op;
  for (let at = left - LANE; at < left + wide; at += gap) {
    context.beginPath();
    context.moveTo(at, top + LANE - 6);
    context.lineTo(at + LANE - 6, top);
    context.stroke();
  }
  context.restore();
}

function drag(canvas, tip, side, {inner, lanes, strip, from, to, set}) {
  const time = (event) => {
    const box = canvas.getBoundingClientRect();
    return from + (Math.min(Math.max(0, event.clientX - box.left), inner) / inner) * (to - from);
  };
  let dragStart = null;
  let marked = null;
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    dragStart = time(event);
    marked = h('div.window');
    canvas.parentElement.append(marked);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    const now = time(event);
    if (dragStart !== null) {
      const [low, high] = [Math.min(dragStart, now), Math.max(dragStart, now)].map((value) => ((value - from) / (to - from)) * inner);
      Object.assign(marked.style, {left: `${low}px`, width: `${high - low}px`});
      return;
    }
    const text = described(event, now);
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const box = canvas.getBoundingClientRect();
    const at = event.clientX - box.left;
    Object.assign(tip.style, {top: `${event.clientY - box.top + 14}px`, left: at < inner / 2 ? `${at + 8}px` : 'auto', right: at < inner / 2 ? 'auto' : `${inner - at + 8}px`});
  });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  canvas.addEventListener('pointerup', (event) => {
    if (dragStart === null) return;
    const step = side.counted ? side.width : 1;
    const low = Math.floor(Math.min(dragStart, time(event)) / step) * step;
    const high = Math.ceil(Math.max(dragStart, time(event)) / step) * step;
    const far = ((high - low) / (to - from)) * inner;
    dragStart = null;
    marked.remove();
    if (far >= 4) set({time: [low, high]});
  });

  function described(event, now) {
    const y = event.clientY - canvas.getBoundingClientRect().top;
    if (y < STRIP) {
      const at = strip.find((one) => now >= one.from && now < one.to);
      return at ? `${format.level(at.value)} in flight${side.counted ? ', on average' : ''}\n${format.range(at.from, at.to)}` : '';
    }
    const lane = lanes[Math.floor((y - STRIP) / LANE)];
    if (lane?.dense) {
      const cell = Math.min(lane.dense.length - 1, Math.floor(((now - from) / (to - from)) * lane.dense.length));
      const width = (to - from) / lane.dense.length;
      return `${format.printable(lane.thread.label)}\n${format.range(from + cell * width, from + (cell + 1) * width)}: in flight ${format.share(lane.dense[cell])} of the time`;
    }
    const slack = ((to - from) / inner) * 2;
    const one = lane?.bars.find((bar) => now >= bar.begin - slack && now <= bar.end + slack);
    if (!one) return '';
    if (side.counted) return `${format.printable(lane.thread.label)}\n${format.range(one.begin, one.end)}: ${format.ns(one.busy)} in flight (${format.share(one.share)})`;
    const point = side.point(one.row);
    return `${format.printable(point.op)} of ${format.printable(point.thread.label)}: ${one.open ? 'incomplete' : format.ns(point.length)}\n${format.printable(point.file.label)}\n${format.bytes(point.bytes)} written back${one.empty ? ' (empty)' : ''}\nat ${format.ns(point.since)}`;
  }
}

function legend(ops, hasBios) {
  return h('ul.legend', {}, ops.map((op, index) => h('li', {}, h(`span.swatch.op${Math.min(index, OPS)}`, {style: {background: `var(--c${Math.min(index, OPS) + 1})`}}), format.printable(op === 'none' ? 'no syscall' : op))),
    hasBios ? h('li', {}, h('span.swatch.hollow'), 'empty sync') : null);
}

const shade = (part) => 0.08 + 0.92 * Math.min(1, part);

function ramp(max) {
  return h('ul.legend', {}, [0, 0.5, 1].map((part) => h('li', {}, h('span.swatch', {style: {background: 'var(--c1)', opacity: shade(part)}}), `${format.share(part * max)} of the time`)));
}
