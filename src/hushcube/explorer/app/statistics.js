// Sums of cells with their exact errors, and what follows from two of them.

import { covarianceOf } from "./covariances.js";

/** A sum with its interval: value ± (spread * std_error + step), where the table has `spread` and `step`. */
export function around(value, variance, { spread, step }) {
  const std_error = Math.sqrt(Math.max(0, variance));
  const margin = std_error > 0 ? spread * std_error + (step ?? 0) : 0;
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
  if (!(marginUnder < under)) return { value: null, std_error: null, low: null, high: null };
  const lead = under ** 2 - marginUnder ** 2;
  const middle = over * under - spread ** 2 * joint;
  const root = Math.sqrt(Math.max(0, middle ** 2 - lead * (over ** 2 - marginOver ** 2)));
  const low = (middle - root) / lead;
  return { value: over / under, std_error: null, low: may_be_negative ? low : Math.max(0, low), high: (middle + root) / lead };
}

/** The sum of some cells; where there are others, theirs, and the difference and ratio of both, all with intervals. */
export function compared(table, cells, versus = []) {
  const weights = (chosen) => new Map(chosen.map((cell) => [cell, 1]));
  const sum = (chosen) => chosen.reduce((total, cell) => total + table.values[cell], 0);
  const [u, v] = [weights(cells), weights(versus)];
  const own = around(sum(cells), covarianceOf(table, u), table);
  if (!versus.length) return { sum: own, versus: null, difference: null, ratio: null };
  const other = around(sum(versus), covarianceOf(table, v), table);
  const joint = covarianceOf(table, u, v);
  const variance = own.std_error ** 2 + other.std_error ** 2 - 2 * joint;
  const difference = around(own.value - other.value, variance, table);
  return { sum: own, versus: other, difference, ratio: fieller(own, other, joint, table) };
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

/** The errors of cells, whether a table has one for all of them or one each. */
export const errorAt = (table, cell) => (Array.isArray(table.std_errors) ? table.std_errors[cell] : table.std_errors);
