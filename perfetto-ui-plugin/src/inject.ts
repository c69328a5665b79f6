// Adds the plugin to a Perfetto UI that was built without it. This must run before the script of the UI.
//
// The UI puts its core into `window.app` before it activates plugins. That is not an interface that Perfetto keeps stable, so
// a UI that is different is left unchanged, with a warning on the console.

import {SynclinePlugin} from './plugin';

let app: unknown;
// Another script may wait for the core in the same way.
const before = Object.getOwnPropertyDescriptor(window, 'app');
Object.defineProperty(window, 'app', {
  configurable: true,
  enumerable: true,
  get: () => app,
  set: (value: {plugins: {registerPlugin: (plugin: unknown) => void}}) => {
    app = value;
    before?.set?.call(window, value);
    try {
      value.plugins.registerPlugin(SynclinePlugin);
    } catch (error) {
      console.warn('syncline: this version of the Perfetto UI does not take the plugin:', error);
    }
  },
});
