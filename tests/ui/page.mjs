// Opens a page of `syncline report --html` from disk in Chromium, runs the steps, and returns the results. server.mjs calls it.
//
// A job: {file, width, height, scheme, steps: [STEP]}. A STEP is one of {click: SELECTOR}, {press: KEY},
// {focus: SELECTOR}, {choose: [SELECTOR, VALUE]}, {fill: [SELECTOR, TEXT]}, {drag: [SELECTOR, FROM, TO, FROM_Y, TO_Y]} (fractions of its
// width and height; by default in the middle), {reload: true}, {back: true}, {paper: true} (as it is printed),
// {scheme: light|dark}, {axe: NAME} (what axe finds wrong for people with impairments), {size: [WIDTH, HEIGHT]}, {shot: FILE, of: SELECTOR} (by default the whole page; of: window is the visible part), {name: NAME, get: JAVASCRIPT}.
// The result: {console, requests, opened_ms, found: {NAME: VALUE}}.

import {readFile} from 'node:fs/promises';
import {pathToFileURL} from 'node:url';

const TIMEOUT_MS = 30_000;

export async function look(newContext, {file, width, height, scheme, steps}, openTab) {
  const page = await openTab();
  page.setDefaultTimeout(TIMEOUT_MS);
  await page.setViewportSize({width, height});
  await page.emulateMedia({media: null, colorScheme: scheme, reducedMotion: 'reduce'});
  // The pointer of the job before could be on a chart.
  await page.mouse.move(0, 0);
  const seen = {console: [], requests: [], found: {}};
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') seen.console.push(message.text());
  });
  page.on('pageerror', (error) => seen.console.push(`uncaught: ${error.stack}`));
  page.on('dialog', (dialog) => {
    seen.console.push(`dialog: ${dialog.message()}`);
    return dialog.dismiss();
  });
  const address = pathToFileURL(file).href;
  page.on('request', (request) => {
    if (request.url() !== address && !request.url().startsWith('data:')) seen.requests.push(request.url());
  });
  const begun = performance.now();
  await page.goto(address);
  await page.waitForFunction(() => document.documentElement.dataset.ready);
  seen.opened_ms = performance.now() - begun;
  for (const step of steps) await take(page, step, seen);
  return seen;
}

async function take(page, step, seen) {
  if (step.click) await page.locator(step.click).first().click();
  else if (step.press) await page.keyboard.press(step.press);
  else if (step.focus) await page.locator(step.focus).first().focus();
  else if (step.choose) await page.locator(step.choose[0]).first().selectOption(step.choose[1]);
  else if (step.fill) await page.locator(step.fill[0]).first().fill(step.fill[1]);
  else if (step.drag) await drag(page, ...step.drag);
  else if (step.reload) {
    await page.reload();
    await page.waitForFunction(() => document.documentElement.dataset.ready);
  } else if (step.back) await page.goBack();
  else if (step.paper) {
    await page.emulateMedia({media: 'print'});
    await page.evaluate(() => window.dispatchEvent(new Event('beforeprint')));
  } else if (step.scheme) await page.emulateMedia({colorScheme: step.scheme});
  else if (step.size) {
    await page.setViewportSize({width: step.size[0], height: step.size[1]});
    // The page redraws after the end of a resize.
    await page.waitForTimeout(400);
  } else if (step.axe) seen.found[step.axe] = await violations(page);
  else if (step.shot) await shoot(page, step);
  else seen.found[step.name] = await page.evaluate(step.get);
}

// Returns what axe finds, as [rule, elements].
async function violations(page) {
  // The policy of the page refuses scripts of others, but not what a debugger evaluates.
  await page.evaluate(await readFile(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8'));
  return page.evaluate(async () => {
    const {violations} = await window.axe.run(document, {resultTypes: ['violations']});
    return violations.map(({id, nodes}) => [id, nodes.map(({html}) => html.slice(0, 200))]);
  });
}

async function shoot(page, {shot, of}) {
  if (of && of !== 'window') await page.locator(of).first().screenshot({path: shot});
  else await page.screenshot({path: shot, fullPage: of !== 'window'});
}

async function drag(page, selector, from, to, fromY = 0.5, toY = fromY) {
  const target = page.locator(selector).first();
  await target.scrollIntoViewIfNeeded();
  const box = await target.boundingBox();
  const move = (x, y) => page.mouse.move(box.x + box.width * x, box.y + box.height * y, {steps: 3});
  await move(from, fromY);
  await page.mouse.down();
  await move((from + to) / 2, (fromY + toY) / 2);
  await move(to, toY);
  await page.mouse.up();
}
