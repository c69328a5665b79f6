// The next and the previous slow sync.

import type {Database} from './database';
import {num} from './rows';

export interface SlowSync {
  readonly ts: bigint;
  readonly ns: number;
  readonly sliceId: number;
}

/** Reads the slowest hundredth of the syncs, at least 20, in the order of time. */
export async function readSlow(db: Database): Promise<SlowSync[]> {
  return (await db.query('slow')).map((row) => ({ts: BigInt(row['ts_ns'] as bigint), ns: num(row['dur_ns'])!, sliceId: num(row['slice_id'])!}));
}

/**
 * Returns the slow sync after (step 1) or before (step -1) the slice that is selected. After the last one comes the first.
 * A slice of one of them stands for its place; another one, or null, for the time at which it begins.
 */
export function next(slow: readonly SlowSync[], selected: {sliceId: number; ts: bigint} | null, step: 1 | -1): SlowSync | null {
  if (slow.length === 0) return null;
  const last = slow.length - 1;
  if (selected === null) return slow[step === 1 ? 0 : last]!;
  const here = slow.findIndex((one) => one.sliceId === selected.sliceId);
  const later = slow.findIndex((one) => one.ts > selected.ts);
  const after = later < 0 ? slow.length : later;
  const found = here >= 0 ? here + step : step === 1 ? after : after - 1;
  return slow[(found + slow.length) % slow.length]!;
}
