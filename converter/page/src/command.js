import {h} from './dom.js';

// A button that copies a command. Where the page may not use the clipboard, the text of `code` is selected instead.
export function copyButton(label, line, code = null) {
  const button = h('button.small', {'aria-label': `Copy: ${label}`, title: line, onclick: async () => {
    if (code) getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(line);
      button.textContent = 'copied';
    } catch {
      button.textContent = code ? 'selected' : 'not copied';
    }
  }}, 'copy');
  return button;
}

// A command that can be copied.
export function command(label, line) {
  const code = h('code', {}, line);
  return h('p.command', {}, h('span', {}, `${label}: `), code, ' ', copyButton(label, line, code));
}
