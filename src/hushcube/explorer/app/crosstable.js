// The cross-table: a real table for screen readers, a grid for the keyboard, cells to select.

import { h } from "./dom.js";
import { numberAt, seenOf } from "./sheet.js";

/** Letters of the classes of quality, so that nothing is told by colour alone. */
export const LETTERS = ["", "E", "F"];

/**
 * The table element. `choose(cells)` is called with the cells that a reader selects, by mouse or by keyboard: arrows
 * move, space or enter selects a cell, a row, a column or everything; shift and arrows select on the way.
 */
export function crossTable({ sheet, totals, state, words, numbers, caption, choose, average }) {
  const places = []; // of every row of the grid, its elements that can have the focus
  const cell = (known, cells, extra = {}) => {
    const found = seenOf(known);
    const flag = LETTERS[found.quality] ?? "";
    const uncertain = found.quality === null || found.quality === undefined ? 0 : uncertainty(found);
    const told = h("td", {
      class: `number ${extra.class ?? ""}`, tabindex: "-1",
      style: state.margins === "shading" ? { "--uncertainty": `${uncertain}%` } : {},
    }, ...number(found, flag));
    told.cells = cells;
    return told;
  };
  const number = (found, flag) => {
    const unknown = found.value === null;
    const error = found.std_error ?? (found.high === null ? undefined : (found.high - found.low) / 4);
    const margin = unknown ? null : marginText(found, error);
    return [ // with blanks, for those who copy or listen
      h("span", { class: "value" }, unknown ? words("table.unknown") : numbers.number(found.value, error)),
      flag && [" ", h("abbr", { class: `flag flag-${flag}`, title: words(`quality.${flag}`) }, flag)],
      margin && [" ", margin],
    ];
  };
  const marginText = (found, error) => {
    if (state.margins === "none" || state.margins === "shading") return null;
    if (found.low === null) return h("span", { class: "margin unknown" }, "±?");
    const interval = words("table.interval", { low: numbers.number(found.low, error), high: numbers.number(found.high, error) });
    const text = state.margins === "interval" || average ? interval : `± ${numbers.number(found.margin, error)}`;
    if (!found.estimated) return h("span", { class: "margin" }, text);
    return h("span", { class: "margin estimated" }, words("table.estimated", { text }));
  };
  const header = (scope, text, cells, extra = {}) => {
    const told = h("th", { scope, tabindex: "-1", ...extra }, h("span", { class: "label" }, text));
    Object.defineProperty(told, "cells", { get: cells }); // of a large table there are many
    return told;
  };

  const { table, across, down, rows, columns } = sheet;
  const total = totals !== null;
  const withTotals = total && across !== null;
  const heads = down.map((axis) => h("th", { scope: "col", class: "axis", rowspan: across ? 2 : null }, axis.title));
  const labelled = columns.map((col) =>
    header("col", across === null ? words("table.value") : across.labels[col], () => sheet.columnCells(col), { class: "number" }));
  const allHead = withTotals ? header("col", words("table.total"), sheet.allCells, { class: "number total" }) : null;
  const headRow = [...labelled, ...(allHead ? [allHead] : [])];
  places.push(headRow);
  const head = across === null
    ? [h("tr", {}, heads, headRow)]
    : [h("tr", {}, heads, h("th", { scope: "colgroup", class: "axis across", colspan: headRow.length }, across.title)), h("tr", {}, headRow)];
  const spans = spansOf(rows);
  const body = rows.map((at, r) => {
    const names = at.map((position, i) => {
      const isLast = i === at.length - 1;
      const below = spans[r][i];
      const cells = () => (isLast ? sheet.rowCells(at) : rows.slice(r, r + below).flatMap(sheet.rowCells));
      return below === 0 ? null : header(isLast ? "row" : "rowgroup", down[i].labels[position], cells, { rowspan: below > 1 ? below : null });
    });
    const own = columns.map((_, c) => cell(numberAt(table, sheet.cells[r][c]), [sheet.cells[r][c]]));
    if (withTotals) own.push(cell(totals.row(at), [], { class: "total" }));
    places.push([...names.filter(Boolean).slice(-1), ...own]);
    return h("tr", {}, names, own);
  });
  if (total && down.length) {
    const name = header("row", words("table.total"), sheet.allCells, { colspan: down.length, class: "total" });
    const own = columns.map((col) => cell(across === null ? totals.all() : totals.column(col), [], { class: "total" }));
    if (withTotals) own.push(cell(totals.all(), [], { class: "total" }));
    places.push([name, ...own]);
    body.push(h("tr", { class: "total" }, name, own));
  }
  if (down.length) places[0].unshift(null);
  const element = h("table", {
    class: `cross ${state.margins} ${down.length === 1 ? "single" : ""}`, role: "grid", "aria-multiselectable": "true", "aria-describedby": "grid-help",
  }, h("caption", {}, caption), h("thead", {}, head), h("tbody", {}, body));
  grid(element, places, choose);
  markSelected(element, state);
  return element;
}

/** Show which cells are selected, in which group: by a frame and a letter, and to screen readers. */
export function markSelected(element, state) {
  const groups = { first: new Set(state.first), second: new Set(state.second) };
  for (const each of element.querySelectorAll("td")) {
    if (!each.cells?.length) continue;
    const [isFirst, isSecond] = [groups.first.has(each.cells[0]), groups.second.has(each.cells[0])];
    each.classList.toggle("first", isFirst);
    each.classList.toggle("second", isSecond);
    each.setAttribute("aria-selected", String(isFirst || isSecond));
  }
}

/** How uncertain a number is, from 0 to 100, for the shade: its margin over its size. */
function uncertainty(found) {
  if (found.low === null || found.value === null) return 0;
  const relative = found.margin / Math.max(Math.abs(found.value), 1e-9);
  return Math.round(100 * Math.min(1, relative));
}

/** For every row and axis, how many rows its header spans; 0 where the one above reaches down. */
function spansOf(rows) {
  const spans = rows.map((at) => at.map(() => 1));
  const depth = rows[0]?.length ?? 0;
  for (let i = 0; i < depth - 1; i++) {
    let start = 0;
    for (let r = 1; r < rows.length; r++) {
      const same = rows[r].slice(0, i + 1).every((position, at) => position === rows[start][at]);
      spans[r][i] = same ? 0 : 1;
      if (same) spans[start][i] += 1;
      else start = r;
    }
  }
  return spans;
}

/** One stop of the tab key for the whole grid; arrows, home and end move within it. */
function grid(element, places, choose) {
  const where = new Map();
  places.forEach((row, r) => row.forEach((each, c) => each && where.set(each, [r, c])));
  places.forEach((row, r) => row.forEach((each, c) => { if (each) each.dataset.key = `cell-${r}-${c}`; }));
  const start = (places[1] ?? places[0])?.find((each) => each?.tagName === "TD") ?? places[0]?.find(Boolean);
  if (start) start.tabIndex = 0;
  const focus = (to) => {
    element.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    to.tabIndex = 0;
    to.focus();
  };
  const near = (r, c) => {
    const row = places[Math.max(0, Math.min(places.length - 1, r))];
    return row[Math.max(0, Math.min(row.length - 1, c))] ?? row.find(Boolean);
  };
  element.addEventListener("click", (event) => {
    const at = event.target.closest("td, th");
    if (!where.has(at)) return;
    focus(at);
    if (at.cells.length) choose(at.cells);
  });
  element.addEventListener("keydown", (event) => {
    const at = event.target.closest("td, th");
    if (!where.has(at) || event.ctrlKey || event.metaKey || event.altKey) return;
    const [r, c] = where.get(at);
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (step) {
      if (event.shiftKey && at.cells.length === 1) choose(at.cells, true);
      focus(near(r + step[0], c + step[1]));
      if (event.shiftKey && near(r + step[0], c + step[1]).cells.length === 1) choose(near(r + step[0], c + step[1]).cells, true);
    } else if (event.key === "Home") focus(near(r, 0));
    else if (event.key === "End") focus(near(r, places[r].length - 1));
    else if (event.key === " " || event.key === "Enter") { if (at.cells.length) choose(at.cells); }
    else return;
    event.preventDefault();
  });
}
