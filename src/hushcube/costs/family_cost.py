"""What measurements cost one row, exactly: the only place that turns noise into privacy.

The noise on set B has budget beta_B: Laplace noise of rate beta_B (pure epsilon), or Gaussian noise of variance
1/(2 beta_B) (zCDP). A row that comes, goes or changes moves the measured numbers by a column of the strategy, or by a
difference of two columns; the cost is

    Laplace    sum_B beta_B ||change||_1            Gaussian    sum_B beta_B ||change||_2²

    add-remove    sum_B beta_B prod_B column_i                                             (every column alike)
    replace-one   max over the set D of attributes that differ, of sum_B beta_B change_B(D),
                  Gaussian and Fourier: change_B(D) = f [prod_B same_i - prod_{B-D} same_i prod_{B and D} differ_i],
                  f = 2 (squared L2) or 1 (L1 of +-1 rows); same, differ: products of equal and of different columns.

The total (B empty) cannot change when one row replaces another: it costs nothing and is published exactly.
Budgets are dyadic floats; sums are taken exactly, and maxima are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Final

import numpy as np

from hushcube.lattice.basis import Basis
from hushcube.lattice.family import Family
from hushcube.model.arrays import Bools, Floats
from hushcube.model.privacy import Neighbours, Privacy

_MOST_COUNTS: Final = 2**16
"""How many numbers of differing attributes, by size, are tried where attributes of one size are alike."""
_MOST_DIFFERENCES: Final = 2**20
"""How many sets D are tried; beyond that the sum of each set's own maximum bounds the cost."""
ROUND_UP: Final = Fraction(1) + Fraction(1, 2**40)
"""Float error of the maximisation is below 2^-44 of the sum of all terms."""


def person_row_cost(basis: Basis, measured: Family, budgets: Floats, privacy: Privacy) -> Fraction:
    """What each of a person's rows costs: the largest over the changes that the guarantee must cover."""
    pure = privacy.is_pure
    return max(row_cost(basis, measured, budgets, pure=pure, neighbours=change) for change in privacy.row_changes)


def row_cost(basis: Basis, measured: Family, budgets: Floats, *, pure: bool, neighbours: Neighbours) -> Fraction:
    """The exact cost of one row, in epsilon (pure) or rho; infinite budgets are free only where nothing can change."""
    if neighbours == "add-remove":
        if not np.isfinite(budgets).all():
            raise OverflowError("exact answers have no finite cost when rows are added or removed")
        return sum(
            (column(basis, batch.shape, pure=pure) * exact_sum(budgets[batch.ids]) for batch in measured.batches),
            Fraction(0),
        )
    varying = ~unchanged_by_replacing(measured)
    if not np.isfinite(budgets[varying]).all():
        raise OverflowError("exact answers have no finite cost when a row is replaced")
    spent = np.where(varying, budgets, 0.0)
    if basis.holds_cells:
        return 2 * exact_sum(spent)
    return Fraction(_largest_change(basis, measured, spent, pure=pure)) * ROUND_UP


def column(basis: Basis, shape: Sequence[int], *, pure: bool) -> Fraction:
    """||column||_1 or ||column||_2² of the set with the given sizes."""
    norm = basis.l1_column if pure else basis.l2_column
    if norm is None:
        raise ValueError(f"the {basis.name} basis is for Gaussian noise only")
    return math.prod((norm(n) for n in shape), start=Fraction(1))


def exact_sum(values: Floats) -> Fraction:
    """The sum of floats as a Fraction, without rounding.

    >>> exact_sum(np.array([0.5, 2.0**-60, 1.0])) == Fraction(3, 2) + Fraction(1, 2**60)
    True
    """
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
    same = {i: float(_same(basis, int(measured.sizes[i]))) for i in varying}
    differ = {i: float(basis.column_product(int(measured.sizes[i]))) for i in varying}
    # f[D] = sum_B budgets_B prod_{B-D} same prod_{B and D} differ, by one pass over each attribute
    f = np.zeros(2 ** len(varying))
    bit = {attribute: 1 << at for at, attribute in enumerate(varying)}
    for marginal, budget in zip(measured, budgets.tolist(), strict=True):
        if budget:
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
            same = math.prod(float(_same(basis, n)) for n in shape)
            mixed = math.prod(
                float(basis.column_product(n) if differs else _same(basis, n))
                for n, differs in zip(shape, pattern, strict=True)
            )
            result[pattern] = (1 if pure else 2) * (same - mixed)
    return result


def _same(basis: Basis, n: int) -> Fraction:
    return basis.l2_column(n)
