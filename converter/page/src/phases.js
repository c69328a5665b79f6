// The phases of syncs: their order, and a colour for each that is the same everywhere. docs/reference/phases.md describes them.

// What a phase is about. Families have different hues, also for people who do not see red and green alike; the phases of a family have
// different lightness. The order is that of a usual sync.
const FAMILIES = [
  ['before submit', ['before submit']],
  ['data', ['submit', 'queue', 'device', 'writeback', 'completion']],
  ['writeback of others', ['earlier writeback']],
  ['journal', ['earlier commit', 'commit start', 'commit locking', 'commit flushing', 'commit logging', 'commit', 'commit wait', 'fast commit', 'fast commit wait']],
  ['flush', ['flush']],
  ['thread', ['lock wait', 'cpu wait']],
  ['after completion', ['after completion']],
  ['not explained', ['residue']],
  // Time in syncs that has no phase.
  ['not recorded', ['unknown']],
];

export const PHASES = FAMILIES.flatMap(([, phases]) => phases);

const FAMILY = new Map(FAMILIES.flatMap(([, phases], family) => phases.map((phase, place) => [phase, {family, place, of: phases.length}])));

export const phaseName = (phase) => ({residue: 'not explained', unknown: 'no recorded phase'}[phase] ?? phase);

// Returns the classes of an element that shows a phase. A phase of a later version has the look of the residue.
export function phaseClass(phase) {
  const {family, place} = FAMILY.get(phase) ?? FAMILY.get('residue');
  return `phase f${family} p${place}`;
}

// Returns phases in the order of a usual sync.
export const inOrder = (phases) => [...phases].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));

const rank = (phase) => (PHASES.includes(phase) ? PHASES.indexOf(phase) : PHASES.length);
