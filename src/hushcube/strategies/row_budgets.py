"""Optimal budgets for the rows of any matrix, up to scale, for weights s of their variances in the error.

    closed form        where groups satisfy Definition 3.1 and column weights prove it optimal
    convex program     (1)-(3) otherwise                                                   [strategies/search/convex.py]
    safe groups        the closed form with C_r = the largest entry of a group, where (1)-(3) would be too large

Budgets are scaled afterwards to what they exactly cost.                                             [costs/row_cost.py]
Rows may share a budget in groups, which satisfy Definition 3.1 of Yaroslavtsev et al. 2013 if within each group r

    rows are disjoint       no column has two non-zero entries
    norms are bounded       every column has one, of the same magnitude C_r.

Then every column costs sum_r C_r eta_r, and the closed form of Corollary 3.3 applies to the groups' sums s_r of s.
It is the optimum over all budgets of rows if, and only if, column weights mu >= 0 exist with

    sum_{j in row i} mu_j = s_i / s_r          for every row i of every group r,

which are multipliers of (1)-(3). Lemma 3.2 overlooks this: it asks only for equal s_i within a group, and is false for
groups such as {1,2},{3} | {1},{2},{3}, whose rows cannot all have equal weight. Weights are sought by raking; what they
prove is checked by duality, so a failure costs nothing but the convex program.            [strategies/search/convex.py]
Where Definition 3.1 fails, C_r is the largest magnitude in the group, never one read off a single row: the constraint
sum_r C_r eta_r <= 1 is then safe, if not optimal.

T = sum_q a_q q q^T over all answers q of a workload, as rows over one table's cells: the error is tr(T Cov(x)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from hushcube.designs.matrix.row_space import agreement, agreement_masks, positions
from hushcube.designs.request import Request
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.form import Form, RangeTable
from hushcube.model.noise import Law, law_of
from hushcube.model.privacy import Privacy
from hushcube.model.queries import QueryTable, SparseRows
from hushcube.strategies.search import convex
from hushcube.strategies.search.convex import dual_value, feasible

_MOST_WORK: Final = 2**30
"""Places looked at by the greedy search; matrices that would need more get a group for each row."""
_SWEEPS: Final = 200
_CLOSED: Final = 1e-10  # the relative duality gap up to which the closed form counts as optimal
How = Literal["uniform", "closed form", "convex program", "safe groups"]
_MOST_ENTRIES: Final = 2**24  # of the convex program's matrix
_PAIRED_CELLS: Final = 64
"""Under replace-one all pairs of so many cells are constraints; beyond, the cells themselves, as in Proposition 3.1."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """The group of each row, and the largest magnitude C_r in each group."""

    group_of: Ints
    C: Floats
    holds: bool
    """Whether Definition 3.1 holds."""

    def __len__(self) -> int:
        return len(self.C)


@lru_cache(maxsize=8)
def find(rows: SparseRows) -> Grouping:
    """Groups by the greedy method, rows in the order given and then, if that fails, the longest first.

    >>> rows = SparseRows.of([[1, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 0]])
    >>> greedy(rows, range(4)).tolist(), find(rows).group_of.tolist(), find(rows).holds
    ([0, 0, 1, 2], [0, 1, 0, 1], True)
    """
    first = verified(rows, greedy(rows, range(len(rows))))
    if first.holds:
        return first
    second = verified(rows, greedy(rows, np.argsort(-np.diff(rows.starts), kind="stable").tolist()))
    return second if second.holds or len(second) < len(first) else first


def greedy(rows: SparseRows, order: Sequence[int]) -> Ints:
    """Each row joins the first group of its magnitude that it is disjoint from; groups are numbered by first rows."""
    columns, values, _ = rows.arrays
    taken = np.zeros((8, rows.width), dtype=bool)
    magnitudes: list[float] = []
    group_of = np.arange(len(rows))
    work = 0
    for i in order:
        part = slice(rows.starts[i], rows.starts[i + 1])
        sizes = np.abs(values[part])
        alike = len(sizes) > 0 and bool((sizes == sizes[0]).all())
        magnitude = float(sizes[0]) if alike else -1.0 - i  # a row of several magnitudes stays alone
        same = np.flatnonzero(np.array(magnitudes) == magnitude)
        work += len(same) * max(len(sizes), 1)
        if work > _MOST_WORK:
            return np.arange(len(rows))
        free = same[~taken[np.ix_(same, columns[part])].any(axis=1)]
        if len(free):
            chosen = int(free[0])
        else:
            chosen = len(magnitudes)
            magnitudes.append(magnitude)
            if chosen == len(taken):
                taken = np.concatenate((taken, np.zeros_like(taken)))
        taken[chosen, columns[part]] = True
        group_of[i] = chosen
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(g, len(numbers)) for g in group_of.tolist()])


def verified(rows: SparseRows, group_of: Ints) -> Grouping:
    """The safe C_r of any groups, and whether they satisfy Definition 3.1."""
    columns, values, row_of = rows.arrays
    groups = int(group_of.max()) + 1
    C = np.zeros(groups)
    np.maximum.at(C, group_of[row_of], np.abs(values))
    alike = bool((np.abs(values) == C[group_of[row_of]]).all())
    holders = group_of[row_of] * rows.width + columns
    once = len(holders) == groups * rows.width and len(np.unique(holders)) == len(holders)
    return Grouping(group_of, C, alike and once)


def closed_form_budgets(grouping: Grouping, s: Floats, law: Law) -> Floats:
    """Corollary 3.3 for the groups' sums of s, given to each row; safe to scale up where Definition 3.1 fails."""
    sums = np.bincount(grouping.group_of, weights=s, minlength=len(grouping)).astype(np.float64)
    return np.asarray(law.best_budgets(sums, grouping.C ** (3 - law.power))[grouping.group_of])


def is_optimal(rows: SparseRows, grouping: Grouping, s: Floats, A: Floats, law: Law, *, paired: bool = False) -> bool:
    """Whether the closed form is proven to be the optimum of (1)-(3) for these rows.

    Each line of `A` holds what a unit of each row's budget costs in a column of S: |S|^T, or (S²)^T for Gaussian noise.
    Where lines are pairs of columns (replace-one), equal weights of the tight ones are tried instead of raking.
    """
    if not grouping.holds or not (s > 0).all():
        return False
    p = law.power
    eta, value = feasible(s, A, p, closed_form_budgets(grouping, s, law))
    if paired:
        weighted = A[A @ eta >= 1 - 1e-9].mean(axis=0)
    else:
        columns, values, row_of = rows.arrays
        mu = column_weights(rows, grouping, s)
        weighted = np.bincount(row_of, weights=np.abs(values) ** (3 - p) * mu[columns], minlength=len(rows))
    return value <= dual_value(s, weighted, p) * (1 + _CLOSED)


def column_weights(rows: SparseRows, grouping: Grouping, s: Floats) -> Floats:
    """Column weights with sum_{j in row i} mu_j = s_i / s_r as nearly as raking finds them, from equal weights."""
    columns, _, row_of = rows.arrays
    row_at = np.zeros((len(grouping), rows.width), dtype=np.int64)
    row_at[grouping.group_of[row_of], columns] = row_of
    sums = np.bincount(grouping.group_of, weights=s, minlength=len(grouping))
    wanted = s / sums[grouping.group_of]
    mu = np.full(rows.width, 1 / rows.width)
    for _ in range(_SWEEPS):
        before = mu
        for holder in row_at:
            mass = np.bincount(holder, weights=mu, minlength=len(rows))
            mu = mu * (wanted[holder] / np.maximum(mass[holder], 1e-300))
        if np.abs(mu - before).max() <= 1e-15:
            break
    return np.asarray(mu / mu.sum())


@dataclass(frozen=True, eq=False)
class Shares:
    """Budgets of the rows up to scale, the groups that share one, and how they were found."""

    beta: Floats
    group_of: Ints
    how: How

    @classmethod
    def uniform(cls, rows: int) -> Shares:
        """One budget for all rows."""
        return cls(np.ones(rows), np.zeros(rows, np.int64), "uniform")


def optimal(rows: SparseRows, s: Floats, privacy: Privacy) -> Shares:
    """The budgets that make sum_i s_i variance_i least for what one row of data may cost; every s_i is positive."""
    law, groups, A = law_of(privacy), find(rows), constraints(rows, privacy)
    is_proven = is_optimal(rows, groups, s, A, law, paired=_paired(rows, privacy))
    if is_proven or A.size > _MOST_ENTRIES:
        how: How = "closed form" if is_proven else "safe groups"
        return Shares(closed_form_budgets(groups, s, law), groups.group_of, how)
    return Shares(convex.minimise(s, A, law.power).eta, np.arange(len(rows)), "convex program")


@lru_cache(maxsize=2)
def constraints(rows: SparseRows, privacy: Privacy) -> Floats:
    """What a unit of each row's budget costs for each column or, under replace-one, pair of columns that may matter."""
    columns = rows.dense().T
    if _paired(rows, privacy):
        first, second = np.triu_indices(rows.width, 1)
        differences = columns[first] - columns[second]
        columns = differences if privacy.total_is_public else np.concatenate([differences, columns])
    return convex.distinct(np.abs(columns) if privacy.is_pure else columns**2)


def _paired(rows: SparseRows, privacy: Privacy) -> bool:
    return privacy.neighbours == "replace-one" and rows.width <= _PAIRED_CELLS


def energies(request: Request, carrier: Marginal) -> Floats:
    """T over the carrier's cells: two cells share the marginals on whose attributes they agree."""
    schema, workload = request.schema, request.workload
    alike = agreement_masks(schema, carrier)
    shared = np.zeros(1 << sum(schema.sizes[i] > 1 for i in carrier))
    for A, weight in zip(workload.marginals, workload.weights, strict=True):
        shared[agreement(schema, carrier, A)] += weight
    for bit in range(len(shared).bit_length() - 1):  # agreeing on more is agreeing on less
        pairs = shared.reshape(-1, 2, 1 << bit)
        pairs[:, 1] += pairs[:, 0]
    T = shared[alike]
    for form, weight in request.weighted_forms:
        place = positions(schema, carrier, form.marginal)
        T += weight * form_gram(form)[np.ix_(place, place)]
    return np.asarray(T)


def form_gram(form: Form) -> Floats:
    """sum_q q q^T over the answers of a form, on its carrier's cells."""
    if isinstance(form, QueryTable):
        rows = form.rows.dense()
        return np.asarray(rows.T @ rows)
    if not isinstance(form, RangeTable):
        raise TypeError(type(form).__name__)
    result = np.ones((1, 1))
    for size, (starts, ends) in zip(form.carrier_shape, form.intervals, strict=True):
        corners = np.zeros((size + 1, size + 1))  # a sum from a to b adds one to the square [a, b) x [a, b)
        for first, second, sign in ((starts, starts, 1), (ends, ends, 1), (starts, ends, -1), (ends, starts, -1)):
            np.add.at(corners, (first, second), sign)
        result = np.kron(result, corners.cumsum(axis=0).cumsum(axis=1)[:size, :size])
    return result
