// Opens a flame graph from disk in Chromium, runs the steps with mouse and keyboard, and returns the results. server.mjs calls it.
//
// A job: {page, width, height, dark, steps: [{name, hover, click, search, unzoom, shot}]}.
// `hover` and `click` name a frame by its text before the parenthesis. `search` is typed into the prompt.
// The result: {console, steps: [{name, title, subtitle, details, matched, frames: [{text, title, fill, x, width}], overflow}]}.

export async function look(newContext, job) {
  const context = await newContext({
    viewport: {width: job.width, height: job.height},
    colorScheme: job.dark ? 'dark' : 'light',
  });
  const page = await context.newPage();
  const found = {console: [], steps: []};
  page.on('console', (message) => {
    if (message.type() === 'error') found.console.push(message.text());
  });
  page.on('pageerror', (error) => found.console.push(`uncaught: ${error}`));
  let term = '';
  page.on('dialog', (dialog) => dialog.accept(term));

  await page.goto(job.page);
  await page.waitForFunction(() => !document.documentElement.hasAttribute('viewBox'));
  for (const step of job.steps) {
    if (step.hover) await frame(page, step.hover).hover();
    if (step.click) await frame(page, step.click).click();
    if (step.unzoom) await page.locator('#unzoom').click();
    if (step.search) {
      term = step.search;
      await page.locator('#search').click();
    }
    await page.waitForTimeout(100);
    found.steps.push({name: step.name, ...(await page.evaluate(seen))});
    if (step.shot) await page.screenshot({path: step.shot});
  }
  return found;
}

function frame(page, text) {
  // Match the exact name: `a` must not match `ab`.
  return page.locator('#frames > g').filter({has: page.locator('title', {hasText: new RegExp(`^${escaped(text)} \\(`)})}).first();
}

function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

// Runs in the page. Returns its content, and texts that overflow their frame or the window.
function seen() {
  const text = (id) => document.getElementById(id)?.textContent ?? '';
  const frames = [...document.querySelectorAll('#frames > g')].filter((g) => !g.classList.contains('hide'));
  const window_ = document.documentElement.getBoundingClientRect().width;
  const wide = (box) => box.left < 0 || box.right > window_ + 1;
  const overflow = [];
  for (const g of frames) {
    const label = g.querySelector('text');
    if (label.textContent && label.getBoundingClientRect().right > g.querySelector('rect').getBoundingClientRect().right + 1) {
      overflow.push(label.textContent);
    }
  }
  const lines = ['title', 'subtitle', 'search', 'unzoom', 'details', 'matched'].map((id) => document.getElementById(id));
  const boxes = lines.filter((line) => line && line.textContent.trim() && !line.classList.contains('hide')).map((line) => [line.id, line.getBoundingClientRect()]);
  for (const [id, box] of boxes) {
    if (wide(box)) overflow.push(id);
    for (const [other, its] of boxes) {
      const apart = box.right <= its.left || its.right <= box.left || box.bottom <= its.top || its.bottom <= box.top;
      if (id < other && !apart) overflow.push(`${id} on ${other}`);
    }
  }
  return {
    title: text('title'),
    subtitle: text('subtitle'),
    details: text('details'),
    matched: text('matched'),
    overflow,
    frames: frames.map((g) => ({
      text: g.querySelector('text').textContent,
      title: g.querySelector('title').textContent,
      fill: g.querySelector('rect').getAttribute('fill'),
      width: g.querySelector('rect').getBoundingClientRect().width,
    })),
  };
}
