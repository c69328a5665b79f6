// Adds the plugin to a Perfetto UI that was built without it. This must run before the script of the UI.
//
// The UI puts its core into `window.app` before it activates plugins. That is not an interface that Perfetto keeps stable, so
// a UI that is different is left unchanged, with a warning on the console.

import {TABLES} from './generated/sql';
import {SynclinePlugin} from './plugin';

interface SqlPackage {
  readonly name: string;
  readonly modules: ReadonlyArray<{readonly name: string; readonly sql: string}>;
}

interface App {
  readonly plugins: {registerPlugin: (plugin: unknown) => void};
  readonly extraSqlPackages: SqlPackage[];
}

// The UI of v52 takes only the first part of a namespace as the name of a package.
const PACKAGE = 'dev';

// The UI soon replaces the address of the page.
const server = new URLSearchParams(window.location.hash.split('?')[1]).get('url')?.replace(/[^/]*$/, '') ?? null;

let app: unknown;
// Another script may wait for the core in the same way.
const before = Object.getOwnPropertyDescriptor(window, 'app');
Object.defineProperty(window, 'app', {
  configurable: true,
  enumerable: true,
  get: () => app,
  set: (value: App) => {
    app = value;
    before?.set?.call(window, value);
    try {
      // So that the commands of the address and the plugin build each table once.
      if (!value.extraSqlPackages.some(({name}) => name === PACKAGE)) {
        const modules = Object.entries(TABLES).map(([name, sql]) => ({name: `${PACKAGE}.syncline.${name}`, sql}));
        value.extraSqlPackages.push({name: PACKAGE, modules});
      }
      SynclinePlugin.hasModules = true;
      SynclinePlugin.server = server;
      value.plugins.registerPlugin(SynclinePlugin);
    } catch (error) {
      console.warn('syncline: this version of the Perfetto UI does not take the plugin:', error);
    }
  },
});
