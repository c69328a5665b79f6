// Opens a page of the Perfetto UI in Chromium and returns its contents. server.mjs calls it.
//
// A job: {page, width, height, shot, packages, queries: {name: sql}, macros, views: [{name, span, select, paint, shot, clip}]}.
// `shot` is the file of a screenshot; that at the top is of the page as it is when it has loaded. `packages` are SQL packages to register
// before the trace is loaded. `macros` are lists of commands, {id, args}, which are run one after another.
// With `blank`, it only opens the page, which is not one of the UI.
// `span` is SQL for a start and an end, `select` is SQL for the id of a slice, `area` selects the span on tracks whose names match, and of these on
// the first `only`, if it is given.
// `paint` counts the coloured pixels of each track, which takes long.
// `tab` is the name of a tab of Syncline's plugin, and `row` the number of a row of its table to follow.
// `page` is the route of another page, and `click` a link on it. `choose` is the value to choose of a list in the part of the page that Syncline's plugin draws.
// The result: {console, warnings, dialogs, modals, failed, start, tracks, top, queries, macros, views}. `top` are the tracks at the top level.

const LOADED_WITHIN_MS = 120_000;

export async function look(newContext, job) {
  const context = await newContext({viewport: {width: job.width, height: job.height}});
  const page = await context.newPage();
  const found = {console: [], warnings: [], dialogs: [], queries: {}, macros: [], views: []};
  page.on('console', (message) => {
    if (message.type() === 'error') found.console.push(message.text());
    if (message.type() === 'warning') found.warnings.push(message.text());
  });
  page.on('pageerror', (error) => found.console.push(`uncaught: ${error}`));
  page.on('dialog', (dialog) => {
    found.dialogs.push(dialog.message());
    return dialog.dismiss();
  });

  if (job.packages) await page.addInitScript(register, job.packages);
  await page.goto(job.page);
  if (job.blank) return found;
  await page.waitForFunction(() => window.app?.trace && window.waitForPerfettoIdle, null, {timeout: LOADED_WITHIN_MS});
  await page.evaluate(() => window.waitForPerfettoIdle());

  await settle(page);
  found.start = await page.evaluate(state);
  if (job.shot) await page.screenshot({path: job.shot});
  found.tracks = await page.evaluate(() => window.app.trace.workspace.flatTracks.map((track) => track.name));
  found.top = await page.evaluate(() => window.app.trace.workspace.children.map(({name, isSummary}) => ({name, isSummary})));
  for (const [name, sql] of Object.entries(job.queries)) found.queries[name] = await query(page, sql);
  for (const macro of job.macros ?? []) found.macros.push(await run(page, macro));
  for (const view of job.views) found.views.push(await show(page, view));
  found.modals = await page.locator('.pf-modal-dialog').allInnerTexts();
  found.failed = await page.locator('.pf-track__canvas--error').count();
  return found;
}

// Runs in the page: registers SQL packages as soon as the UI has begun to run.
function register(packages) {
  let app;
  Object.defineProperty(window, 'app', {
    configurable: true,
    get: () => app,
    set: (value) => {
      app = value;
      app.extraSqlPackages.push(...packages);
    },
  });
}

// Runs in the page: what the UI shows.
function state() {
  const {trace} = window.app;
  const {start, end} = trace.timeline.visibleWindow.toTimeSpan();
  const {kind, trackUri, ts, dur} = trace.selection.selection;
  return {
    pinned: trace.workspace.pinnedTracks.map((track) => track.name),
    window: [start, end].map(String),
    selection: {kind, trackUri, ts: ts?.toString(), dur: dur?.toString()},
    sidebar: window.app.sidebar.visible,
    tabs: [...document.querySelectorAll('.pf-tab-handle, .pf-tab')].map((tab) => tab.innerText),
    drawer: document.querySelector('.pf-drawer-panel__drawer-content, .pf-split-panel__drawer')?.innerText ?? '',
  };
}

// Runs the commands of a macro. Returns the error of the first one that fails, else null.
async function run(page, commands) {
  const error = await page.evaluate(async (commands) => {
    try {
      for (const {id, args} of commands) await window.app.trace.commands.runCommand(id, ...args);
      return null;
    } catch (error) {
      return String(error);
    }
  }, commands);
  await settle(page);
  return {error, ...(await page.evaluate(state))};
}

async function show(page, view) {
  if (view.page) return visit(page, view);
  if (view.tab) return tab(page, view);
  const [[from, to]] = await query(page, view.span);
  await page.evaluate(([from, to]) => window.app.trace.timeline.setViewportTime(BigInt(from), BigInt(to)), [from, to]);
  if (view.select) {
    const [[id]] = await query(page, view.select);
    await page.evaluate((id) => window.app.trace.selection.selectSqlEvent('slice', Number(id)), id);
  }
  if (view.area) {
    await page.evaluate(([from, to, area, only]) => {
      const tracks = window.app.trace.workspace.flatTracks.filter((track) => track.uri && new RegExp(area).test(track.name)).slice(0, only);
      const trackUris = tracks.map((track) => track.uri);
      window.app.trace.selection.selectArea({start: BigInt(from), end: BigInt(to), trackUris});
    }, [from, to, view.area, view.only]);
  }
  await settle(page);
  if (view.choose) {
    await page.locator('.syncline-area select').selectOption(view.choose);
    await settle(page);
  }
  const seen = {
    name: view.name,
    plugin: await page.locator('.syncline:not(.syncline-page, .syncline-slowest)').allInnerTexts(),
    boxes: await page.locator('.syncline:not(.syncline-page, .syncline-slowest) .syncline-box').evaluateAll((boxes) => boxes.map((box) => [box.title, box.getBoundingClientRect().width])),
    painted: view.paint ? await painted(page) : null,
    details: await page.locator('.pf-details-shell').allInnerTexts(),
    flows: await page.evaluate(() => window.app.trace.flows.connectedFlows.length),
  };
  if (view.shot) await page.screenshot({path: view.shot, clip: view.clip});
  return seen;
}

// Opens a tab of Syncline's plugin, and follows the first link of a row of its table.
async function tab(page, view) {
  await page.getByText(view.tab, {exact: true}).last().click();
  await page.locator('.syncline-slowest').waitFor({timeout: 30_000});
  const found = {name: view.name, rows: await page.locator('.syncline-slowest tbody tr').evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText)))};
  if (view.shot) await page.screenshot({path: view.shot});
  await page.locator('.syncline-slowest tbody tr').nth(view.row).locator('a').first().click();
  await settle(page);
  return {...found, ...(await page.evaluate(state))};
}

// Opens another page of the UI, and returns what the plugin draws there.
async function visit(page, view) {
  await page.evaluate((route) => { window.location.hash = `#!${route}`; }, view.page);
  // While the timeline is hidden, the UI may not become idle.
  const drawn = () => page.locator('.syncline-page').locator('.syncline-table, .syncline-none').waitFor({timeout: 30_000});
  await drawn();
  if (view.click) {
    await page.locator('.syncline-page a', {hasText: new RegExp(`^${view.click}$`)}).click();
    await page.locator('.syncline-page b', {hasText: new RegExp(`^${view.click}$`)}).waitFor();
    await drawn();
  }
  if (view.shot) await page.screenshot({path: view.shot});
  const tables = await page.locator('.syncline-page .syncline-table').evaluateAll((found) => found.map((table) =>
    [...table.rows].map((row) => [...row.cells].map((cell) => cell.innerText))));
  return {name: view.name, plugin: await page.locator('.syncline-page').allInnerTexts(), tables};
}

async function settle(page) {
  // The queries of a new view start with its next frame.
  await page.waitForTimeout(300);
  await page.evaluate(() => window.waitForPerfettoIdle());
  await page.waitForTimeout(100);
}

// Returns rows of text and null, because integers may exceed the precision of a double.
function query(page, sql) {
  return page.evaluate(async (sql) => {
    const result = await window.app.trace.engine.query(sql);
    const rows = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
      rows.push(result.columns().map((column) => row.get(column)).map((value) => (value === null ? null : String(value))));
    }
    return rows;
  }, sql);
}

// Counts the coloured pixels of each track on screen, by the path of its names.
function painted(page) {
  return page.evaluate(() => {
    const counts = {};
    const canvases = [...document.querySelectorAll('canvas')].map((canvas) => [canvas, canvas.getBoundingClientRect()]);
    for (const track of document.querySelectorAll('.pf-track')) {
      const box = track.querySelector('.pf-track__canvas')?.getBoundingClientRect();
      if (!box || box.top < 0 || box.bottom > window.innerHeight) continue;
      let count = 0;
      for (const [canvas, area] of canvases) {
        if (box.top < area.top || box.bottom > area.bottom) continue;
        const scale = canvas.width / area.width;
        const copy = new OffscreenCanvas(Math.ceil(box.width * scale), Math.ceil(box.height * scale));
        const context = copy.getContext('2d');
        context.drawImage(canvas, (area.left - box.left) * scale, (area.top - box.top) * scale);
        const {data} = context.getImageData(0, 0, copy.width, copy.height);
        for (let at = 0; at < data.length; at += 4) {
          const colours = data.subarray(at, at + 3);
          // Grid lines and text are grey.
          if (data[at + 3] > 128 && Math.max(...colours) - Math.min(...colours) > 40) count++;
        }
      }
      counts[track.getAttribute('ref')] = count;
    }
    return counts;
  });
}
