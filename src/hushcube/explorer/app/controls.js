// The switches of a view: quantity, face, how it is shown; links and files.

import { h } from "./dom.js";
import { MARGINS, SHOWN_AS } from "./state.js";
import { quantityTitle } from "./titles.js";

function choice(label, key, options, chosen, act, { disabled = false } = {}) {
  const items = options.map(([value, text]) => h("option", { value, selected: value === chosen }, text));
  return h("label", { class: "choice" }, h("span", {}, label), h("select", { key, disabled, onchange: (event) => act(event.target.value) }, items));
}

export function viewControls({ catalogue, state, quantity, words, change, mapped }) {
  const { quantities, faces } = catalogue;
  const face = faces.find((each) => each.name === state.face);
  const tabs = SHOWN_AS.filter((name) => name !== "map" || mapped).map((name) => h("label", { class: "tab" },
    h("input", { type: "radio", name: "as", value: name, checked: state.as === name, key: `as-${name}`, onchange: () => change({ as: name }) }),
    h("span", {}, words(`as.${name}`))));
  return [
    h("div", { class: "tabs", role: "radiogroup", "aria-label": words("as.title") }, tabs),
    h("div", { class: "choices" },
      quantities.length > 1 && choice(words("quantity.title"), "quantity", quantities.map((each) => [each.word, quantityTitle(each, catalogue, words)]), quantity.word, (word) => change({ quantity: word, face: "unbiased", first: [], second: [] })),
      faces.length > 1 && choice(words("face.title"), "face", faces.map((each) => [each.name, each.title ?? each.name]), state.face, (name) => change({ face: name }), { disabled: quantity.kind !== "count" }),
      state.as === "table" && choice(words("margins.title"), "margins", MARGINS.map((name) => [name, words(`margins.${name}`)]), state.margins, (name) => change({ margins: name })),
      state.as === "table" && h("label", { class: "choice check" }, h("input", { type: "checkbox", checked: state.totals, key: "totals", onchange: (event) => change({ totals: event.target.checked }) }), h("span", {}, words("table.totals")))),
    faces.length > 1 && face && h("p", { class: "quiet" }, words("face.promise", { face: face.title ?? face.name, promise: face.promise }), state.face === "unbiased" ? "" : ` ${words(face.estimated ? "face.estimated" : "face.errors")}`),
  ];
}

export function downloadControls({ words, act }) {
  const button = (name) => h("button", { type: "button", key: `download-${name}`, onclick: () => act[name]() }, words(`download.${name}`));
  return h("div", { class: "row" }, ["csv", "png", "svg", "link", "print"].map(button));
}

/** Into which group the next selected cells go. */
export function groupControls({ words, state, group, choose, clear }) {
  const one = (name) => h("label", { class: `tab ${name}` },
    h("input", { type: "radio", name: "group", value: name, checked: group === name, key: `group-${name}`, onchange: () => choose(name) }),
    h("span", {}, words(`select.group.${name}`)));
  const any = state.first.length + state.second.length > 0;
  return h("div", { class: "row" },
    h("div", { class: "tabs", role: "radiogroup", "aria-label": words("select.group") }, one("first"), one("second")),
    h("button", { type: "button", key: "clear", disabled: !any, onclick: clear }, words("select.clear")));
}
