// The names and colours of phases.

import {PHASE_COLOURS} from '../generated/sql';

export interface Part {
  readonly name: string;
  readonly ns: number;
  /** Of the whole; 0 to 1. */
  readonly share: number;
  readonly colour: string;
}

// What the phases of a later version look like, and what is not explained.
const OTHER = '#bbbbbb';

/** The colour of a phase: that of its slices on the tracks of threads. */
export function phaseColour(name: string): string {
  return PHASE_COLOURS[name] ?? OTHER;
}

/** The colour of a text that can be read on `colour`, of the form #rrggbb. */
export function textOn(colour: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * red! + 0.587 * green! + 0.114 * blue! < 140 ? '#fff' : '#000';
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
