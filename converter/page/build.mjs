// Bundles the page of `syncline report --html` into one standalone file: syncline/report/page/page.html.

import {createHash} from 'node:crypto';
import {mkdirSync, readFileSync, readdirSync, writeFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';

const OUT = new URL('../syncline/report/page/', import.meta.url);
// Placeholder that syncline/report/html.py replaces by the data of a report.
const DATA = '"the data of the report"';

const here = (name) => new URL(name, import.meta.url);
const {metafile, outputFiles} = await build({
  entryPoints: [fileURLToPath(here('src/main.js'))],
  bundle: true,
  minify: true,
  write: false,
  format: 'iife',
  target: ['chrome111', 'firefox113', 'safari16.4'],
  charset: 'ascii',
  legalComments: 'none',
  metafile: true,
  absWorkingDir: fileURLToPath(here('.')),
  logLevel: 'warning',
});
const script = outputFiles[0].text.trim();
if (/<\/script|<!--/i.test(script)) throw new Error('the bundle contains </script> or <!--, which would end the script element');
// The same colours as in the Perfetto UI.
const colours = Object.entries(JSON.parse(readFileSync(here('../../sql/phase_colours.json'), 'utf8')));
const phases = colours.map(([phase, colour]) => `.of-${phase.replaceAll(' ', '-')} { --phase: ${colour}; }`).join('\n');
const style = `${phases}\n${readFileSync(here('src/style.css'), 'utf8')}`.replace(/\/\*[^]*?\*\//g, '').replace(/\s+/g, ' ');
// Second line of defence: text that got past every escape could neither run nor fetch anything.
const hash = createHash('sha256').update(script).digest('base64');
const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'`;

const parts = {policy, licences: licences(metafile), style, data: DATA, script};
const page = readFileSync(here('src/page.html'), 'utf8').replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
mkdirSync(OUT, {recursive: true});
writeFileSync(new URL('page.html', OUT), page);
console.log(`page.html: ${Math.round(page.length / 1000)} kB`);

// Returns the licences of the bundled packages, which must be distributed with them. Each text appears once, below its packages.
function licences({inputs}) {
  const folders = new Set(Object.keys(inputs).map((file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]).filter(Boolean));
  const owners = new Map();
  for (const folder of [...folders].sort()) {
    const {name, version} = JSON.parse(readFileSync(here(`${folder}/package.json`), 'utf8'));
    const file = readdirSync(here(`${folder}/`)).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) throw new Error(`${name} has no licence file; the page must contain the licences of its packages`);
    const lines = readFileSync(here(`${folder}/${file}`), 'utf8').trim().split('\n').map((line) => line.trim());
    const copyright = lines.filter((line) => /^copyright /i.test(line));
    const text = lines.filter((line) => !/^copyright /i.test(line)).join('\n').trim();
    owners.set(text, [...(owners.get(text) ?? []), `${name} ${version}: ${copyright.join('; ')}`]);
  }
  const texts = [...owners].map(([text, names]) => `${names.join('\n')}\n\n${text}`).join('\n\n');
  return `This page contains parts of these packages.\n\n${texts}`.replace(/--+/g, '-').replaceAll('>', '');
}
