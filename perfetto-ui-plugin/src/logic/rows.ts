// Rows of a query as objects.

import type {Engine, Value} from '../perfetto';

export type Row = Readonly<Record<string, Value>>;

/** Runs a query and returns its rows. */
export async function rows(engine: Engine, sql: string): Promise<Row[]> {
  const result = await engine.query(sql);
  const columns = result.columns();
  const found: Row[] = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    found.push(Object.fromEntries(columns.map((column) => [column, row.get(column)])));
  }
  return found;
}

/** A number; null if it is not known. Durations and sizes are exact up to 2^53. */
export function num(value: Value | undefined): number | null {
  return value === null || value === undefined ? null : Number(value);
}

/** A time, which may be above 2^53; null if it is not known. */
export function time(value: Value | undefined): bigint | null {
  return value === null || value === undefined ? null : BigInt(value as bigint);
}

/** A text; null if it is not known. */
export function text(value: Value | undefined): string | null {
  return value === null || value === undefined ? null : String(value);
}
