// Coarser tables as sums of published ones, in the page: values, errors, and how to get back to the published cells.

import { boxVariances, totalMargin } from "./covariances.js";
import { qualityOf } from "./statistics.js";

const product = (sizes) => sizes.reduce((a, b) => a * b, 1);

/**
 * The table of some axes (in the order of the schema) from a published one that knows them.
 * `origin` keeps that table, and `place` the cell here that each of its cells went to: variances of sums of cells are
 * computed there.
 */
export function rolledUp(table, cube, axes, word) {
  const from = table.attributes.map((name) => cube.axis(name));
  const kept = axes.map((axis) => from.findIndex((own) => own.position === axis.position));
  const groupings = axes.map((axis, at) => cube.grouping(from[kept[at]], axis));
  const shape = axes.map((axis) => axis.labels.length);
  const strides = shape.map((_, at) => product(shape.slice(at + 1)));
  const fromStrides = table.shape.map((_, at) => product(table.shape.slice(at + 1)));
  const place = Int32Array.from({ length: table.values.length }, (_, cell) =>
    kept.reduce((sum, own, at) => sum + strides[at] * groupings[at][Math.floor(cell / fromStrides[own]) % table.shape[own]], 0));
  const values = new Array(product(shape)).fill(0);
  table.values.forEach((value, cell) => (values[place[cell]] += value));
  const members = axes.map((_, at) => {
    const found = Array.from({ length: shape[at] }, () => []);
    groupings[at].forEach((group, position) => found[group].push(position));
    return found;
  });
  const whole = wholeBox(table);
  const varianceOf = boxVariances(table);
  const boxes = values.map((_, cell) => {
    const box = [...whole];
    kept.forEach((own, at) => (box[own] = members[at][Math.floor(cell / strides[at]) % shape[at]]));
    return box;
  });
  const errors = boxes.map((box) => {
    const variance = varianceOf(box);
    return variance === null ? null : Math.sqrt(variance);
  });
  const known = errors.every((error) => error !== null);
  const margins = errors.map((error, cell) => totalMargin(table, boxes[cell]) ?? (error ? table.spread * error + (table.step ?? 0) : error));
  return {
    word, attributes: axes.map((axis) => axis.word), quantity: table.quantity, face: table.face, shape, values,
    std_errors: errors, margins,
    low: values.map((value, cell) => (known ? value - margins[cell] : null)),
    high: values.map((value, cell) => (known ? value + margins[cell] : null)),
    quality: values.map((value, cell) => (known ? qualityOf(value, errors[cell], table.may_be_negative, cube.catalogue.quality) : null)),
    covariances: null, spread: table.spread, step: table.step, may_be_negative: table.may_be_negative, relations: null, total_errors: null, origin: table, place, members, kept,
  };
}

/** The published cells behind some cells of a table. */
export function publishedCells(table, cells) {
  if (!table.origin) return cells;
  const wanted = new Set(cells);
  const found = [];
  table.place.forEach((to, from) => wanted.has(to) && found.push(from));
  return found;
}

/** All positions along each axis. */
const wholeBox = (table) => table.shape.map((n) => Array.from({ length: n }, (_, at) => at));

/** Whether the page knows the errors of totals of a table: from covariances, or from those of its totals. */
export const knowsTotals = (table) => table.covariances !== null || table.total_errors !== null;

/**
 * `errors(box)` of sums over boxes, for each axis of the table the positions taken: the variance, null where it is not
 * known, and the margin of a total, null for other boxes.
 */
export function errorsOfBoxes(table) {
  const published = table.origin ?? table;
  const [whole, varianceOf] = [wholeBox(published), boxVariances(published)];
  return (positions) => {
    const box = table.origin ? [...whole] : positions;
    if (table.origin) positions.forEach((taken, axis) => (box[table.kept[axis]] = taken.flatMap((at) => table.members[axis][at])));
    return { variance: varianceOf(box), margin: totalMargin(published, box) };
  };
}
