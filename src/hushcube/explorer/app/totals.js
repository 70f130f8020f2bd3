// Totals of the rows and columns of a sheet, with their errors.

import { errorsOfBoxes, knowsTotals } from "./rollup.js";
import { adds, numberAt } from "./sheet.js";
import { around, qualityOf } from "./statistics.js";

/**
 * `{row(at), column(col), all()}`, or null where there are none. Errors follow from the table's covariances, or it has
 * those of its totals. Without these, for averages, and where errors are estimated, a total of all labels is a cell of a
 * smaller table, and is looked up there.
 */
export async function totalsOf(sheet, cube, source, state, quantity) {
  const { table } = sheet;
  if (!state.totals || sheet.own.length === 0) return null;
  const isOwn = table.estimated && !sheet.isPart; // smaller tables have estimated errors of their own
  if (!isOwn && adds(table, quantity) && knowsTotals(table.origin ?? table)) return summed(sheet, cube.catalogue.quality);
  if (table.word.includes("(")) return null;
  if (!sheet.isPart) {
    try {
      return await lookedUp(sheet, cube, source, state);
    } catch {
      // not published, nor computable: sums have no errors then, averages no totals
    }
  }
  return adds(table, quantity) ? summed(sheet, cube.catalogue.quality) : null;
}

function summed(sheet, quality) {
  const errorsOf = errorsOfBoxes(sheet.table);
  const total = (cells, box) => {
    const value = cells.reduce((sum, cell) => sum + sheet.table.values[cell], 0);
    const { variance, margin } = errorsOf(box);
    if (variance === null) return { value, std_error: null, low: null, high: null, quality: null };
    const found = around(value, variance, sheet.table, margin);
    return { ...found, quality: qualityOf(value, found.std_error, sheet.table.may_be_negative, quality) };
  };
  return {
    row: (at) => total(sheet.rowCells(at), sheet.rowBox(at)),
    column: (col) => total(sheet.columnCells(col), sheet.columnBox(col)),
    all: () => total(sheet.allCells(), sheet.box()),
  };
}

async function lookedUp(sheet, cube, source, state) {
  const ask = (axes) => source.table(cube.word(axes), state.quantity, state.face);
  const [rows, columns, all] = await Promise.all([
    ask(sheet.down), sheet.across === null ? null : ask([sheet.across]), ask([]),
  ]);
  const cellOf = (at) =>
    rows.attributes.reduce((cell, word, i) => cell * rows.shape[i] + at[sheet.down.findIndex((axis) => axis.word === word)], 0);
  return {
    row: (at) => numberAt(rows, cellOf(at)),
    column: (col) => numberAt(columns ?? all, col ?? 0),
    all: () => numberAt(all, 0),
  };
}
