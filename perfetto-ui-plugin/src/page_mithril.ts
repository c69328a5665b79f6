// The mithril of the page into which the plugin is injected. It is there before the plugin draws anything.

import type m from 'mithril';

const page = (): typeof m => (globalThis as unknown as {m: typeof m}).m;

export default ((...args: Parameters<typeof m>) => page()(...args)) as unknown as typeof m;
