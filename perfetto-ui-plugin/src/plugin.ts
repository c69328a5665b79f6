// Syncline's plugin for the Perfetto UI. It does nothing on traces that Syncline did not write.

import {SyncAreaTab} from './glue/area';
import {SyncPanel} from './glue/details';
import {Focus} from './glue/focus';
import {addKeys} from './glue/keys';
import {addLanes} from './glue/lanes';
import {addPage} from './glue/page';
import {addStyle} from './glue/parts';
import {Database} from './logic/database';
import {num} from './logic/rows';
import type {Trace} from './perfetto';

export class SynclinePlugin {
  static readonly id = 'dev.syncline.Sync';
  static readonly description = 'Shows what each sync of a trace that Syncline wrote waits for.';

  /** Whether the UI has the modules of the tables. */
  static hasModules = false;

  /** The folder of the trace on the server of `syncline open`, which ends with `/`; null in another UI. */
  static server: string | null = null;

  async onTraceLoad(trace: Trace): Promise<void> {
    const db = new Database(trace.engine, SynclinePlugin.hasModules);
    if ((await db.query('ours')).length === 0) return;
    addStyle();
    const ownTracks = new Set((await db.query('tracks')).map((row) => num(row['track_id'])!));
    const focus = new Focus(trace);
    const lanes = new Map<string, number | null>();
    trace.selection.registerAreaSelectionTab(new SyncAreaTab(trace, db, {slices: ownTracks, lanes}));
    // The plugins that make the tracks may run after this one.
    trace.onTraceReady.addListener(async () => {
      addPanels(trace, db, focus, ownTracks);
      await addLanes(trace, db, focus, lanes);
    });
    addKeys(trace, db, focus);
    addPage(trace, db, focus, SynclinePlugin.server);
  }
}

// Shows the panel of a sync on the tracks that other plugins have made of Syncline's slices.
function addPanels(trace: Trace, db: Database, focus: Focus, ownTracks: ReadonlySet<number>): void {
  for (const {renderer, tags} of trace.tracks.getAllTracks()) {
    if (!tags?.trackIds?.some((id) => ownTracks.has(id))) continue;
    const usual = renderer.detailsPanel?.bind(renderer);
    if (usual) renderer.detailsPanel = (selection) => new SyncPanel(trace, db, focus, usual(selection));
  }
}
