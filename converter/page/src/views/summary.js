// The figures of the selection, as tiles, and those of the report `summary` for the whole run, as a table.

import {AMOUNT, LATENCY} from '../buckets.js';
import {command} from '../command.js';
import * as format from '../format.js';
import {h} from '../dom.js';
import {filtered, percentile, percentileBounds} from '../model.js';

// Returns the figures of the tiles for one side and a selection. A value can be null (not known) or have bounds (`from`, `to`).
// `journal`: include the journal wait, because at least one side recorded it.
export function figures(side, state, journal = side.recorded.journal) {
  const found = side.select(state);
  const {total, values, buckets} = found;
  const all = !filtered(state);
  const metric = (name, scope) => side.metric(name, scope)?.value ?? null;
  const quantile = (kind, percent) => {
    if (all) return metric(`${{syscall: 'syscall_latency', writeback: 'writeback_latency', journal: 'journal_wait', amount: 'writeback_amount'}[kind]}_p${percent}`);
    if (values) return percentile(values[kind], percent);
    return percentileBounds(buckets[kind], percent, kind === 'amount' ? AMOUNT : LATENCY, total[`${kind}_max_ns`]);
  };
  const sum = all ? metric('sync_time_sum') : total.sum('dur_ns', 'timed');
  const wall = all ? metric('sync_wall_time') : total.timed ? found.wall : null;
  return {
    syncs: {label: 'Syncs', value: all ? metric('syncs') : total.syncs, unit: 'count', more: [...(all ? [] : [['of', side.raw.requests, 'count']]), ['files', files(side, found, all), 'count'], ['threads', threads(side, found, all), 'count']]},
    syscall: {label: 'Syscall latency, median', value: quantile('syscall', 50), unit: 'ns', more: [['p99', quantile('syscall', 99), 'ns'], ['max', all ? metric('syscall_latency_max') : total.syscall_max_ns, 'ns'], ['known of', total.syscalls, 'count', false, total.syncs]]},
    writeback: {label: 'Writeback latency, median', value: quantile('writeback', 50), unit: 'ns', more: [['p99', quantile('writeback', 99), 'ns'], ['max', all ? metric('writeback_latency_max') : total.writeback_max_ns, 'ns'], ['known of', total.writebacks, 'count', false, total.syncs]]},
    ...(journal ? {journal: {label: 'Journal wait, median', value: quantile('journal', 50), unit: 'ns', more: [['p99', quantile('journal', 99), 'ns'], ['sum', side.waited(total, 'journal'), 'ns'], ['share of sync time', total.journal_dur_ns ? total.journal_ns / total.journal_dur_ns : null, 'share'], ['known of', total.journals, 'count', false, total.syncs]]}} : {}),
    amount: {label: 'Written back', value: all ? metric('writeback_amount_sum') : total.sum('bytes', 'amounts'), unit: 'bytes', more: [['median', quantile('amount', 50), 'bytes'], ['p99', quantile('amount', 99), 'bytes'], ['known of', total.amounts, 'count', false, total.syncs]]},
    empty: {label: 'Empty syncs', value: all ? metric('empty_share') : total.whole && total.amounts ? total.empty / total.whole : null, unit: 'share', more: [['wrote nothing', total.amounts || !total.syncs ? total.empty : null, 'count'], ['incomplete', total.incomplete, 'count']]},
    time: {label: 'Time in sync', value: sum, unit: 'ns', more: [['wall time', wall, 'ns', side.counted && !all], ['parallelism', wall ? sum / wall : null, 'ratio', side.counted && !all]]},
    exact: {label: 'Exact attribution', value: all ? metric('attribution_share', 'exact') : total.attributed ? total.exact / total.attributed : null, unit: 'share', more: [['losses in the run', metric('losses'), 'count']]},
  };
}

const files = (side, found, all) => (all ? side.raw.files : distinct(found, 'file', side, 'otherFiles'));
const threads = (side, found, all) => (all ? side.raw.threads : distinct(found, 'thread', side, 'otherThreads'));

// Number of files, or threads, with a selected sync. Null if the entry that combines several of them is among these.
function distinct(found, field, side, others) {
  const numbers = [...found[`${field}s`].keys()].filter((number) => found.test[field](number));
  return side[others] && numbers.includes(side[`${field}s`].length - 1) ? null : numbers.length;
}

export function tiles(sides, state) {
  if (!sides.some((side) => side.raw.requests)) return [];
  const journal = sides.some(({recorded}) => recorded.journal);
  const all = sides.map((side) => figures(side, state, journal));
  const now = all.at(-1);
  // What no recorder of this input can know is named once, instead of a row of dashes.
  const isRecorded = (key) => !(key in NEEDS) || sides.some((side) => side.metric(...NEEDS[key])?.value != null);
  const absent = Object.entries(now).filter(([key]) => !isRecorded(key)).map(([, {label}]) => label.replace(/,.*/, '').toLowerCase());
  return [h(`dl.tiles${sides.length > 1 ? '.two' : ''}`, {}, Object.entries(now).filter(([key]) => isRecorded(key)).map(([key, figure]) => {
    const base = sides.length > 1 ? all[0][key] : null;
    return h('div.tile', {'data-figure': key, 'data-value': raw(figure.value)},
      h('dt', {}, `${figure.label}${covered(figure)}`),
      h('dd.big', {}, shown(figure.value, figure.unit)),
      base ? h('dd.was', {}, `base ${shown(base.value, figure.unit)}  ${format.change(plain(base.value), plain(figure.value), figure.unit)}`) : null,
      h('dd.more', {}, figure.more.map(([name, value, unit, unknown, of], index) => h('span', {'data-figure': name, 'data-value': raw(value), title: unknown ? 'Not known for a selection: this page holds only sums by time bin. The SQL of the selection gives it.' : null},
        `${of == null ? `${name} ${shown(value, unit)}` : `known for ${shown(value, unit)} of ${shown(of, 'count')} ${of === 1 ? 'sync' : 'syncs'}`}${unknown ? ' (not known for a selection)' : ''}${base && !unknown ? ` (base ${shown(base.more[index][1], unit)})` : ''}`))));
  })), absent.length ? h('p.note.absent', {}, `Not recorded: ${absent.join(', ')}.`) : null];
}

// By tile: the metric of the report without which it has nothing to show.
const NEEDS = {syscall: ['syscall_latency_sum'], writeback: ['writeback_latency_sum'], amount: ['writeback_amount_sum'], empty: ['empty_share'], exact: ['attribution_share', 'exact']};

// A figure of a few syncs must not look like one of all.
function covered({more}) {
  const [, known, , , of] = more.find(([name]) => name === 'known of') ?? [];
  return known > 0 && known < of ? ` of ${format.count(known)} of ${format.counted(of, 'sync')}` : '';
}

const raw = (value) => (value == null ? null : typeof value === 'object' ? `${value.from}..${value.to}` : value);
const plain = (value) => (value && typeof value === 'object' ? value.to : value);
function shown(value, unit) {
  if (value && typeof value === 'object') return `${format.text(value.from, unit)} – ${format.text(value.to, unit)}`;
  return format.text(value, unit);
}

export function wholeSummary(sides) {
  const now = sides.at(-1).raw.summary;
  const base = sides.length > 1 ? sides[0].raw.summary : null;
  const rows = now.metric.map((metric, row) => ({metric, scope: now.scope[row], unit: now.unit[row], now: row, base: null}));
  base?.metric.forEach((metric, row) => {
    const found = rows.find((one) => one.metric === metric && one.scope === base.scope[row]);
    if (found) found.base = row;
    else rows.push({metric, scope: base.scope[row], unit: base.unit[row], now: null, base: row});
  });
  const of = (summary, row, name) => (row === null ? null : summary[name][row]);
  return h('details', {}, h('summary', {}, 'All figures of the report `summary` for the whole run'),
    h('div.scroll', {tabindex: 0, role: 'group', 'aria-label': 'All figures'}, h('table.data', {id: 'summary-table'},
      h('thead', {}, h('tr', {}, ['metric', 'scope', ...(base ? ['base', 'new', 'change'] : ['value']), 'known of', 'syncs'].map((name) => h('th', {scope: 'col'}, name)))),
      h('tbody', {}, rows.map((one) => h('tr', {'data-metric': one.metric, 'data-scope': one.scope, 'data-value': of(now, one.now, 'value')},
        h('th', {scope: 'row'}, one.metric), h('td.left', {}, format.printable(one.scope)),
        base ? h('td', {}, format.text(of(base, one.base, 'value'), one.unit)) : null,
        h('td', {}, format.text(of(now, one.now, 'value'), one.unit)),
        base ? h('td', {}, format.change(of(base, one.base, 'value'), of(now, one.now, 'value'), one.unit)) : null,
        h('td', {}, format.count(of(now, one.now, 'known'))), h('td', {}, format.count(of(now, one.now, 'syncs')))))))));
}

// Lists differences of the setup that may explain different figures. `syncline diff` has the same sentences.
export function differing(warnings) {
  return h('section.caveats.some', {id: 'differences', 'data-contents': 'Differences of the setup', 'aria-labelledby': 'differences-title'},
    h('p', {}, h('strong', {id: 'differences-title'}, '▲ These differ between the two sides and may explain different figures')),
    h('ul', {}, warnings.map((text) => h('li', {}, format.printable(text)))));
}

// What failed is the most serious that a recording can show, so it is above all else and not among what is missing.
export function failed(sides) {
  const found = sides.filter((side) => side.raw.failed.length);
  if (!found.length) return null;
  return h('section.failed', {id: 'failed', role: 'alert', 'aria-labelledby': 'failed-title'},
    h('h2', {id: 'failed-title'}, h('span', {'aria-hidden': 'true'}, '✖ '), 'Failed'),
    found.flatMap((side) => [
      side.raw.failed.map((text) => h('p', {}, sides.length > 1 ? h('span.role', {}, side.index ? 'new' : 'base') : null, sides.length > 1 ? ' ' : null, format.printable(text))),
      side.raw.failures ? failures(side, sides.length > 1) : null,
    ]));
}

const FAILURES = [['what', 'what', 'text'], ['error', 'error', 'text'], ['failed', 'how many', 'count'], ['op', 'call', 'text'], ['path', 'file', 'text'], ['dev', 'device', 'text'], ['comm', 'thread', 'text'], ['first_ts_ns', 'first at', 'time'], ['run', 'run', 'text']];
const NUMBERS = new Set(['count', 'time']);

// The first rows of the report `failures`.
function failures(side, titled) {
  const {rows, more} = side.raw.failures;
  const columns = FAILURES.filter(([key]) => rows[key].some((value) => value != null && value !== ''));
  return [
    h('div.scroll', {tabindex: 0, role: 'group', 'aria-label': `What failed${titled ? ` in ${side.name}` : ''}`}, h('table.data', {},
      h('thead', {}, h('tr', {}, columns.map(([, label, unit]) => h(NUMBERS.has(unit) ? 'th' : 'th.left', {scope: 'col'}, label)))),
      h('tbody', {}, rows.what.map((_, row) => h('tr', {}, columns.map(([key, , unit]) => h(NUMBERS.has(unit) ? 'td' : key === 'path' ? 'td.left.prose' : 'td.left', {}, format.text(rows[key][row], unit)))))))),
    more ? h('p.note', {}, `${format.count(more)} more rows.`) : null,
    command('All of them', `syncline report ${side.raw.typed} failures`),
  ];
}

export function caveats(side, titled) {
  const {caveats, losses} = side.raw;
  const exact = side.metric('attribution_share', 'exact');
  const confidence = exact?.value == null ? 'No bio and no wait is recorded, so there is nothing to attribute to a sync.' : `Confidence of the relations between bios, calls and requests: ${format.share(exact.value)} exact, ${format.share(side.metric('attribution_share', 'inferred')?.value)} inferred, ${format.share(side.metric('attribution_share', 'unknown')?.value)} unknown.`;
  const lost = side.metric('losses')?.value;
  // Without syncs, nothing can be said about what belongs to them.
  const isEmpty = !side.raw.requests;
  const head = caveats.length ? 'Missing from these figures' : lost == null ? 'Losses are not known' : isEmpty ? 'What is missing is not known' : 'No losses recorded';
  return h(`section.caveats${caveats.length ? '.some' : ''}`, {id: `caveats-${side.index}`, 'data-contents': titled ? `Losses of ${side.short}` : null, 'aria-labelledby': `caveats-${side.index}-title`},
    h('p', {}, h('strong', {id: `caveats-${side.index}-title`}, `${caveats.length ? '▲ ' : lost == null || isEmpty ? '? ' : '✓ '}${head}${titled ? `: ${format.printable(side.short)}` : ''}`)),
    caveats.length ? h('ul', {}, caveats.map((text) => h('li', {}, format.printable(text)))) : null,
    h('p', {}, isEmpty ? 'No gap was found in the input. Without a sync request it is not known which threads waited for which files, nor whether the recorder missed their syncs.' : confidence),
    losses.reason.length ? h('details', {}, h('summary', {}, `${caveats.length ? 'Reasons' : 'What was not used, and is no loss'}, each with an example (${losses.reason.length})`), h('div.scroll', {tabindex: 0, role: 'group', 'aria-label': 'Losses'}, h('table.data', {},
      h('thead', {}, h('tr', {}, ['reason', 'severity', 'count', 'meaning', 'example', 'after', 'first'].map((name) => h('th', {scope: 'col'}, name)))),
      h('tbody', {}, losses.reason.map((reason, row) => h('tr', {}, h('th', {scope: 'row'}, reason), h('td.left', {}, losses.severity[row]), h('td', {}, format.count(losses.count[row])), h('td.left.prose', {}, format.text(losses.meaning[row], 'text')), h('td.left.prose', {}, format.text(losses.example[row], 'text')), h('td', {}, format.ns(losses.after_ns[row])), h('td', {}, format.time(losses.first_ts_ns[row])))))))) : null);
}
