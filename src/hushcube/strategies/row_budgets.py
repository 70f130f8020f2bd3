"""Optimal budgets for the rows of any matrix, up to scale, for weights s of their variances in the error.

    closed form        where groups satisfy Definition 3.1 and column weights prove it optimal  [strategies/grouping.py]
    convex program     (1)-(3) otherwise                                                   [strategies/search/convex.py]
    safe groups        the closed form with C_r = the largest entry of a group, where (1)-(3) would be too large

Budgets are scaled afterwards to what they exactly cost.                                             [costs/row_cost.py]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from hushcube.model.arrays import Floats, Ints
from hushcube.model.privacy import Privacy
from hushcube.model.sparse_rows import SparseRows
from hushcube.strategies import grouping
from hushcube.strategies.search import convex

How = Literal["uniform", "closed form", "convex program", "safe groups"]

_MOST_ENTRIES: Final = 2**24
"""Of the convex program's matrix."""
_PAIRED_CELLS: Final = 64
"""Under replace-one all pairs of so many cells are constraints; beyond, the cells themselves, as in Proposition 3.1."""


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
    pure = privacy.is_pure
    groups, A = _find(rows), constraints(rows, privacy)
    if grouping.is_optimal(rows, groups, s, A, pure=pure, paired=_paired(rows, privacy)):
        return Shares(grouping.closed_form_budgets(groups, s, pure=pure), groups.group_of, "closed form")
    if A.size > _MOST_ENTRIES:
        return Shares(grouping.closed_form_budgets(groups, s, pure=pure), groups.group_of, "safe groups")
    return Shares(convex.minimise(s, A, 2 if pure else 1).eta, np.arange(len(rows)), "convex program")


@lru_cache(maxsize=8)
def _find(rows: SparseRows) -> grouping.Grouping:
    return grouping.find(rows)


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
