// Runs jobs in one Chromium. To start a browser takes a second of CPU, more than most jobs do.
//
// The Perfetto UI keeps things in its storage, so each of its jobs has a context of its own. A page of `report --html` keeps nothing, and
// its jobs load it in one tab, one after another: a new tab takes as much CPU as the page. A job that fails closes that tab.
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
// The tab of the pages.
let tab = null;

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
    return await SCRIPTS[script].look(newContext, job, openTab);
  } catch (error) {
    await tab?.context().close().catch(() => {});
    tab = null;
    throw error;
  } finally {
    for (const context of contexts) await context.close();
  }
}

async function openTab() {
  if (!tab || tab.isClosed() || !browser.isConnected()) tab = await (await browser.newContext({reducedMotion: 'reduce'})).newPage();
  tab.removeAllListeners();
  return tab;
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
