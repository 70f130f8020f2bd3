"""What the rows of any integer matrix cost one person's row of data, exactly or rounded up.

Row i of S has noise of budget beta_i. A row of data that comes or goes moves the measured numbers by a column of S, one
that changes by a difference of two columns; the cost is

    Laplace   sum_i beta_i |change_i|         Gaussian   sum_i beta_i change_i²           [as in costs/family_cost.py]

    add-remove     max over the columns
    replace-one    max over the pairs of columns, where they can all be looked at; beyond, twice the largest column
                   (four times for squares, where columns may point in opposite directions)

Floats find the columns or pairs that may be the largest, with a rigorous bound of their rounding; exact sums of dyadic
floats decide among them. Where too many are as good as equal, the bound of the rounding is added instead. So the cost
is never understated.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.model.privacy import Neighbours, Privacy
from hushcube.model.queries import SparseRows

_PAIRED_CELLS: Final = 1024
_PAIR_WORK: Final = 2**28
"""Entries of differences of columns that are looked at; beyond, the bound is taken."""
_MOST_TIES: Final = 2**12
_UNIT: Final = 2.0**-53


def row_cost(rows: SparseRows, group_of: Ints, budgets: Floats, privacy: Privacy) -> Fraction:
    """The cost of one row under budgets of groups of rows, in epsilon (pure) or rho."""
    pure = privacy.is_pure
    return max(_cost(rows, group_of, budgets, change, pure=pure) for change in privacy.row_changes)


def _cost(rows: SparseRows, group_of: Ints, budgets: Floats, change: Neighbours, *, pure: bool) -> Fraction:
    beta = budgets[group_of]
    if change == "add-remove":
        if not np.isfinite(beta).all():
            raise OverflowError("exact answers have no finite cost when rows are added or removed")
        return _largest_column(rows, group_of, budgets, np.ones(len(rows), dtype=bool), pure=pure)
    varying = ~constant_rows(rows)
    if not np.isfinite(beta[varying]).all():
        raise OverflowError("exact answers have no finite cost when a row is replaced")
    if not varying.any():
        return Fraction(0)
    if rows.width <= _PAIRED_CELLS and rows.width**2 * len(rows) <= _PAIR_WORK:
        return _largest_difference(rows, group_of, np.where(np.isfinite(budgets), budgets, 0.0), varying, pure=pure)
    column = _largest_column(rows, group_of, np.where(np.isfinite(budgets), budgets, 0.0), varying, pure=pure)
    return column * (2 if pure or min(rows.values) >= 0 else 4)


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
    largest = 0
    for line in lines.values():
        used = np.flatnonzero(line).tolist()
        largest = max(largest, sum(int(line[g]) * whole[g] for g in used))
    return Fraction(largest) * Fraction(2) ** (low - 53)
