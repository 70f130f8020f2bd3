// Elements without a framework. Styles are set as properties: a strict Content-Security-Policy forbids style attributes.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "key") element.dataset.key = value;
    else if (name === "style") for (const [rule, text] of Object.entries(value)) element.style.setProperty(rule, text);
    else if (name === "checked" || name === "value" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, properties = {}, ...children) => filled(document.createElement(tag), properties, children);
export const svg = (tag, properties = {}, ...children) => filled(document.createElementNS(SVG, tag), properties, children);
export const byId = (id) => document.getElementById(id);

/** Put new contents into an element; the focus stays on the control of the same `key`, if there still is one. */
export function refill(element, ...children) {
  const held = element.contains(document.activeElement) ? document.activeElement : null;
  const [key, caret] = [held?.dataset.key, held?.selectionStart];
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (!key) return;
  const next = element.querySelector(`[data-key="${CSS.escape(key)}"]`);
  next?.focus({ preventScroll: true });
  if (next && typeof caret === "number") next.setSelectionRange(caret, caret);
}

/** A list cut into pages: the controls that turn them, or nothing where one page holds all. */
export function pager(words, { key, offset, size, total, turn }) {
  if (total <= size) return null;
  const button = (name, at, enabled) =>
    h("button", { type: "button", key: `${key}-${name}`, disabled: !enabled, onclick: () => turn(at) }, words(`pager.${name}`));
  return h("div", { class: "pager", role: "group", "aria-label": words(`pager.${key}`) },
    button("before", Math.max(0, offset - size), offset > 0),
    h("span", {}, words("pager.where", { from: offset + 1, to: Math.min(total, offset + size), total })),
    button("after", offset + size, offset + size < total));
}
