// Bundles the plugin for the UI that `syncline open --offline` serves: converter/syncline/ui/plugin/plugin.js.

import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
await build({
  entryPoints: [here('src/inject.ts')],
  outfile: here('../converter/syncline/ui/plugin/plugin.js'),
  bundle: true,
  minify: true,
  format: 'iife',
  target: ['chrome111', 'firefox113', 'safari16.4'],
  charset: 'ascii',
  // The page of the UI has a mithril of its own, which must be the one that draws.
  alias: {mithril: here('src/page_mithril.ts')},
  absWorkingDir: here('.'),
  logLevel: 'warning',
});
