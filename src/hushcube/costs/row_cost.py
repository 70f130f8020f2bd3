"""What measurements cost one row, exactly: the only place that turns noise into privacy.

The noise on set B has budget beta_B: Laplace noise of rate beta_B (pure epsilon), or Gaussian noise of variance
1/(2 beta_B) (zCDP). A row that comes, goes or changes moves the measured numbers by a column of what is measured, or by
a difference of two columns; the cost is

    Laplace    sum_B beta_B ||change||_1            Gaussian    sum_B beta_B ||change||_2²

Sets of attributes in a product basis:

    add-remove    sum_B beta_B prod_B column_i                                             (every column alike)
    replace-one   max over the set D of attributes that differ, of sum_B beta_B change_B(D),
                  Gaussian and Fourier: change_B(D) = f [prod_B same_i - prod_{B-D} same_i prod_{B and D} differ_i],
                  f = 2 (squared L2) or 1 (L1 of +-1 rows); same, differ: products of equal and of different columns.

The total (B empty) cannot change when one row replaces another: it costs nothing and is published exactly.
Budgets are dyadic floats; sums are taken exactly, and maxima are rounded up.

The rows of any integer matrix:

    add-remove     max over the columns
    replace-one    max over the pairs of columns, where they can all be looked at; beyond, twice the largest column
                   (four times for squares, where columns may point in opposite directions)

Floats find the columns or pairs that may be the largest, with a rigorous bound of their rounding; exact sums of dyadic
floats decide among them. Where too many are as good as equal, the bound of the rounding is added instead. So the cost
is never understated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Final

import numpy as np

from hushcube.lattice.basis import Basis
from hushcube.lattice.family import Family
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.model.privacy import Privacy
from hushcube.model.queries import SparseRows

Cost = Callable[[Floats], Fraction]
"""Of one row, under given budgets."""
_MOST_COUNTS: Final = 2**16
"""How many numbers of differing attributes, by size, are tried where attributes of one size are alike."""
_MOST_DIFFERENCES: Final = 2**20
"""How many sets D are tried; beyond that the sum of each set's own maximum bounds the cost."""
ROUND_UP: Final = Fraction(1) + Fraction(1, 2**40)
"""Float error of the maximisation is below 2^-44 of the sum of all terms."""
_PAIRED_CELLS: Final = 1024
_PAIR_WORK: Final = 2**28  # entries of differences of columns that are looked at; beyond, the bound is taken
_MOST_TIES: Final = 2**12
_UNIT: Final = 2.0**-53


def largest_cost(budgets: Floats, varying: Bools, privacy: Privacy, added: Cost, replaced: Cost) -> Fraction:
    """The cost of one row, in epsilon (pure) or rho: the largest over the changes that the guarantee must cover.

    `added` is the cost of a row that comes or goes, `replaced` that of one that changes, which moves the sets that are
    `varying`. Infinite budgets are free only where nothing can change.
    """
    costs = []
    for change in privacy.row_changes:
        if not np.isfinite(budgets if change == "add-remove" else budgets[varying]).all():
            raise OverflowError("exact answers have no finite cost where they can change")
        costs.append(added(budgets) if change == "add-remove" else replaced(np.where(varying, budgets, 0.0)))
    return max(costs)


def cost_of_sets(basis: Basis, measured: Family, budgets: Floats, privacy: Privacy) -> Fraction:
    """What one row costs if sets of attributes are measured in a basis."""
    pure = privacy.is_pure

    def added(spent: Floats) -> Fraction:
        terms = (column(basis, batch.shape, pure=pure) * exact_sum(spent[batch.ids]) for batch in measured.batches)
        return sum(terms, Fraction(0))

    def replaced(spent: Floats) -> Fraction:
        if basis.holds_cells:
            return 2 * exact_sum(spent)
        return Fraction(_largest_change(basis, measured, spent, pure=pure)) * ROUND_UP

    return largest_cost(budgets, ~unchanged_by_replacing(measured), privacy, added, replaced)


def column(basis: Basis, shape: Sequence[int], *, pure: bool) -> Fraction:
    """||column||_1 or ||column||_2² of the set with the given sizes."""
    norm = basis.l1_column if pure else basis.l2_column
    if norm is None:
        raise ValueError(f"the {basis.name} basis is for Gaussian noise only")
    return math.prod((norm(n) for n in shape), start=Fraction(1))


def exact_sum(values: Floats) -> Fraction:
    """The sum of floats as a Fraction, without rounding."""
    mantissas, exponents = np.frexp(values)
    integers = np.ldexp(mantissas, 53).astype(np.int64)
    low = int(exponents.min(initial=0))
    total = 0
    for exponent in np.unique(exponents).tolist():
        chosen = integers[exponents == exponent]
        total += ((int((chosen >> 26).sum()) << 26) + int((chosen & (2**26 - 1)).sum())) << (exponent - low)
    return Fraction(total) * Fraction(2) ** (low - 53)


def unchanged_by_replacing(measured: Family) -> Bools:
    """Sets whose answer cannot change when one row replaces another: the total, and attributes of one value."""
    return np.asarray(measured.product(np.where(measured.sizes > 1, 2.0, 1.0)) == 1)


def _largest_change(basis: Basis, measured: Family, budgets: Floats, *, pure: bool) -> float:
    """max_D sum_B budgets_B change_B(D), or the sum of the maxima where there are too many sets D."""
    varying = [i for i in measured.attributes.tolist() if measured.sizes[i] > 1]
    if 2 ** len(varying) > _MOST_DIFFERENCES:
        symmetric = _symmetric_largest(basis, measured, budgets, pure=pure, attributes=varying)
        if symmetric is not None:
            return symmetric
    if 2 ** len(varying) > _MOST_DIFFERENCES or (pure and basis.l1_change is not None):
        return _sum_of_largest(basis, measured, budgets, pure=pure, attributes=varying)
    same = {i: float(basis.l2_column(int(measured.sizes[i]))) for i in varying}
    differ = {i: float(basis.column_product(int(measured.sizes[i]))) for i in varying}
    # f[D] = sum_B budgets_B prod_{B-D} same prod_{B and D} differ, by one pass over each attribute
    f = np.zeros(2 ** len(varying))
    bit = {attribute: 1 << at for at, attribute in enumerate(varying)}
    for marginal, budget in zip(measured, budgets.tolist(), strict=True):
        if budget and bit.keys() >= set(marginal):  # with an attribute of one value it has no rows
            f[sum(bit[i] for i in marginal)] += budget
    for at, i in enumerate(varying):
        pairs = f.reshape(-1, 2, 1 << at)
        without, with_i = pairs[:, 0].copy(), pairs[:, 1].copy()
        pairs[:, 0] = without + same[i] * with_i
        pairs[:, 1] = without + differ[i] * with_i
    return float((1 if pure else 2) * (f[0] - f.min()))


def _symmetric_largest(
    basis: Basis, measured: Family, budgets: Floats, *, pure: bool, attributes: Sequence[int]
) -> float | None:
    """The maximum where attributes of one size are alike: D matters by how many of each size differ; None elsewhere.

    Of the sets with r_c attributes of size c, prod_c C(k_c, t_c) C(n_c - k_c, r_c - t_c) meet D in t, if k_c of the
    n_c attributes are in D. A shape's budgets are taken at their largest, so the result is never too small.
    """
    sizes = sorted({int(measured.sizes[i]) for i in attributes})
    n = [sum(measured.sizes[i] == size for i in attributes) for size in sizes]
    if math.prod(count + 1 for count in n) > _MOST_COUNTS:
        return None
    total = np.zeros([count + 1 for count in n])
    shapes: dict[tuple[int, ...], list[Floats]] = {}
    for batch in measured.batches:
        shapes.setdefault(tuple(sorted(s for s in batch.shape if s > 1)), []).append(budgets[batch.ids])
    for shape, parts in shapes.items():
        shares = np.concatenate(parts)
        r = [shape.count(size) for size in sizes]
        if len(shares) != math.prod(map(math.comb, n, r)) or shares.min() < shares.max() * (1 - 1e-9):
            return None
        change = _changes(basis, shape, pure=pure)
        for t in product(*(range(members + 1) for members in r)):
            pattern = [x for members, d in zip(r, t, strict=True) for x in [1] * d + [0] * (members - d)]
            meeting = [
                np.array([math.comb(k, d) * math.comb(every - k, members - d) for k in range(every + 1)], np.float64)
                for every, members, d in zip(n, r, t, strict=True)
            ]
            total += float(shares.max()) * change[tuple(pattern)] * reduce(np.multiply.outer, meeting)
    return float(total.max())


def _sum_of_largest(basis: Basis, measured: Family, budgets: Floats, *, pure: bool, attributes: Sequence[int]) -> float:
    """Each shape's change as a function of which of its attributes differ; jointly maximised where that is cheap."""
    changes = {b.shape: _changes(basis, b.shape, pure=pure) for b in measured.batches}
    if len(measured) << len(attributes) > 2**22:
        return math.fsum(float(changes[b.shape].max()) * math.fsum(budgets[b.ids].tolist()) for b in measured.batches)
    total = np.zeros(2 ** len(attributes))
    differing = np.arange(len(total))
    bit = {attribute: at for at, attribute in enumerate(attributes)}
    for batch in measured.batches:
        for row, budget in zip(batch.rows.tolist(), budgets[batch.ids].tolist(), strict=True):
            which = tuple(differing >> bit[i] & 1 if i in bit else np.zeros_like(differing) for i in row)
            total += budget * changes[batch.shape][which]
    return float(total.max())


def _changes(basis: Basis, shape: tuple[int, ...], *, pure: bool) -> Floats:
    """||difference of two columns|| of one set, for each pattern of differing attributes; shape (2, ..., 2)."""
    result = np.zeros((2,) * len(shape))
    for pattern in product((0, 1), repeat=len(shape)):
        if pure and basis.l1_change is not None:
            result[pattern] = basis.l1_change(shape, pattern)
        else:
            same = [float(basis.l2_column(n)) for n in shape]
            pairs = zip(shape, pattern, same, strict=True)
            mixed = math.prod(float(basis.column_product(n)) if differs else own for n, differs, own in pairs)
            result[pattern] = (1 if pure else 2) * (math.prod(same) - mixed)
    return result


def cost_of_rows(rows: SparseRows, group_of: Ints, budgets: Floats, privacy: Privacy) -> Fraction:
    """What one row of data costs if the rows of a matrix are measured, under budgets of groups of them."""
    pure, varying = privacy.is_pure, ~constant_rows(rows)

    def added(spent: Floats) -> Fraction:
        return _largest_column(rows, group_of, spent, np.ones(len(rows), dtype=bool), pure=pure)

    def replaced(spent: Floats) -> Fraction:
        if not varying.any():
            return Fraction(0)
        if rows.width <= _PAIRED_CELLS and rows.width**2 * len(rows) <= _PAIR_WORK:
            return _largest_difference(rows, group_of, spent, varying, pure=pure)
        return _largest_column(rows, group_of, spent, varying, pure=pure) * (2 if pure or min(rows.values) >= 0 else 4)

    return largest_cost(budgets, np.isin(np.arange(len(budgets)), group_of[varying]), privacy, added, replaced)


def constant_rows(rows: SparseRows) -> Bools:
    """Rows whose value no replacement can change: every cell counts alike, or none counts."""
    _, values, row_of = rows.arrays
    lengths = np.diff(rows.starts)
    low, high = np.full(len(rows), np.inf), np.full(len(rows), -np.inf)
    np.minimum.at(low, row_of, values)
    np.maximum.at(high, row_of, values)
    return np.asarray((lengths == 0) | ((lengths == rows.width) & (low == high)))


def _largest_column(rows: SparseRows, group_of: Ints, budgets: Floats, counted: Bools, *, pure: bool) -> Fraction:
    columns, values, row_of = rows.arrays
    kept = counted[row_of]
    columns, row_of = columns[kept], row_of[kept]
    sizes = np.abs(values[kept]) if pure else values[kept] ** 2
    costs = np.bincount(columns, weights=sizes * budgets[group_of[row_of]], minlength=rows.width)
    slack = 4 * (len(rows) + 4) * _UNIT * float(costs.max())
    near = np.flatnonzero(costs >= costs.max() - slack)
    if len(near) * len(budgets) > 2**24:
        return Fraction(float(costs.max())) + Fraction(slack)
    place = np.full(rows.width, -1)
    place[near] = np.arange(len(near))
    chosen = place[columns] >= 0
    amounts = np.zeros((len(near), len(budgets)))
    np.add.at(amounts, (place[columns[chosen]], group_of[row_of[chosen]]), sizes[chosen])
    return _largest_exact(amounts, budgets, Fraction(float(costs.max())) + Fraction(slack))


def _largest_difference(rows: SparseRows, group_of: Ints, budgets: Floats, counted: Bools, *, pure: bool) -> Fraction:
    S = rows.dense()[counted]
    groups = group_of[counted]
    beta = budgets[groups]
    norms = beta @ (np.abs(S) if pure else S**2)
    if pure:
        costs = np.stack([beta @ np.abs(S - column[:, None]) for column in S.T])
    else:
        costs = norms[:, None] + norms - 2 * (S.T @ (beta[:, None] * S))
    slack = 16 * (len(rows) + 8) * _UNIT * float(norms.max())
    largest = max(float(costs.max()), 0.0)
    first, second = np.nonzero(np.triu(costs >= largest - slack, 1))
    bound = Fraction(largest) + Fraction(slack)
    if len(first) > _MOST_TIES or len(first) * len(budgets) > 2**24:
        return bound
    changes = np.abs(S[:, first] - S[:, second])
    amounts = np.zeros((len(budgets), len(first)))
    np.add.at(amounts, groups, changes if pure else changes**2)
    return _largest_exact(amounts.T, budgets, bound)


def _largest_exact(amounts: Floats, budgets: Floats, bound: Fraction) -> Fraction:
    """max over lines of sum_g amounts_g budgets_g, exactly; the bound where there are too many different lines."""
    lines = {line.tobytes(): line for line in np.ascontiguousarray(amounts)}
    if len(lines) > _MOST_TIES:
        return bound
    mantissas, exponents = np.frexp(budgets)
    low = int(exponents.min(initial=0))
    whole = [int(m) << (e - low) for m, e in zip(np.ldexp(mantissas, 53).tolist(), exponents.tolist(), strict=True)]
    sums = (sum(int(line[g]) * whole[g] for g in np.flatnonzero(line).tolist()) for line in lines.values())
    return Fraction(max(sums, default=0)) * Fraction(2) ** (low - 53)
