// Choosing what to see: attributes from a list, tables from a list, and for each chosen attribute its level and labels.

import { h, pager } from "./dom.js";

const LISTED = 30; // attributes on a page of the list
const LABELS = 100; // labels on a page of a slice

/** The list of attributes that match the search, with what happens to the chosen ones when one is added. */
export function attributeList({ cube, words, axes, search, offset, turn, toggle }) {
  const wanted = search.toLowerCase().split(/[\s*]+/).filter(Boolean);
  const fits = (attribute) => wanted.some((part) => `${attribute.name} ${attribute.title ?? ""}`.toLowerCase().includes(part));
  const found = wanted.length ? cube.attributes.filter(fits) : cube.attributes;
  const chosen = new Set(axes.map((axis) => axis.attribute?.name));
  const items = found.slice(offset, offset + LISTED).map((attribute) => {
    const isChosen = chosen.has(attribute.name);
    const next = isChosen ? axes : withAttribute(cube, axes, attribute);
    const possible = next !== null;
    const instead = possible ? axes.filter((axis) => !next.includes(axis)).map((axis) => axis.title) : [];
    const labels = words("attribute.labels", { n: attribute.size ?? attribute.labels.length });
    const detail = !possible ? words("attribute.impossible") : instead.length ? words("attribute.instead", { axes: words.list(instead) }) : labels;
    return h("li", {}, h("label", { class: possible ? "" : "impossible", title: attribute.description ?? null },
      h("input", { type: "checkbox", checked: isChosen, disabled: !possible, key: `attribute-${attribute.name}`, onchange: () => toggle(attribute) }),
      h("span", { class: "name" }, attribute.title ?? attribute.name),
      h("span", { class: "detail" }, detail)));
  });
  return [
    items.length ? h("ul", { class: "attributes" }, items) : h("p", { class: "quiet" }, words("attribute.none")),
    pager(words, { key: "attributes", offset, size: LISTED, total: found.length, turn }),
  ];
}

/** Some axes and one more, at the finest level published; the first ones make room if no table has all of them. */
export function withAttribute(cube, axes, attribute) {
  for (let from = 0; from <= axes.length; from++) {
    const rest = axes.slice(from);
    const added = cube.levels(cube.axis(attribute.name)).find((axis) => cube.shows([...rest, axis]));
    if (added) return [...rest, added];
  }
  return null;
}

/** Published tables, a page at a time, as links. */
export function tableList({ cube, words, numbers, found, offset, turn, link, seen }) {
  const title = (entry) => entry.word.includes("(") ? entry.word : entry.attributes.map((word) => cube.axis(word)?.title ?? word).join(" × ") || words("lattice.total");
  const items = found.tables.map((entry) => h("li", {}, h("a", { href: link(entry.word), key: `table-${entry.word}`, "aria-current": entry.word === seen ? "true" : null },
    h("span", { class: "name" }, title(entry)),
    h("span", { class: "detail" }, words("tables.detail", { n: entry.cells, error: numbers.about(entry.std_error) })))));
  return [
    h("p", { class: "quiet", role: "status" }, words("tables.found", { n: found.total })),
    h("ul", { class: "tables" }, items),
    pager(words, { key: "tables", offset, size: 50, total: found.total, turn }),
  ];
}

/** The chosen attributes: where each one's labels stand, at which level, and which of them are kept. */
export function axisControls({ cube, words, sheet, state, change, open }) {
  return sheet.own.map((axis) => {
    const isAcross = sheet.across?.word === axis.word;
    const kept = state.keep[axis.word];
    const button = (name, text, act, enabled = true) =>
      h("button", { type: "button", key: `${name}-${axis.attribute?.name ?? axis.word}`, disabled: !enabled, title: words(`axis.${name}.title`, { axis: axis.title }), "aria-label": words(`axis.${name}.title`, { axis: axis.title }), onclick: act }, text);
    const [coarser, finer] = axis.attribute ? [cube.moved(axis, 1), cube.moved(axis, -1)] : [null, null];
    const others = sheet.own.filter((other) => other !== axis);
    const levels = axis.attribute && axis.attribute.levels.length > 0;
    return h("fieldset", { class: "axis-control" },
      h("legend", {}, axis.attribute ? axis.attribute.title ?? axis.attribute.name : axis.title),
      h("div", { class: "row" },
        levels && h("select", { "aria-label": words("axis.level", { axis: axis.attribute.title ?? axis.attribute.name }), key: `level-${axis.attribute.name}`, onchange: (event) => change.level(axis, cube.axis(event.target.value)) },
          cube.levels(axis).map((level) => h("option", { value: level.word, selected: level.word === axis.word, disabled: !cube.shows([...others, level]) },
            level.level ?? words("axis.finest")))),
        levels && button("finer", words("axis.finer"), () => change.level(axis, finer), finer !== null && cube.shows([...others, finer])),
        axis.attribute && button("coarser", words(coarser ? "axis.coarser" : "axis.out"), () => (coarser ? change.level(axis, coarser) : change.remove(axis))),
        sheet.own.length > 1 && button("move", words(isAcross ? "axis.down" : "axis.across"), () => change.across(isAcross ? "" : axis.word)),
        sheet.down.length > 1 && !isAcross && sheet.down[0] !== axis && button("first", words("axis.first"), () => change.first(axis))),
      axis.attribute?.description && h("p", { class: "quiet" }, axis.attribute.description),
      sliceOf({ axis, kept, words, change, open }));
  });
}

/** The labels of an attribute with boxes: what is ticked is kept. */
function sliceOf({ axis, kept, words, change, open }) {
  const key = `slice-${axis.word}`;
  const all = axis.labels.length;
  const keptCount = kept?.length ?? all;
  const summary = h("summary", { key }, kept ? words("slice.some", { n: keptCount, all }) : words("slice.all", { n: all }));
  const details = h("details", { class: "slice", open: open.has(key), ontoggle: () => (details.open ? open.add(key) && fill() : open.delete(key)) }, summary);
  const body = h("div", {});
  details.append(body);
  let [offset, search] = [0, ""];
  const fill = () => {
    const wanted = new Set(kept ?? axis.labels.map((_, at) => at));
    const found = axis.labels.map((label, at) => [label, at]).filter(([label]) => label.toLowerCase().includes(search));
    const set = (next) => change.keep(axis, next.size === all || next.size === 0 ? null : [...next].sort((a, b) => a - b));
    const list = h("ul", { class: "labels" }, found.slice(offset, offset + LABELS).map(([label, at]) => h("li", {}, h("label", {},
      h("input", { type: "checkbox", checked: wanted.has(at), key: `label-${axis.word}-${at}`, onchange: (event) => {
        event.target.checked ? wanted.add(at) : wanted.delete(at);
        set(wanted);
      } }), h("span", {}, label)),
      h("button", { type: "button", class: "only", key: `only-${axis.word}-${at}`, "aria-label": words("slice.only.title", { label }), onclick: () => set(new Set([at])) }, words("slice.only")))));
    const field = all > 12 ? h("input", { type: "search", value: search, key: `find-${axis.word}`, placeholder: words("slice.find"), "aria-label": words("slice.find.title", { axis: axis.title }), oninput: (event) => {
      [search, offset] = [event.target.value.toLowerCase(), 0];
      const caret = event.target.selectionStart;
      fill();
      const next = body.querySelector("input[type=search]");
      next.focus();
      next.setSelectionRange(caret, caret);
    } }) : null;
    body.replaceChildren(...[field, h("button", { type: "button", key: `all-${axis.word}`, disabled: !kept, onclick: () => change.keep(axis, null) }, words("slice.reset")), list,
      pager(words, { key: "labels", offset, size: LABELS, total: found.length, turn: (to) => { offset = to; fill(); } })].filter(Boolean));
  };
  if (open.has(key)) fill();
  return details;
}
