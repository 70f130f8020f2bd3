// Covariances of the cells of a table, and of sums of them.
//
// Along each axis two values have a relation, and the covariance of two cells is a number for the combination of their
// relations: covariances[r_0 + m_0 (r_1 + m_1 (r_2 + ...))], where axis i has m_i relations. `relations` has those of
// all pairs of values along each axis, row by row. Where it is null only agreement matters: 0 different values, 1 the
// same, so that the place is a bit mask of the axes in which the cells agree. A table without covariances may have
// `total_errors`: the standard errors of its sums over whole axes, by the bit mask of the axes that are kept.

const strideOf = (shape, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1);

/** How many relations each axis has. */
const counted = ({ shape, relations }) => (relations ? relations.map((own) => own.reduce((a, b) => Math.max(a, b), 0) + 1) : shape.map(() => 2));

/** The covariance of Σ_x u_x X_x and Σ_y v_y X_y, with weights by cell ({cell: weight}, as Maps). */
export function covarianceOf(table, u, v = u) {
  return table.relations ? overPairs(table, u, v) : overMarginals(table, u, v);
}

function overPairs(table, u, v) {
  const { shape, covariances, relations } = table;
  const many = counted(table);
  const positions = (weights) => [...weights].map(([cell, weight]) => [shape.map((n, axis) => Math.floor(cell / strideOf(shape, axis)) % n), weight]);
  const [left, right] = [positions(u), positions(v)];
  let [total, largest] = [0, 0];
  for (const [x, a] of left)
    for (const [y, b] of right) {
      let place = 0;
      for (let axis = shape.length - 1; axis >= 0; axis--) place = place * many[axis] + relations[axis][x[axis] * shape[axis] + y[axis]];
      total += a * b * covariances[place];
      largest += Math.abs(a * b * covariances[place]);
    }
  return beyondRounding(total, largest);
}

/** A sum of rounded numbers; zero where it is no more than their rounding, as with a public total. */
const beyondRounding = (total, largest) => (Math.abs(total) < 1e-9 * largest ? 0 : total);

/** d with c[m] = Σ_{t ⊆ m} d[t]: Möbius inversion over the subsets of axes. */
function inverted(covariances) {
  const d = Float64Array.from(covariances);
  for (let bit = 1; bit < d.length; bit <<= 1)
    for (let mask = 0; mask < d.length; mask++) if (mask & bit) d[mask] -= d[mask ^ bit];
  return d;
}

/**
 * Where agreement alone matters:
 *   Σ_x Σ_y u_x v_y c[agreement of x and y] = Σ_t d[t] Σ_g (Σ_{x in g} u_x) (Σ_{y in g} v_y),
 * where g runs over the cells of the marginal on t: 2^k passes over the cells in place of all pairs of them.
 */
function overMarginals({ shape, covariances }, u, v) {
  const d = inverted(covariances);
  const projected = (weights, mask) => {
    const sums = new Map();
    for (const [cell, weight] of weights) {
      let place = 0;
      for (let axis = 0; axis < shape.length; axis++)
        if (mask & (1 << axis)) place = place * shape[axis] + (Math.floor(cell / strideOf(shape, axis)) % shape[axis]);
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

/** Of all pairs of some positions along an axis, how many have each relation. */
function pairsAlong(table, axis, positions) {
  if (!table.relations) return [positions.length * (positions.length - 1), positions.length];
  const found = new Array(counted(table)[axis]).fill(0);
  for (const x of positions) for (const y of positions) found[table.relations[axis][x * table.shape[axis] + y]] += 1;
  return found;
}

/**
 * `variance(box)` of sums over boxes of cells, given the positions taken along each axis; null where it is not known.
 * A box has Π_i pairs_i[r_i] pairs of cells with the relations r, so Var = Σ_r c[r] Π_i pairs_i[r_i]: axis by axis.
 */
export function boxVariances(table) {
  if (table.covariances === null) return (box) => totalVariance(table, box);
  const known = table.shape.map(() => new Map()); // of the lists of positions, which boxes share
  const pairs = (axis, positions) => {
    if (!known[axis].has(positions)) known[axis].set(positions, pairsAlong(table, axis, positions));
    return known[axis].get(positions);
  };
  const folded = (numbers, own) => Array.from({ length: numbers.length / own.length }, (_, at) =>
    own.reduce((sum, count, r) => sum + count * numbers[at * own.length + r], 0));
  return (box) => {
    const all = box.map((positions, axis) => pairs(axis, positions));
    const [variance] = all.reduce(folded, table.covariances);
    const [largest] = all.reduce(folded, table.covariances.map(Math.abs));
    return Math.max(0, beyondRounding(variance, largest));
  };
}

/** The variance of a total: of all of some axes, at one place along the others. */
function totalVariance({ shape, total_errors, std_errors }, box) {
  const error = total_errors ? ofTotal(shape, [...total_errors, std_errors], box) : null;
  return error === null ? null : error ** 2;
}

/** The margin of a total, where the table has those of its totals; null for sums over other boxes. */
export function totalMargin({ shape, total_margins, margins }, box) {
  return total_margins ? ofTotal(shape, [...total_margins, margins], box) : null;
}

/** What is known of a total, out of a list by the bit masks of the axes that are kept; null where a box is no total. */
function ofTotal(shape, known, box) {
  const kept = shape.map((n, axis) => box[axis].length < n);
  if (!box.every((positions, axis) => !kept[axis] || positions.length === 1)) return null;
  const found = known[kept.reduce((mask, own, axis) => mask + (own ? 1 << axis : 0), 0)];
  const place = shape.reduce((at, n, axis) => (kept[axis] ? at * n + box[axis][0] : at), 0);
  return Array.isArray(found) ? found[place] : found;
}

/** The box that some cells fill, the positions taken along each axis; null where they fill none. */
export function boxOf({ shape }, cells) {
  const taken = shape.map((n, axis) => [...new Set(cells.map((cell) => Math.floor(cell / strideOf(shape, axis)) % n))]);
  return cells.length === taken.reduce((size, own) => size * own.length, 1) ? taken : null;
}
