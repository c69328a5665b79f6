// The sync that is selected, which all lanes mark, and the way to one.

import type {Time, Trace} from '../perfetto';

export interface Focused {
  readonly sliceId: number | null;
  readonly ts: bigint;
  readonly ns: number;
}

export class Focus {
  private focused: Focused | null = null;
  private isShown = true;
  private syncId: number | null = null;
  private readonly listeners: Array<(syncId: number) => void> = [];

  constructor(private readonly trace: Trace) {}

  set(focused: Focused, syncId: number): void {
    this.focused = focused;
    if (syncId !== this.syncId) for (const listener of this.listeners) listener(syncId);
    this.syncId = syncId;
    if (!this.isShown) this.show(focused);
  }

  /** Calls `listener` with the sync that is selected, and with each that is selected later. */
  onSync(listener: (syncId: number) => void): void {
    this.listeners.push(listener);
    if (this.syncId !== null) listener(this.syncId);
  }

  get(): Focused | null {
    return this.trace.selection.selection.kind === 'track_event' ? this.focused : null;
  }

  /** Brings the sync that is selected, or whose panel is about to open, into view. */
  showSelected(): void {
    const focused = this.get();
    if (focused) this.show(focused);
    else this.isShown = this.trace.selection.selection.kind !== 'track_event';
  }

  /** Selects a slice, opens its panel, and brings its time into view. The tracks stay where they are. */
  go(focused: Focused & {readonly sliceId: number}): void {
    this.trace.selection.selectSqlEvent('slice', focused.sliceId, {scrollToSelection: false, switchToCurrentSelectionTab: true});
    this.show(focused);
  }

  private show({ts, ns}: Focused): void {
    this.isShown = true;
    const margin = BigInt(Math.ceil(Math.max(ns, 1000) / 4));
    const [start, end] = [ts - margin, ts + BigInt(ns) + margin] as [Time, Time];
    // The first name is that of v52, the second one that of later releases.
    this.trace.scrollTo({time: {start, end, viewPercentage: 1, behavior: {viewPercentage: 1}}});
  }
}
