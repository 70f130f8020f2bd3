// What the reader looks at, as the part of the address after #: links and the back button come for free.

import { packed, unpacked } from "./numbers.js";

export const SHOWN_AS = ["table", "heat", "bars", "multiples", "map"];
export const MARGINS = ["margin", "interval", "shading", "none"];

const START = {
  table: "total", // the axes in the order of display
  across: null, // the axis whose labels are columns: the last one, unless said
  quantity: "count",
  face: "unbiased",
  as: "table",
  margins: "margin",
  totals: true,
  keep: {}, // labels that a slice keeps, as positions by axis
  row: 0, // the first row and column of the page that is seen
  column: 0,
  first: [], // selected cells
  second: [], // those that they are compared with
};

export function readState(hash, start = {}) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...START, ...start };
  const one = (name, choices) => (choices.includes(given.get(name)) ? given.get(name) : undefined);
  if (given.has("table")) Object.assign(state, { table: given.get("table"), across: given.get("across") });
  if (given.has("quantity")) state.quantity = given.get("quantity");
  if (given.has("face")) state.face = given.get("face");
  state.as = one("as", SHOWN_AS) ?? state.as;
  state.margins = one("margins", MARGINS) ?? state.margins;
  state.totals = given.get("totals") !== "no";
  state.keep = Object.fromEntries(given.getAll("keep").map((text) => {
    const at = text.lastIndexOf(":");
    return [text.slice(0, at), unpacked(text.slice(at + 1))];
  }));
  for (const name of ["row", "column"]) state[name] = Math.max(0, Number.parseInt(given.get(name) ?? "0", 10) || 0);
  for (const name of ["first", "second"]) state[name] = unpacked(given.get(name));
  return state;
}

export function writeState(state) {
  const told = new URLSearchParams({ table: state.table });
  if (state.across !== null) told.set("across", state.across);
  for (const name of ["quantity", "face", "as", "margins", "row", "column"]) if (state[name] !== START[name]) told.set(name, state[name]);
  if (!state.totals) told.set("totals", "no");
  for (const [axis, kept] of Object.entries(state.keep)) told.append("keep", `${axis}:${packed(kept)}`);
  for (const name of ["first", "second"]) if (state[name].length) told.set(name, packed(state[name]));
  return `#${told}`.replaceAll("%2A", "*").replaceAll("%40", "@").replaceAll("%3A", ":").replaceAll("%2C", ",");
}

/** The state with another table: what belongs to cells and pages of the old one is forgotten, slices are kept. */
export function withTable(state, table, axes) {
  const words = axes === null ? [] : axes.map((axis) => axis.word);
  const keep = Object.fromEntries(Object.entries(state.keep).filter(([word]) => words.includes(word)));
  const across = words.includes(state.across) || state.across === "" ? state.across : null;
  return { ...state, table, across, keep, row: 0, column: 0, first: [], second: [] };
}
