import {h} from './dom.js';

// A command that can be copied. Where the page may not use the clipboard, the text is selected instead.
export function command(label, line) {
  const code = h('code', {}, line);
  const button = h('button.small', {'aria-label': `Copy: ${label}`, onclick: async () => {
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(line);
      button.textContent = 'copied';
    } catch {
      button.textContent = 'selected';
    }
  }}, 'copy');
  return h('p.command', {}, h('span', {}, `${label}: `), code, ' ', button);
}
