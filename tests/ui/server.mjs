// Runs jobs in one Chromium, each in a context of its own: it shares no storage and no cache with the others.
// To start a browser takes a second of CPU, more than most jobs do.
//
// Argument: the path of the browser. Standard input: a job a line, {script: NAME, ...}; the file NAME.mjs describes the others of its fields.
// Standard output: a line for each, {result} or {error}.

import {createInterface} from 'node:readline';
import {chromium} from 'playwright-core';
import * as drive from './drive.mjs';
import * as flamegraph from './flamegraph.mjs';
import * as page from './page.mjs';

const SCRIPTS = {drive, flamegraph, page};
const FLAGS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
  // The trace processor runs for seconds only, so it is not compiled a second time to run faster: a quarter of the CPU time of a test.
  '--js-flags=--liftoff-only',
];
let browser;

async function run({script, ...job}) {
  // A browser that has crashed failed one job, not those after it.
  if (!browser?.isConnected()) browser = await chromium.launch({executablePath: process.argv[2], args: FLAGS});
  const contexts = [];
  const newContext = async (options) => {
    const context = await browser.newContext(options);
    contexts.push(context);
    return context;
  };
  try {
    return await SCRIPTS[script].look(newContext, job);
  } finally {
    for (const context of contexts) await context.close();
  }
}

for await (const line of createInterface({input: process.stdin})) {
  let answer;
  try {
    answer = {result: await run(JSON.parse(line))};
  } catch (error) {
    answer = {error: error.stack};
  }
  console.log(JSON.stringify(answer));
}
await browser?.close();
