// Bundles the page of `syncline report --html` into one file with nothing outside it: syncline/report/page/page.html.

import {createHash} from 'node:crypto';
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {build} from 'esbuild';

const OUT = new URL('../syncline/report/page/', import.meta.url);
// syncline/report/html.py puts the data of a report in its place.
const DATA = '"the data of the report"';

const here = (name) => new URL(name, import.meta.url);
const {outputFiles} = await build({
  entryPoints: [here('src/main.js').pathname],
  bundle: true,
  minify: true,
  write: false,
  format: 'iife',
  target: ['chrome111', 'firefox113', 'safari16.4'],
  charset: 'ascii',
  legalComments: 'none',
  logLevel: 'warning',
});
const script = outputFiles[0].text.trim();
if (/<\/script|<!--/i.test(script)) throw new Error('the bundle would end its own script');
const style = readFileSync(here('src/style.css'), 'utf8').replace(/\/\*[^]*?\*\//g, '').replace(/\s+/g, ' ');
// Even text that got past every escape could neither run nor fetch anything.
const hash = createHash('sha256').update(script).digest('base64');
const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'`;

const parts = {policy, style, data: DATA, script};
const page = readFileSync(here('src/page.html'), 'utf8').replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
mkdirSync(OUT, {recursive: true});
writeFileSync(new URL('page.html', OUT), page);
console.log(`page.html: ${Math.round(page.length / 1000)} kB`);
