// The reports of sql/reports/: what their head comments say, and their cells as people read them.

import {REPORTS} from '../generated/sql';
import {bytes, duration, percent, time} from './format';
import type {Row} from './rows';
import type {Value} from '../perfetto';

export interface Column {
  readonly name: string;
  readonly unit: string;
  readonly text: string;
}

export interface Report {
  readonly name: string;
  readonly title: string;
  readonly columns: readonly Column[];
  readonly sql: string;
}

/** All reports, by name. */
export function reports(): Report[] {
  return Object.entries(REPORTS).map(([name, sql]) => parse(name, sql));
}

/** Parses the head comment of a report, whose form converter/syncline/report/catalogue.py describes. */
export function parse(name: string, sql: string): Report {
  const head = /^(?:--.*\n)+/.exec(sql)?.[0].split('\n').map((line) => line.replace(/^--\x20?/, '')) ?? [];
  const columns: Column[] = [];
  for (const line of head.slice(head.indexOf('Columns:') + 1)) {
    const found = /^  (\w+) +(\w+) +(\S.*)$/.exec(line);
    if (found) {
      columns.push({name: found[1]!, unit: found[2]!, text: found[3]!});
    } else if (line.trim() && columns.length > 0) {
      const last = columns.pop()!;
      columns.push({...last, text: `${last.text} ${line.trim()}`});
    }
  }
  const title = (head.slice(0, head.indexOf('')).join(' ') || name).replace(/^[^:]*: */, '');
  return {name, title: title.charAt(0).toUpperCase() + title.slice(1), columns, sql};
}

/** A cell of a report. A dash if its value is not known. */
export function cell(report: Report, row: Row, column: string): string {
  const value: Value = row[column] ?? null;
  if (value === null) return '–';
  let unit = report.columns.find((known) => known.name === column)?.unit ?? 'text';
  if (unit === 'unit') unit = String(row['unit'] ?? 'text');
  if (unit === 'tree') return '\u00a0\u00a0'.repeat(Number(row['depth'] ?? 0)) + String(value);
  const number = Number(value);
  if (typeof value === 'string' || Number.isNaN(number)) return String(value);
  if (unit === 'ns') return duration(number);
  if (unit === 'time' && typeof value !== 'object') return time(BigInt(value));
  if (unit === 'bytes') return bytes(number);
  if (unit === 'share' || unit === 'bar') return percent(number);
  if (unit === 'count') return number.toLocaleString('en');
  if (unit === 'ratio') return number.toPrecision(3);
  return String(value);
}

/** The name of a column for people: without its unit, which the cells have. */
export function heading(column: string): string {
  return column.replace(/_(ns|bytes)$/, '').replaceAll('_', ' ');
}

/** The rows in the order of a column: figures from the largest down, texts upwards, what is not known last. */
export function sorted(rows: readonly Row[], column: string | null): readonly Row[] {
  if (column === null) return rows;
  const order = (a: Value, b: Value): number => {
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    if (typeof a === 'string' || typeof b === 'string') return String(a) < String(b) ? -1 : Number(String(a) > String(b));
    return Number(b) - Number(a);
  };
  return [...rows].sort((a, b) => order(a[column] ?? null, b[column] ?? null));
}
