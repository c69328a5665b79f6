// A heat map of latencies over time.

export interface Cell {
  readonly column: number;
  /** 0 is the row of the shortest latencies. */
  readonly row: number;
  readonly count: number;
}

export interface Heat {
  readonly cells: readonly Cell[];
  readonly most: number;
}

export interface Range {
  readonly low: number;
  readonly high: number;
}

/** Counts the syncs that begin in each column of time and are in each row of latency, on a logarithmic scale. */
export function heat(
  syncs: ReadonlyArray<{readonly start: number; readonly length: number}>,
  time: {readonly from: number; readonly to: number},
  latency: Range,
  columns: number,
  rows: number,
): Heat {
  const counts = new Map<number, number>();
  let most = 0;
  for (const {start, length} of syncs) {
    if (start < time.from || start >= time.to) continue;
    const column = Math.min(Math.floor(((start - time.from) / (time.to - time.from)) * columns), columns - 1);
    const key = column * rows + rowOf(length, latency, rows);
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    if (count > most) most = count;
  }
  const cells = [...counts].map(([key, count]) => ({column: Math.floor(key / rows), row: key % rows, count}));
  return {cells, most};
}

/** Returns the row of a latency. */
export function rowOf(length: number, {low, high}: Range, rows: number): number {
  if (high <= low) return 0;
  const share = (Math.log(Math.max(length, low)) - Math.log(low)) / (Math.log(high) - Math.log(low));
  return Math.min(Math.floor(share * rows), rows - 1);
}

/** The shortest and the longest latency, at least 1 ns; null without a sync. */
export function range(syncs: ReadonlyArray<{readonly length: number}>): Range | null {
  if (syncs.length === 0) return null;
  let low = Infinity;
  let high = 0;
  for (const {length} of syncs) {
    low = Math.min(low, length);
    high = Math.max(high, length);
  }
  return {low: Math.max(low, 1), high: Math.max(high, 1)};
}
