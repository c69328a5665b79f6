// The entry in a checkout of Perfetto: ui/src/plugins/dev.syncline.Sync/index.ts.

export {SynclinePlugin as default} from './plugin';
