// A flame graph of stacks, whose weight can be chosen.

export const WEIGHTS = ['time', 'syncs', 'bytes'] as const;
export type Weight = (typeof WEIGHTS)[number];

export interface Stack {
  /** Frames, outermost first, joined by `;`; null if the sync has no stack. */
  readonly frames: string | null;
  readonly weights: Readonly<Record<Weight, number>>;
}

export interface Box {
  readonly name: string;
  readonly depth: number;
  /** Of the whole; 0 to 1. */
  readonly left: number;
  readonly width: number;
  readonly value: number;
}

interface Node {
  readonly children: Map<string, Node>;
  value: number;
}

/** Returns the boxes of the graph, those of a frame after the one that calls it. Empty if all weights are 0. */
export function flame(stacks: readonly Stack[], weight: Weight): Box[] {
  const root: Node = {children: new Map(), value: 0};
  for (const {frames, weights} of stacks) {
    const value = weights[weight];
    if (value <= 0) continue;
    root.value += value;
    let node = root;
    for (const name of frames?.split(';') ?? ['no stack is recorded']) {
      let child = node.children.get(name);
      if (child === undefined) node.children.set(name, (child = {children: new Map(), value: 0}));
      child.value += value;
      node = child;
    }
  }
  const boxes: Box[] = [];
  const place = (node: Node, depth: number, left: number) => {
    for (const [name, child] of [...node.children].sort(([a, x], [b, y]) => y.value - x.value || (a < b ? -1 : 1))) {
      const width = child.value / root.value;
      boxes.push({name, depth, left, width, value: child.value});
      place(child, depth + 1, left);
      left += width;
    }
  };
  place(root, 0, 0);
  return boxes;
}
