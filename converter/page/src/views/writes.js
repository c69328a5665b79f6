// What writes waited for, as the report `slow-writes` has it. Always of the whole run.

import * as format from '../format.js';
import {h} from '../dom.js';
import {table} from './numbers.js';

const ROWS = 12;
const KINDS = {
  throttling: 'too much page cache was dirty, so the kernel made the thread pause',
  'inode lock': 'another thread wrote to the file, truncated it or synced it',
  'journal handle': 'a commit had begun, and other threads had not completed their changes',
  'journal space': 'the journal was full',
  'journal buffer': 'a commit was writing a block that the thread had to change',
  'page writeback': 'the page cache of the file was under writeback',
  'page read': 'a page of which it changes a part was read first',
};

export const writesView = {
  id: 'writes',
  title: 'What writes waited for',
  help: 'Waits of threads outside of syncs, of at least 1 ms or for a page that is read: write(), and other calls that change a file. A bar is the sum for one thread name, wait, file and device. Those of several threads are added up. A selection does not change this view.',
  scale(sides) {
    return {max: Math.max(1, ...sides.flatMap((side) => rows(side).map(({ns}) => ns)))};
  },
  draw(side, state, {scale}) {
    const found = side.raw.slow_writes;
    if (!found) return [h('p.note', {}, 'No write waited for 1 ms or longer, as far as this input records it.')];
    const all = rows(side);
    const shown = all.slice(0, ROWS);
    const {groups, waits, longest} = found;
    const whose = longest.of_comm == null ? '' : `, for the work of ${format.printable(longest.of_comm)}`;
    return [
      h('p.answer', {}, `${format.count(waits)} ${waits === 1 ? 'wait' : 'waits'} of writes took ${format.ns(found.total_ns)} in total. The longest took ${format.ns(longest.max_ns)}: ${name(longest)}${whose}.`),
      h('div.shares', {}, shown.flatMap((row) => [
        h('span.lane.start', {title: name(row)}, h('bdi', {}, shortName(row))),
        h('div.room', {}, h('div.stack', {role: 'img', 'aria-label': `${name(row)}: ${format.ns(row.ns)}`, style: {width: `${(100 * row.ns) / scale.max}%`}}, h('span.plain', {'data-wait': row.wait, 'data-value': row.ns, title: KINDS[row.wait] ?? row.wait, style: {flexGrow: 1}}))),
        h('span.sum', {}, [`${format.ns(row.ns)}, ${format.count(row.waits)} ${row.waits === 1 ? 'wait' : 'waits'}`, row.bytes == null ? null : `${format.bytes(row.bytes)} made dirty`, row.of == null ? null : `for the work of ${format.printable(row.of)}`].filter(Boolean).join(', ')),
      ])),
      h('ul', {}, [...new Set(shown.map(({wait}) => wait))].filter((wait) => KINDS[wait]).map((wait) => h('li', {}, h('strong', {}, wait), `: ${KINDS[wait]}.`))),
      groups > shown.length ? h('p.note', {}, `${format.count(groups - shown.length)} more: the report \`slow-writes\` lists them.`) : null,
      table('What writes waited for, as a table', ['thread', 'wait', 'file', 'device', 'waits', 'sum', 'median', 'longest', 'made dirty', 'for the work of', 'waits during a sync of it'], () =>
        all.map((row) => [thread(row), row.wait, format.text(row.path), format.text(row.dev), format.count(row.waits), format.ns(row.ns), format.ns(row.median), format.ns(row.max), format.bytes(row.bytes), format.text(row.of), format.count(row.inSync)])),
    ];
  },
};

// Whether a side has such waits.
export const hasWrites = (sides) => sides.some((side) => side.raw.slow_writes);

function rows(side) {
  if (!side.raw.slow_writes) return [];
  const {comm, wait, path, dev, waits, total_ns, median_ns, max_ns, bytes, of_comm, in_sync} = side.raw.slow_writes.rows;
  return wait.map((_, row) => ({comm: comm[row], wait: wait[row], path: path[row], dev: dev[row], waits: waits[row], ns: total_ns[row], median: median_ns[row], max: max_ns[row], bytes: bytes[row], of: of_comm[row], inSync: in_sync[row]}));
}

const thread = ({comm}) => format.printable(comm ?? '[no name]');

function name({comm, wait, path, dev}) {
  const where = path == null ? (dev == null ? '' : ` on ${format.printable(dev)}`) : ` of ${format.printable(path)}`;
  return `${thread({comm})}: ${wait}${where}`;
}

// A name that fits next to a bar: of a path, its last part.
function shortName(row) {
  const last = row.path?.split('/').filter(Boolean).at(-1);
  return name(last ? {...row, path: last} : row);
}
