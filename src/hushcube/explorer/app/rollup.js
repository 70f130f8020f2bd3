// Coarser tables as sums of published ones, in the page: values, errors, and how to get back to the published cells.

import { boxVariance, qualityOf } from "./statistics.js";

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
  const sizes = axes.map((_, at) => {
    const counts = new Array(shape[at]).fill(0);
    for (const group of groupings[at]) counts[group] += 1;
    return counts;
  });
  const known = table.covariances !== null && table.spread !== null;
  const found = new Map(); // groups of the same sizes have the same error
  const errors = values.map((_, cell) => {
    if (!known) return null;
    const box = [...table.shape];
    kept.forEach((own, at) => (box[own] = sizes[at][Math.floor(cell / strides[at]) % shape[at]]));
    const name = box.join();
    if (!found.has(name)) found.set(name, Math.sqrt(boxVariance(table.covariances, box)));
    return found.get(name);
  });
  const margins = errors.map((error) => (error === null ? null : table.spread * error + (table.step ?? 0)));
  return {
    word, attributes: axes.map((axis) => axis.word), quantity: table.quantity, face: table.face, shape, values,
    std_errors: errors, margins,
    low: values.map((value, cell) => (known ? value - margins[cell] : null)),
    high: values.map((value, cell) => (known ? value + margins[cell] : null)),
    quality: values.map((value, cell) => (known ? qualityOf(value, errors[cell], table.may_be_negative, cube.catalogue.quality) : null)),
    covariances: null, spread: table.spread, step: table.step, may_be_negative: table.may_be_negative, origin: table, place, sizes, kept,
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

/** The variance of the sum over a box: for each axis of the table the positions taken; null where it is not known. */
export function varianceOfBox(table, positions) {
  const own = table.origin ?? table;
  if (own.covariances === null) return null;
  const box = [...own.shape];
  positions.forEach((taken, axis) => {
    if (!table.origin) box[axis] = taken.length;
    else box[table.kept[axis]] = taken.reduce((sum, at) => sum + table.sizes[axis][at], 0);
  });
  return boxVariance(own.covariances, box);
}
