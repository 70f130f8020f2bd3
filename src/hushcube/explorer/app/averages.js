// Averages of any cells: of the sums and the counts behind them, with intervals that do not pretend.

import { rolledUp } from "./rollup.js";
import { fiellerOf, sumOf, widened } from "./statistics.js";

const UNKNOWN = { value: null, std_error: null, low: null, high: null };
const between = (least, x, most) => Math.min(most, Math.max(least, x));

/**
 * center + step * S / C for a sum S of whole numbers and a count C, given as {value, margin}; null where C may be zero.
 * Means lie within the bounds of the measure: a sum beyond them is moved to them, before its interval is taken.
 */
function averageOf(count, sum, { center, step, least, most }) {
  const people = Math.max(count.value, 0);
  const over = between(((least - center) / step) * people, sum.value, ((most - center) / step) * people);
  const found = fiellerOf(over, count.value, sum.margin, count.margin, 0);
  if (found === null) return UNKNOWN;
  const [value, low, high] = [found.value, found.low, found.high].map((t) => between(least, center + step * t, most));
  return { value, std_error: null, low, high };
}

/** The average of some cells; where there are others, theirs, the difference and the ratio. */
export function averagesCompared(counts, average, cells, versus) {
  const mean = (chosen, width) => averageOf(width(counts, chosen), width(average.sums, chosen), average);
  const own = mean(cells, sumOf);
  if (!versus.length) return { sum: own, versus: null, difference: null, ratio: null };
  const other = mean(versus, sumOf);
  // from intervals that hold at once
  const [a, b] = [cells, versus].map((chosen) => mean(chosen, widened));
  if (a.value === null || b.value === null) return { sum: own, versus: other, difference: UNKNOWN, ratio: UNKNOWN };
  const difference = { value: a.value - b.value, std_error: null, low: a.low - b.high, high: a.high - b.low };
  const corners = [a.low, a.high].flatMap((x) => [b.low, b.high].map((y) => x / y));
  const ratio = b.low > 0 || b.high < 0 ? { value: a.value / b.value, std_error: null, low: Math.min(...corners), high: Math.max(...corners) } : UNKNOWN;
  return { sum: own, versus: other, difference, ratio };
}

/** A coarser table of averages, from the published one and its counts. */
export function rolledUpAverages(table, counts, cube, axes, word, quality) {
  const sums = { ...table.average.sums, attributes: table.attributes, quantity: table.quantity, face: table.face };
  const [over, under] = [sums, counts].map((each) => rolledUp(each, cube, axes, word));
  const found = under.values.map((value, cell) =>
    averageOf({ value, margin: under.margins[cell] }, { value: over.values[cell], margin: over.margins[cell] }, table.average));
  const column = (name) => found.map((each) => each[name]);
  return {
    ...under, quantity: table.quantity, values: column("value"), low: column("low"), high: column("high"), std_errors: null, margins: null,
    quality: found.map((each) => quality(each, table.may_be_negative)), may_be_negative: table.may_be_negative, origin: table,
  };
}
