// Sums of cells with their exact errors, and what follows from two of them.

import { boxOf, covarianceOf, totalMargin } from "./covariances.js";

/**
 * A sum with its interval: value ± (spread * std_error + step), where the table has `spread` and `step`; of a total
 * that is a cell of a table that was published, ± the margin of that cell (`known`).
 */
export function around(value, variance, { spread, step }, known = null) {
  const std_error = Math.sqrt(Math.max(0, variance));
  const margin = known ?? (std_error > 0 ? spread * std_error + (step ?? 0) : 0);
  return { value, std_error, low: value - margin, high: value + margin };
}

/**
 * The ratio t = a/b of two noisy sums, and its interval: all t for which a - t b is within its own interval of zero,
 *   (a - t b)² <= m_a² - 2 t m_ab + t² m_b²                                                        [Fieller 1954]
 * with the margins m_a and m_b, and m_ab the covariance times the square of the quantile (`spread`). This is a
 * quadratic in t whose leading coefficient is b² - m_b². If b is above its margin the set is an interval; otherwise b
 * itself may be zero, and no finite interval is honest: then nothing is known. Of numbers whose truth is not negative,
 * estimates below zero are moved to it: for t >= 0 that brings a - t b nearer to zero.
 */
export function fieller(a, b, joint, { spread, may_be_negative }) {
  let [over, under] = [a.value, b.value];
  if (!may_be_negative) [over, under] = [under >= 0 ? Math.max(over, 0) : over, over >= 0 ? Math.max(under, 0) : under];
  if (under < 0) [over, under] = [-over, -under];
  const [marginOver, marginUnder] = [a, b].map((sum) => (sum.high - sum.low) / 2);
  const found = fiellerOf(over, under, marginOver, marginUnder, spread ** 2 * joint);
  if (found === null) return { value: null, std_error: null, low: null, high: null };
  return { ...found, std_error: null, low: may_be_negative ? found.low : Math.max(0, found.low) };
}

/** The ratio and both ends of its interval, from two numbers, their margins and m_ab; null where there is no interval. */
export function fiellerOf(over, under, marginOver, marginUnder, joint) {
  if (!(marginUnder < under)) return null;
  const lead = under ** 2 - marginUnder ** 2;
  const middle = over * under - joint;
  const root = Math.sqrt(Math.max(0, middle ** 2 - lead * (over ** 2 - marginOver ** 2)));
  return { value: over / under, low: (middle - root) / lead, high: (middle + root) / lead };
}

const weightsOf = (cells) => new Map(cells.map((cell) => [cell, 1]));
const total = (table, cells) => cells.reduce((sum, cell) => sum + table.values[cell], 0);

/** The margin of a total that is a cell of a published table; null for other sums. */
function knownMargin(table, cells) {
  const box = boxOf(table, cells);
  return box && totalMargin(table, box);
}

/** The sum of some cells of a table, `{value, std_error, low, high, margin}`. */
export function sumOf(table, cells) {
  const found = around(total(table, cells), covarianceOf(table, weightsOf(cells)), table, knownMargin(table, cells));
  return { ...found, margin: (found.high - found.low) / 2 };
}

/** The same with an interval of which two hold at once in 95% of cases. */
export function widened(table, cells) {
  const found = around(total(table, cells), covarianceOf(table, weightsOf(cells)), { ...table, spread: table.spread_both });
  return { ...found, margin: (found.high - found.low) / 2 };
}

/** The sum of some cells; where there are others, theirs, and the difference and ratio of both, all with intervals. */
export function compared(table, cells, versus = []) {
  const own = sumOf(table, cells);
  if (!versus.length) return { sum: own, versus: null, difference: null, ratio: null };
  const other = sumOf(table, versus);
  const joint = covarianceOf(table, weightsOf(cells), weightsOf(versus));
  const variance = own.std_error ** 2 + other.std_error ** 2 - 2 * joint;
  const difference = around(own.value - other.value, variance, table);
  const safe = [own, other].map((sum) => around(sum.value, sum.std_error ** 2, table)); // with one quantile for all
  return { sum: own, versus: other, difference, ratio: fieller(...safe, joint, table) };
}

/**
 * How far a number can be relied on: 0 reliable, 1 with caution, 2 not to be used; by its coefficient of variation.
 * What cannot be negative, and is not above zero, is no more than noise.
 */
export function qualityOf(value, stdError, mayBeNegative, { caution, unreliable }) {
  if (stdError === 0) return 0;
  const variation = stdError / Math.abs(value);
  if (!Number.isFinite(variation) || (!mayBeNegative && value <= 0)) return 2;
  return variation > unreliable ? 2 : variation > caution ? 1 : 0;
}

/** The error of a cell, whether there is one for all of them or one each. */
export const errorOf = (errors, cell) => (Array.isArray(errors) ? errors[cell] : errors);

export const errorAt = (table, cell) => errorOf(table.std_errors, cell);
