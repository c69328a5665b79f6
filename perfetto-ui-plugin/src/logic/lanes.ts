// Boxes of a lane on the screen: of many that share a pixel, what most of their time went to.

export interface Item {
  /** Since the start of the trace, in ns. */
  readonly start: number;
  readonly length: number;
  readonly colour: string;
  readonly label: string;
  /** The slice to which a click goes. */
  readonly sliceId: number | null;
  /** It has parts, which are items of their own. Only the rest of it is what it is. */
  readonly isWhole?: boolean;
  /** What a pointer on it shows besides; nothing if it is null. */
  readonly hint?: string | null;
}

export interface Box {
  readonly left: number;
  readonly width: number;
  readonly item: Item;
  /** How much of its time is covered: 1 unless it stands for several items that share a pixel. */
  readonly busy: number;
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
  let shared = new Shared();
  let pixel = -1;
  const flush = () => {
    const most = shared.most();
    if (most) found.push({left: pixel, width: 1, item: most, busy: Math.min(shared.time() * perNs, 1)});
    shared = new Shared();
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
      found.push({left, width, item, busy: 1});
    } else {
      shared.add(item);
    }
  }
  flush();
  return found;
}

// The items that share a pixel: how long they are in all, by colour.
class Shared {
  private readonly parts = new Map<string, {time: number; longest: Item}>();
  private partTime = 0;
  private wholeTime = 0;
  private whole: Item | null = null;

  add(item: Item): void {
    if (item.isWhole) {
      this.wholeTime += item.length;
      if (this.whole === null || item.length > this.whole.length) this.whole = item;
      return;
    }
    this.partTime += item.length;
    const part = this.parts.get(item.colour);
    if (part === undefined) {
      this.parts.set(item.colour, {time: item.length, longest: item});
    } else {
      part.time += item.length;
      if (item.length > part.longest.length) part.longest = item;
    }
  }

  time(): number {
    return Math.max(this.partTime, this.wholeTime);
  }

  most(): Item | null {
    let most: {time: number; longest: Item} | null = null;
    for (const part of this.parts.values()) if (most === null || part.time > most.time) most = part;
    return this.whole !== null && (most === null || this.wholeTime - this.partTime > most.time) ? this.whole : most?.longest ?? null;
  }
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

/** A text that fits into a width: whole, else its begin with `…`, or nothing if that would say too little. */
export function fitting(text: string, width: number, measure: (text: string) => number): string {
  if (measure(text) <= width) return text;
  let cut = Math.min(text.length - 1, Math.floor((text.length * width) / Math.max(measure(text), 1)));
  while (cut > 0 && measure(`${text.slice(0, cut)}…`) > width) cut--;
  return cut < 4 ? '' : `${text.slice(0, cut).trimEnd()}…`;
}

/** A colour for a latency: from green (shortest) over yellow to dark red (longest), by its logarithm. */
export function latencyColour(ns: number, shortest: number, longest: number): string {
  const low = Math.log(Math.max(shortest, 1));
  const share = longest > shortest ? (Math.log(Math.max(ns, 1)) - low) / (Math.log(longest) - low) : 1;
  return `hsl(${Math.round(140 * (1 - share))}, 70%, ${Math.round(62 - 22 * share)}%)`;
}
