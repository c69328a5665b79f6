// The keys for the next and the previous slow sync.

import type {Database} from '../logic/database';
import {next, readSlow, type SlowSync} from '../logic/slow';
import type {Focus} from './focus';
import type {Trace, TrackEventSelection} from '../perfetto';

export function addKeys(trace: Trace, db: Database, focus: Focus): void {
  let slow: Promise<SlowSync[]> | undefined;
  const go = async (step: 1 | -1) => {
    slow ??= readSlow(db);
    const selection = trace.selection.selection;
    const event = selection.kind === 'track_event' ? (selection as TrackEventSelection) : null;
    const found = next(await slow, event && {sliceId: event.eventId, ts: event.ts}, step);
    if (found) focus.go(found);
  };
  trace.commands.registerCommand({
    id: 'dev.syncline.Sync#NextSlow',
    name: 'Syncline: next slow sync',
    callback: () => go(1),
    defaultHotkey: 'J',
  });
  trace.commands.registerCommand({
    id: 'dev.syncline.Sync#PreviousSlow',
    name: 'Syncline: previous slow sync',
    callback: () => go(-1),
    defaultHotkey: 'K',
  });
}
