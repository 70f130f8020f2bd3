// Sums of cells with their exact errors, and what follows from two of them.
//
// A table's `covariances` has one number for each set m of axes (a bit mask, bit i for axis i): the covariance c[m] of
// two cells that agree in the axes of m and differ in all others. c[all] is the variance of a cell.

/** d with c[m] = Σ_{t ⊆ m} d[t]: Möbius inversion over the subsets of axes. */
function inverted(covariances) {
  const d = Float64Array.from(covariances);
  for (let bit = 1; bit < d.length; bit <<= 1)
    for (let mask = 0; mask < d.length; mask++) if (mask & bit) d[mask] -= d[mask ^ bit];
  return d;
}

/**
 * The covariance of Σ_x u_x X_x and Σ_y v_y X_y, with weights by cell ({cell: weight}, as Maps):
 *   Σ_x Σ_y u_x v_y c[agreement of x and y] = Σ_t d[t] Σ_g (Σ_{x in g} u_x) (Σ_{y in g} v_y),
 * where g runs over the cells of the marginal on t: 2^k passes over the cells in place of all pairs of them.
 */
export function covarianceOf(shape, covariances, u, v = u) {
  const d = inverted(covariances);
  const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1));
  const projected = (weights, mask) => {
    const sums = new Map();
    for (const [cell, weight] of weights) {
      let place = 0;
      for (let axis = 0; axis < shape.length; axis++)
        if (mask & (1 << axis)) place = place * shape[axis] + (Math.floor(cell / strides[axis]) % shape[axis]);
      sums.set(place, (sums.get(place) ?? 0) + weight);
    }
    return sums;
  };
  let total = 0;
  for (let mask = 0; mask < d.length; mask++) {
    if (d[mask] === 0) continue;
    const left = projected(u, mask);
    const right = v === u ? left : projected(v, mask);
    for (const [place, sum] of left) total += d[mask] * sum * (right.get(place) ?? 0);
  }
  return total;
}

/**
 * The variance of the sum over a box of cells with g_i values along axis i: of its pairs of cells, those that agree in
 * exactly the axes of m are Π_{i in m} g_i Π_{i not in m} g_i (g_i - 1), so Var = Σ_m c[m] times that number.
 */
export function boxVariance(covariances, sizes) {
  let variance = 0;
  for (let mask = 0; mask < covariances.length; mask++) {
    let pairs = 1;
    sizes.forEach((g, axis) => (pairs *= mask & (1 << axis) ? g : g * (g - 1)));
    variance += pairs * covariances[mask];
  }
  return Math.max(0, variance);
}

/** A sum with its interval: value ± (spread * std_error + step), where the table has `spread` and `step`. */
export function around(value, variance, { spread, step }) {
  const std_error = Math.sqrt(Math.max(0, variance));
  const margin = spread * std_error + (step ?? 0);
  return { value, std_error, low: value - margin, high: value + margin };
}

/**
 * The ratio t = a/b of two noisy sums, and its interval: all t for which a - t b is within its own interval of zero,
 *   (a - t b)² <= k² (Var a - 2 t Cov(a, b) + t² Var b)                                            [Fieller 1954]
 * with k the widest margin of a, b and a - b over its standard error. This is a quadratic in t whose leading
 * coefficient is b² - k² Var b. If that is positive the set is an interval; otherwise b itself may be zero, and no
 * finite interval is honest: then `low` and `high` are null.
 */
export function fieller(a, b, difference, joint) {
  const factor = (found) => (found.std_error > 0 ? (found.high - found.low) / 2 / found.std_error : 0);
  const square = Math.max(factor(a), factor(b), factor(difference)) ** 2;
  const lead = b.value ** 2 - square * b.std_error ** 2;
  const value = b.value === 0 ? null : a.value / b.value;
  if (!(lead > 0)) return { value, std_error: null, low: null, high: null };
  const middle = a.value * b.value - square * joint;
  const root = Math.sqrt(Math.max(0, middle ** 2 - lead * (a.value ** 2 - square * a.std_error ** 2)));
  return { value, std_error: null, low: (middle - root) / lead, high: (middle + root) / lead };
}

/** The sum of some cells; where there are others, theirs, and the difference and ratio of both, all with intervals. */
export function compared(table, cells, versus = []) {
  const { shape, covariances, values } = table;
  const weights = (chosen) => new Map(chosen.map((cell) => [cell, 1]));
  const sum = (chosen) => chosen.reduce((total, cell) => total + values[cell], 0);
  const [u, v] = [weights(cells), weights(versus)];
  const own = around(sum(cells), covarianceOf(shape, covariances, u), table);
  if (!versus.length) return { sum: own, versus: null, difference: null, ratio: null };
  const other = around(sum(versus), covarianceOf(shape, covariances, v), table);
  const joint = covarianceOf(shape, covariances, u, v);
  const variance = own.std_error ** 2 + other.std_error ** 2 - 2 * joint;
  const difference = around(own.value - other.value, variance, table);
  return { sum: own, versus: other, difference, ratio: fieller(own, other, difference, joint) };
}

/** How far a number can be relied on: 0 reliable, 1 with caution, 2 not to be used; by its coefficient of variation. */
export function qualityOf(value, stdError, { caution, unreliable }) {
  if (!(value > 0)) return 2;
  const variation = stdError / value;
  return variation > unreliable ? 2 : variation > caution ? 1 : 0;
}

/** The errors of cells, whether a table has one for all of them or one each. */
export const errorAt = (table, cell) => (Array.isArray(table.std_errors) ? table.std_errors[cell] : table.std_errors);
