// The phases of syncs: their order, and a class for each. docs/reference/phases.md describes them.

import COLOURS from '../../../sql/phase_colours.json';

// In the order of a usual sync. The last one is time in syncs that has no phase.
export const PHASES = [...Object.keys(COLOURS), 'residue', 'unknown'];

export const phaseName = (phase) => ({residue: 'not explained', unknown: 'no recorded phase'}[phase] ?? phase);

// Returns the classes of an element that shows a phase; build.mjs writes their colours. A phase of a later version has the look of the residue.
export const phaseClass = (phase) => `phase of-${(PHASES.includes(phase) ? phase : 'residue').replaceAll(' ', '-')}`;

// Returns phases in the order of a usual sync.
export const inOrder = (phases) => [...phases].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));

const rank = (phase) => (PHASES.includes(phase) ? PHASES.indexOf(phase) : PHASES.length);
