// The names and colours of phases.

export interface Part {
  readonly name: string;
  readonly ns: number;
  /** Of the whole; 0 to 1. */
  readonly share: number;
  readonly colour: string;
}

// Eight colours that people who are colour-blind distinguish (Okabe and Ito, without black), and lighter ones of them.
const FIXED: Readonly<Record<string, string>> = {
  'device': '#0072b2',
  'writeback': '#0072b2',
  'queue': '#56b4e9',
  'before submit': '#f0e442',
  'after completion': '#d55e00',
  'completion': '#e8a06a',
  'commit logging': '#cc79a7',
  'commit wait': '#e2b6cf',
  'earlier commit': '#b98aa6',
  'flush': '#009e73',
  'cpu wait': '#e69f00',
  'lock wait': '#a87300',
  'earlier writeback': '#80c8b0',
  'residue': '#bbbbbb',
};
const OTHERS = ['#6a7fbf', '#7fbf6a', '#bf6a7f', '#5f9ea0', '#9a8f5f'];

/** The colour of a phase, which is the same everywhere. */
export function phaseColour(name: string): string {
  const fixed = FIXED[name];
  if (fixed !== undefined) return fixed;
  return OTHERS[hash(name) % OTHERS.length]!;
}

/** The name of a phase for people. */
export function phaseName(name: string): string {
  return name === 'residue' ? 'not explained' : name;
}

/** Adds up the phases of one name. The longest is first, and what is not explained is last. */
export function addUp(phases: ReadonlyArray<{readonly name: string; readonly ns: number}>): Part[] {
  const sums = new Map<string, number>();
  for (const {name, ns} of phases) sums.set(name, (sums.get(name) ?? 0) + ns);
  const all = [...sums.values()].reduce((sum, ns) => sum + ns, 0);
  return [...sums]
    .filter(([, ns]) => ns > 0)
    .sort(([a, x], [b, y]) => Number(a === 'residue') - Number(b === 'residue') || y - x || (a < b ? -1 : 1))
    .map(([name, ns]) => ({name: phaseName(name), ns, share: ns / all, colour: phaseColour(name)}));
}

/** A number that depends on a text only (FNV-1a). */
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}
