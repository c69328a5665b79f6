// The interfaces of src/perfetto.ts against those of a release. check.mjs compiles this with `perfetto` as its ui/src.

import type {PerfettoPlugin, PerfettoPluginStatic} from 'perfetto/public/plugin';
import type {Trace as TheirTrace} from 'perfetto/public/trace';
import type {AreaSelection as TheirArea, TrackEventSelection as TheirEvent} from 'perfetto/public/selection';
import type {TrackEventDetailsPanel} from 'perfetto/public/details_panel';
import type {AreaSelection, DetailsPanel, Trace, TrackEventSelection} from '../src/perfetto';
import SynclinePlugin from '../src/index';

declare const theirs: {trace: TheirTrace; area: TheirArea; event: TheirEvent};

// What the plugin is given.
export const trace: Trace = theirs.trace;
export const area: AreaSelection = theirs.area;
export const event: TrackEventSelection = theirs.event;

// What it gives.
declare const panel: DetailsPanel;
export const theirPanel: TrackEventDetailsPanel = panel;
export const plugin: {readonly id: string; new (trace: TheirTrace): PerfettoPlugin} = SynclinePlugin;
export type Static = PerfettoPluginStatic<PerfettoPlugin>;
export const descriptor: Static = SynclinePlugin;
