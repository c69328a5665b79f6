// Type-checks the plugin against the sources of releases of Perfetto, which it fetches into build/ (nothing of them is committed).
//
//   node check/check.mjs             the releases below
//   node check/check.mjs v57.2       others
//
// PERFETTO_REPOSITORY names another repository than that on GitHub: an address or a folder.

import {execFileSync, spawnSync} from 'node:child_process';
import {existsSync, mkdirSync, writeFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';

// The first one is in the package that Syncline installs; the last one is the newest that was looked at.
const RELEASES = ['v52.0', 'v55.3', 'v58.2'];
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const repository = process.env.PERFETTO_REPOSITORY ?? 'https://github.com/google/perfetto';

let failed = 0;
const releases = process.argv.slice(2);
for (const release of releases.length ? releases : RELEASES) {
  const source = fetch(release);
  const errors = check(release, source);
  console.log(errors.length ? `${release}: ${errors.length} errors\n${errors.join('\n')}` : `${release}: ok`);
  failed += errors.length ? 1 : 0;
}
process.exit(failed ? 1 : 0);

function fetch(release) {
  const folder = `${ROOT}build/${release}`;
  if (!existsSync(`${folder}/ui/src/public/trace.ts`)) {
    mkdirSync(`${ROOT}build`, {recursive: true});
    console.log(`${release}: fetching from ${repository}`);
    const git = (...args) => execFileSync('git', args, {stdio: ['ignore', 'ignore', 'inherit']});
    if (existsSync(repository)) {
      // A folder may be a copy without large files, which cannot be cloned.
      mkdirSync(folder, {recursive: true});
      git('-C', repository, 'archive', '-o', `${folder}/ui.tar`, release, 'ui/src');
      execFileSync('tar', ['xf', `${folder}/ui.tar`, '-C', folder]);
      return `${folder}/ui/src`;
    }
    git('clone', '-q', '-c', 'advice.detachedHead=false', '--depth', '1', '--branch', release, '--filter=blob:none', '--sparse', repository, folder);
    git('-C', folder, 'sparse-checkout', 'set', 'ui/src');
  }
  return `${folder}/ui/src`;
}

function check(release, source) {
  const config = `${ROOT}build/tsconfig-${release}.json`;
  writeFileSync(config, JSON.stringify({
    extends: '../tsconfig.json',
    compilerOptions: {
      noUnusedLocals: false,
      lib: ['ES2022', 'ESNext.Disposable', 'DOM', 'DOM.Iterable'],
      // Their sources import mithril too. What else they import is not here.
      paths: {'perfetto/*': [`${source}/*`], 'mithril': ['../node_modules/@types/mithril']},
    },
    include: ['../check/conformance.ts'],
  }));
  const done = spawnSync(process.execPath, [`${ROOT}node_modules/typescript/bin/tsc`, '-p', config, '--pretty', 'false'], {cwd: ROOT, encoding: 'utf8'});
  const lines = done.stdout.split('\n');
  const missing = lines.filter((line) => /perfetto\/public\/.*(TS2307|TS6053)/.test(line) && !line.startsWith('build/'));
  if (done.status !== 0 && !done.stdout) return [done.stderr];
  // Their own files need packages and generated files that are not here.
  let ours = false;
  const errors = lines.filter((line) => (ours = /^\s/.test(line) ? ours : /^(check|src)\//.test(line)));
  return [...new Set([...missing, ...errors])];
}
