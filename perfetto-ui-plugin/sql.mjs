// Writes src/generated/sql.ts: the SQL of the tables, of the plugin and of the reports, and the colours of phases. A checkout of Perfetto has none of these files.

import {spawnSync} from 'node:child_process';
import {mkdirSync, readFileSync, readdirSync, writeFileSync} from 'node:fs';

const SQL = new URL('../sql/', import.meta.url);
const OUT = new URL('src/generated/', import.meta.url);
// Expands the macros of sql/macros/. It needs nothing but Python.
const EXPANDER = new URL('../converter/syncline/engine/macros.py', import.meta.url);

const parts = {
  // Modules of tables, by the name of the table without `syncline_`.
  TABLES: files('tables/perfetto'),
  // Statements that build what only the plugin uses.
  OWN_TABLES: files('views/plugin/tables'),
  QUERIES: files('views/plugin'),
  REPORTS: files('reports'),
};
// The panel of a sync asks the same of one sync as the report of the slowest ones.
const SLOWEST = '(number <= 10 OR (number <= 100 AND number * 100 <= syncs))';
const bystanders = parts.REPORTS.bystanders.split(SLOWEST);
if (bystanders.length !== 2) throw new Error('sql/reports/bystanders.sql does not select the slowest syncs in the known way');
parts.QUERIES['bystanders'] = bystanders.join('sync_id = $sync_id');
mkdirSync(OUT, {recursive: true});
const constants = Object.entries(parts).map(
  ([name, texts]) => `export const ${name}: Readonly<Record<string, string>> = ${JSON.stringify(texts, null, 1)};`,
);
const colours = readFileSync(new URL('phase_colours.json', SQL), 'utf8').trim();
constants.push(`export const PHASE_COLOURS: Readonly<Record<string, string>> = ${colours};`);
writeFileSync(new URL('sql.ts', OUT), `// Written by sql.mjs.\n\n${constants.join('\n\n')}\n`);

function files(folder) {
  const here = new URL(`${folder}/`, SQL);
  const names = readdirSync(here).filter((name) => name.endsWith('.sql')).sort();
  const texts = expanded(names.map((name) => readFileSync(new URL(name, here), 'utf8')));
  return Object.fromEntries(names.map((name, index) => [name.slice(0, -4), texts[index]]));
}

function expanded(texts) {
  const done = spawnSync('python3', [EXPANDER.pathname, new URL('macros/', SQL).pathname, 'perfetto'], {
    input: JSON.stringify(texts),
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  if (done.status !== 0) throw new Error(`python3 ${EXPANDER.pathname}: ${done.error ?? done.stderr}`);
  return JSON.parse(done.stdout);
}
