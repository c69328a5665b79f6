// Creates elements. Text is inserted as text nodes, never as markup, because it comes from logs.

export function h(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split('.');
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(' ');
  for (const [key, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'style') Object.assign(element.style, value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

// Creates a drop-down list; `options` are [value, label].
export function choice(label, options, value, onchange) {
  const select = h('select', {onchange: () => onchange(select.value), 'aria-label': label});
  for (const [key, text] of options) select.append(h('option', {value: key, selected: key === value}, text));
  return h('label.choice', {}, `${label} `, select);
}

// Replaces the content of an element and restores the focus by the `data-key` of the focused element.
export function replace(host, ...children) {
  const key = host.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  host.replaceChildren(...children.flat().filter(Boolean));
  if (key != null) host.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({preventScroll: true});
}

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
