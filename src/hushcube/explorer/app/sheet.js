// A table laid out in rows and columns: what is kept, on which page, with totals.

import { errorAt, errorOf } from "./statistics.js";

export const ROWS = 100;
export const COLUMNS = 24;

/** All combinations of some lists, the last one fastest. */
const combinations = (lists) => lists.reduce((found, list) => found.flatMap((before) => list.map((at) => [...before, at])), [[]]);

/** The axes of a document, in its own order; those of tables of sums have labels of their own. */
export function axesOf(table, cube) {
  return table.attributes.map((word, at) =>
    cube.axis(word) ?? { word, title: word, labels: table.labels?.[at] ?? [], attribute: null, ordered: true });
}

/**
 * `table` laid out as the state says. Its cells stay known by their places in the document, in which all questions
 * about them are asked.
 */
export function laidOut(table, cube, state) {
  const own = axesOf(table, cube);
  const order = (cube.axes(state.table) ?? own).map((axis) => own.findIndex((each) => each.word === axis.word));
  const strides = table.shape.map((_, at) => table.shape.slice(at + 1).reduce((a, b) => a * b, 1));
  const kept = own.map((axis) => {
    const all = axis.labels.map((_, at) => at);
    const wanted = state.keep[axis.word];
    const found = wanted ? all.filter((at) => wanted.includes(at)) : all;
    return found.length ? found : all;
  });
  const across = columnAxis(own, order, state.across);
  const down = order.filter((axis) => axis !== across);
  const allRows = combinations(down.map((axis) => kept[axis]));
  const allColumns = across === null ? [null] : kept[across];
  const row = state.row < allRows.length ? state.row : 0;
  const column = state.column < allColumns.length ? state.column : 0;
  const rows = allRows.slice(row, row + ROWS);
  const columns = allColumns.slice(column, column + COLUMNS);
  const cellAt = (at, col) =>
    at.reduce((sum, position, i) => sum + strides[down[i]] * position, 0) + (col === null ? 0 : strides[across] * col);
  const boxOf = (at, col) => kept.map((all, axis) => {
    if (axis === across) return col === undefined ? all : [col];
    return at === undefined ? all : [at[down.indexOf(axis)]];
  });
  return {
    table, own, across: across === null ? null : own[across], down: down.map((axis) => own[axis]), rows, columns, row, column,
    rowCount: allRows.length, columnCount: allColumns.length, isPart: kept.some((all, at) => all.length < own[at].labels.length),
    cells: rows.map((at) => columns.map((col) => cellAt(at, col))),
    rowCells: (at) => allColumns.map((col) => cellAt(at, col)),
    columnCells: (col) => allRows.map((at) => cellAt(at, col)),
    allCells: () => allRows.flatMap((at) => allColumns.map((col) => cellAt(at, col))),
    rowBox: (at) => boxOf(at, undefined), columnBox: (col) => boxOf(undefined, col), box: () => boxOf(undefined, undefined),
  };
}

/** Which axis has its labels in columns: the one named, none (""), or of several the last short one. */
function columnAxis(own, order, named) {
  if (named === "" || order.length === 0) return null;
  const found = own.findIndex((axis) => axis.word === named);
  if (found >= 0) return found;
  if (order.length < 2) return null;
  const short = order.filter((axis) => own[axis].labels.length <= COLUMNS);
  return short.at(-1) ?? order.at(-1);
}

/** Whether cells can be added up: averages and sums that overlap cannot. */
export const adds = (table, quantity) => quantity.kind !== "avg" && !table.word.includes("(");

/** One number of a table with what is known of its error; at face value perhaps with an estimate of its own. */
export function numberAt(table, cell) {
  return {
    value: table.values[cell], std_error: table.std_errors === null ? null : errorAt(table, cell),
    low: table.low[cell], high: table.high[cell], quality: table.quality[cell], estimated: estimatedAt(table, cell),
  };
}

/** The estimated error of a cell and its estimated interval, or null; no true count is below zero. */
function estimatedAt({ values, estimated }, cell) {
  if (!estimated) return null;
  const error = errorOf(estimated.errors, cell);
  const margin = estimated.half_width * error;
  return { std_error: error, low: Math.max(0, values[cell] - margin), high: values[cell] + margin, margin };
}

/** A number with the error and the interval that are shown beside it: the estimated ones, where there are any. */
export const seenOf = (found) => ({ ...found, ...found.estimated, margin: found.estimated?.margin ?? (found.high - found.low) / 2 });
