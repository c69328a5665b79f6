// The state of the page in the hash of its address, so that reloading, going back and a copied address keep the selection.

const RANGES = ['time', 'wrote'];

// Returns the hash of a state: what differs from `initial`. An option is a word; `valid` names the options.
export function encode(state, initial, options) {
  const parts = [];
  const put = (name, value) => parts.push(`${name}=${encodeURIComponent(value)}`);
  for (const name of ['file', 'thread']) if (state[name] != null) put(name, state[name]);
  if (state.time) put('time', state.time.join('..'));
  if (state.waited) put('waited', `${state.waited.kind}..${state.waited.from}..${state.waited.to}`);
  if (state.wrote) put('wrote', `${state.wrote.from}..${state.wrote.to}`);
  for (const name of options) if (state[name] !== initial[name]) put(name, state[name]);
  return parts.join('&');
}

// Returns the changes of a state that a hash stands for, without those that are not valid. `known` returns whether a value of a name exists.
export function decode(hash, options, known) {
  const found = {};
  for (const part of hash.replace(/^#/, '').split('&')) {
    const [name, coded] = part.split(/=(.*)/s);
    let value;
    try {
      value = decodeURIComponent(coded ?? '');
    } catch {
      continue;
    }
    if (name === 'file' || name === 'thread' || options.includes(name)) {
      if (known(name, value)) found[name] = value;
    } else if (name === 'waited') {
      const [kind, ...ends] = value.split('..');
      const range = rangeOf(ends);
      if (range && known('latency', kind)) found.waited = {kind, from: range[0], to: range[1]};
    } else if (RANGES.includes(name)) {
      // Times are added to those of the clock, which are BigInt: these take only whole numbers.
      const range = rangeOf(value.split('..'), name === 'time' ? Number.isSafeInteger : Number.isFinite);
      if (range) found[name] = name === 'time' ? range : {from: range[0], to: range[1]};
    }
  }
  return found;
}

// `isEnd` returns whether a number may be an end of the range.
function rangeOf(ends, isEnd = Number.isFinite) {
  const [from, to] = ends.map(Number);
  return ends.length === 2 && isEnd(from) && isEnd(to) && from >= 0 && from < to ? [from, to] : null;
}
