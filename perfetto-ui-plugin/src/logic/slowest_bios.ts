// The bios that took longest, of a recording without syncs.

import {bytes, duration} from './format';
import {num, type Row, text} from './rows';
import {thread} from './thread';

export interface SlowBio {
  readonly sliceId: number | null;
  readonly ts: bigint;
  readonly ns: number;
  /** Length, in the queue, at the device, size, flags, device, thread, file. A dash where it is not recorded. */
  readonly cells: readonly string[];
}

export const HEADINGS = ['length', 'queue', 'device', 'size', 'flags', 'disk', 'thread', 'file'];

export function slowestBios(rows: readonly Row[], names: ReadonlyMap<string, string>): SlowBio[] {
  return rows.map((row): SlowBio => {
    const ns = num(row['dur_ns'])!;
    const dev = text(row['dev']);
    const cells = [duration(ns), duration(num(row['queue_ns'])), duration(num(row['device_ns'])), bytes(num(row['bytes'])), text(row['rwbs']) ?? '–', (dev && (names.get(dev) ?? dev)) ?? '–', thread(row) ?? '–', text(row['path']) ?? '–'];
    return {sliceId: num(row['slice_id']), ts: BigInt(row['ts_ns'] as bigint), ns, cells};
  });
}
