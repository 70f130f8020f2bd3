"""Which tables are counted: a few that contain all wanted ones, of attributes or of bundles of them.

Every wanted table is a sum of cells of any table over more attributes. A greedy search packs the wanted
marginals into tables of at most a given number of cells; the limit is chosen by the measured cost of a row
against that of a cell. Or neighbouring attributes are bundled into one of at most 254 values, and the tables are
those of bundles: there may be more of them, but the index of four attributes takes one addition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from hushcube.model.arrays import Bools, Marginal
from hushcube.private.engines import compiled
from hushcube.private.engines.contract import Wanted

Sizes = Sequence[int]

LIMITS: Final = (1, 1 << 10, 1 << 14, 1 << 17, 1 << 20)
"""Cells of a covering table that are tried; 1 merges nothing, only leaves out tables within wanted ones."""
# Nanoseconds: to count a row into a table of so many cells, to sum a cell; both measured, only their ratio matters.
_ROW_NS: Final = {
    "numpy": ((1 << 10, 1.8), (1 << 14, 2.3), (1 << 17, 3.2), (1 << 20, 9.0), (1 << 23, 15.0), (math.inf, 20.0)),
    "compiled": ((1 << 10, 0.6), (1 << 14, 0.8), (1 << 17, 2.0), (1 << 20, 5.0), (1 << 23, 9.0), (math.inf, 11.0)),
}
_CELL_NS: Final = 1.5
_JOIN_NS: Final = 0.2  # to take one more attribute into the index of a row: as much as a table saves by a bundle
_BUNDLE: Final = 254  # values of a bundle: those of an attribute whose codes are bytes
_MOST_BUNDLED: Final = 1 << 9  # tables beyond which bundles are not looked at: finding the largest takes their square
_SEARCH_ROWS: Final = 2  # Rows, for each wanted marginal and attribute, from which the search costs less than it saves


class Cover(NamedTuple):
    """Tables that contain every wanted one, what they cost in nanoseconds, and the bundles they are made of."""

    cost: float
    tables: list[Marginal]
    bundles: list[Marginal]


def choose(wanted: Wanted, sizes: Sizes, rows: int, held: int) -> Cover | None:
    """The cheapest cover found for so many rows; None where none is worth while.

    The search looks at every wanted marginal for every table it finds, so it must have rows to save on. A
    cover may have `held` cells in all.
    """
    if sum(map(len, wanted)) * len(sizes) * _SEARCH_ROWS > rows:
        return None
    members = members_of(wanted, len(sizes))
    found: list[Cover] = []
    bundles: list[Marginal] = [(i,) for i in range(len(sizes))]
    for limit in LIMITS:
        tables, used = greedy(members, sizes, limit)
        cells = [math.prod(sizes[i] for i in table) for table in tables]
        cost = sum(rows * row_cost(n) + (1 + times) * n * _CELL_NS for n, times in zip(cells, used, strict=True))
        if sum(cells) <= held:
            found.append(Cover(cost, tables, bundles))
    bundles = bundled(sizes, np.flatnonzero(members.any(axis=0)).tolist())
    tables = of_bundles(members, bundles)
    cells = [math.prod(sizes[i] for i in table) for table in tables]
    if tables and sum(cells) <= held:
        joined = sum(map(len, tables)) - sum(set(b) <= set(table) for table in tables for b in bundles)
        cost = sum(rows * row_cost(n) + (1 + len(members) / len(tables)) * n * _CELL_NS for n in cells)
        found.append(Cover(cost - rows * _JOIN_NS * (joined - len(sizes)), tables, bundles))
    return min(found, default=None)


def bundled(sizes: Sizes, used: Sequence[int]) -> list[Marginal]:
    """Neighbouring attributes, as many together as one byte can tell apart.

    >>> bundled((10, 10, 10, 2, 300, 15, 16), [0, 1, 2, 4, 5, 6])
    [(0, 1), (2,), (4,), (5, 6)]
    """
    found: list[list[int]] = []
    for i in used:
        if found and math.prod(sizes[k] for k in (*found[-1], i)) <= _BUNDLE:
            found[-1].append(i)
        else:
            found.append([i])
    return [tuple(bundle) for bundle in found]


def of_bundles(members: Bools, bundles: Sequence[Marginal]) -> list[Marginal]:
    """The largest tables that consist of the bundles of some wanted marginal; none where there are too many."""
    if not bundles:
        return []
    kinds = np.unique(np.stack([members[:, bundle].any(axis=1) for bundle in bundles], axis=1), axis=0)
    if len(kinds) > _MOST_BUNDLED:
        return []
    within = (kinds.astype(np.int64) @ ~kinds.T) == 0
    largest = kinds[within.sum(axis=1) == 1]
    return [tuple(i for bundle, kept in zip(bundles, kind, strict=True) if kept for i in bundle) for kind in largest]


def row_cost(cells: int) -> float:
    """Nanoseconds to count one row into a table: what grows is the cache that the table needs."""
    ladder = _ROW_NS["numpy" if compiled.kernel() is None else "compiled"]
    return next(cost for top, cost in ladder if cells <= top)


@np.errstate(all="ignore")  # a matrix product of single precision can raise flags that stand for nothing
def greedy(members: Bools, sizes: Sizes, limit: int) -> tuple[list[Marginal], list[int]]:
    """Tables that together contain every wanted marginal, and how many of those each was built for.

    `members` is (wanted, attributes). The largest uncovered marginal starts a table; then the attribute joins
    that brings most marginals nearest to being covered, while the table keeps within the limit.
    """
    log_sizes = np.log(np.asarray(sizes, dtype=float))
    order = np.lexsort((members @ log_sizes, members.sum(axis=1)))[::-1]
    left = members[order].astype(np.float32)
    tables: list[Marginal] = []
    used: list[int] = []
    while len(left):
        table = left[0] > 0
        while True:
            cells = math.prod(n for n, inside in zip(sizes, table, strict=True) if inside)
            absent = left @ ~table
            fits = ~table & (np.asarray(sizes) <= limit // cells)
            nearness = np.where(absent > 0, 8.0**-absent, 0) @ left * fits
            if not nearness.any():
                break
            table[int(nearness.argmax())] = True
        covered = absent == 0
        tables.append(tuple(map(int, np.flatnonzero(table))))
        used.append(int(covered.sum()))
        left = left[~covered]
    return tables, used


def members_of(wanted: Wanted, attributes: int) -> Bools:
    """Which attributes each wanted marginal has: (marginals, attributes)."""
    parts = [np.zeros((len(marginals), attributes), dtype=bool) for marginals in wanted]
    for part, marginals in zip(parts, wanted, strict=True):
        np.put_along_axis(part, marginals.astype(np.intp), True, axis=1)
    return np.unique(np.concatenate([np.zeros((0, attributes), dtype=bool), *parts]), axis=0)
