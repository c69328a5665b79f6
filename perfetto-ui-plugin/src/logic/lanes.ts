// Boxes of a lane on the screen: of many that share a pixel, the longest.

export interface Item {
  /** Since the start of the trace, in ns. */
  readonly start: number;
  readonly length: number;
  readonly colour: string;
  readonly label: string;
  /** The slice to which a click goes. */
  readonly sliceId: number | null;
}

export interface Box {
  readonly left: number;
  readonly width: number;
  readonly item: Item;
}

/** The part of time that is shown: `pixels` for what is between `from` and `to`. */
export interface Scale {
  readonly from: number;
  readonly to: number;
  readonly pixels: number;
}

/** Returns what to draw of the items of a lane, which are in the order of their starts. */
export function boxes(items: readonly Item[], {from, to, pixels}: Scale): Box[] {
  const perNs = pixels / (to - from);
  const found: Box[] = [];
  let narrow: Item | undefined;
  let pixel = -1;
  const flush = () => {
    if (narrow) found.push({left: pixel, width: 1, item: narrow});
    narrow = undefined;
  };
  for (const item of items) {
    if (item.start > to) break;
    if (item.start + item.length < from) continue;
    const left = Math.max((item.start - from) * perNs, 0);
    const width = Math.min((item.start + item.length - from) * perNs, pixels) - left;
    const at = Math.floor(left);
    if (at !== pixel) {
      flush();
      pixel = at;
    }
    if (width >= 1) {
      found.push({left, width, item});
    } else if (narrow === undefined || item.length > narrow.length) {
      narrow = item;
    }
  }
  flush();
  return found;
}

/** Returns the item at a time; of several, the one that began last. */
export function itemAt(items: readonly Item[], time: number, tolerance: number): Item | null {
  let found: Item | null = null;
  for (const item of items) {
    if (item.start - tolerance > time) break;
    if (item.start + item.length + tolerance >= time) found = item;
  }
  return found;
}

/** A colour for a latency: from green (shortest) over yellow to dark red (longest), by its logarithm. */
export function latencyColour(ns: number, shortest: number, longest: number): string {
  const low = Math.log(Math.max(shortest, 1));
  const share = longest > shortest ? (Math.log(Math.max(ns, 1)) - low) / (Math.log(longest) - low) : 1;
  return `hsl(${Math.round(140 * (1 - share))}, 70%, ${Math.round(62 - 22 * share)}%)`;
}
