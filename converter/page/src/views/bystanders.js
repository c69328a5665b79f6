// Whose bios were at the device before those of the slowest syncs, as the report `bystanders` has it. Always of the whole run.

import * as format from '../format.js';
import {h} from '../dom.js';

const ROWS = 8;
// Characters of a path next to a bar.
const PATH = 24;
const KINDS = {itself: 'the syncs themselves', commit: 'the commits that they waited for', sync: 'other syncs', journal: 'other commits', background: 'background and direct I/O'};

export const bystandersView = {
  id: 'bystanders',
  title: 'Who was at the device before the slowest syncs',
  help: 'The slowest percent of the syncs, at least 10. A bar is the time in which they waited for the device while a bio of the bystander, issued before, was there. On a device that works on one bio at a time, this is what the bystander cost; on others, the most that it may have cost. A selection does not change this view.',
  missing: (sides) => (sides.some((side) => rows(side).length) ? null : reason(sides.at(-1))),
  scale(sides) {
    return {max: Math.max(1, ...sides.flatMap((side) => rows(side).map(({ns}) => ns)))};
  },
  draw(side, state, {scale}) {
    const all = rows(side);
    if (!all.length) return [h('p.note', {}, `No rows: ${reason(side)}`)];
    const others = all.filter(({kind}) => kind !== 'itself' && kind !== 'commit');
    const syncs = format.count(all[0].of);
    const answer = others.length ? `${name(others[0])} was ahead of ${format.count(others[0].syncs)} of the ${syncs} slowest syncs, for ${format.ns(others[0].ns)} (${format.share(others[0].share)} of their time).` : `Nobody else was ahead of the ${syncs} slowest syncs.`;
    const shown = all.slice(0, ROWS);
    return [
      h('p.answer', {}, answer),
      h('div.shares', {}, shown.flatMap((row) => [
        h('span.lane.start', {title: `${name(row)}: ${KINDS[row.kind]}`}, h('bdi', {}, shortName(row))),
        h('div.room', {}, h('div.stack', {role: 'img', 'aria-label': `${name(row)}: ${format.ns(row.ns)}`, style: {width: `${(100 * row.ns) / scale.max}%`}}, h('span', {class: `by ${row.kind}`, 'data-kind': row.kind, 'data-comm': row.comm ?? '', 'data-cgroup': row.cgroup ?? '', 'data-value': row.ns, title: `${KINDS[row.kind]}\n${format.counted(row.bios, 'bio')}, ${format.bytes(row.bytes)}`, style: {flexGrow: 1}}))),
        h('span.sum', {}, `${format.ns(row.ns)}, ${format.counted(row.bios, 'bio')}, ${format.bytes(row.bytes)}`),
      ])),
      h('ul.legend', {}, [...new Set(shown.map(({kind}) => kind))].map((kind) => h('li', {}, h(`span.swatch.by.${kind}`), KINDS[kind]))),
      all.length > ROWS ? h('p.note', {}, `${format.count(all.length - ROWS)} more: the report \`bystanders\` lists them.`) : null,
    ];
  },
};

const reason = (side) => side.raw.why.bystanders || 'no bio with a known device and completion belongs to a sync.';

function rows(side) {
  const {kind, comm, process, cgroup, writers, path, syncs, of_syncs, bios, bytes, ahead_ns, share} = side.raw.bystanders;
  return kind.map((_, row) => ({kind: kind[row], comm: comm[row], process: process[row], cgroup: cgroup[row], writers: writers[row], path: path[row], syncs: syncs[row], of: of_syncs[row], bios: bios[row], bytes: bytes[row], ns: ahead_ns[row], share: share[row]}));
}

function name({kind, comm, process, cgroup, writers, path}) {
  if (kind === 'itself' || kind === 'commit') return KINDS[kind];
  let who = format.printable(comm ?? '[no name]');
  if (process && process !== comm) who += ` of ${format.printable(process)}`;
  if (writers) who += ` for ${format.printable(writers)}`;
  // The root says nothing: all processes are below it.
  if (cgroup && cgroup !== '/') who += ` in ${format.printable(cgroup)}`;
  return path && !writers ? `${who}: ${format.printable(path)}` : who;
}

// A name that fits next to a bar: of a path and of a control group, its end.
function shortName(row) {
  return name({...row, path: endOf(row.path), cgroup: endOf(row.cgroup)});
}

function endOf(path) {
  return path && path.length > PATH ? `…${[...path].slice(1 - PATH).join('')}` : path;
}
