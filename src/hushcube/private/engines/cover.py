"""Counting a few larger tables and rolling them up: fewer passes over many rows.

Every wanted table is a sum of cells of any table over more attributes. A greedy search packs the wanted
marginals into tables of at most a given number of cells; the limit is chosen by the measured cost of a row
against that of a cell. A `Counter` decides, as coded rows arrive, whether to keep them or to count them so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Bools, Ints, Marginal
from hushcube.private.engines.contract import ExactCounts
from hushcube.private.engines.kernels import Columns, RowCounts, count

LIMITS: Final = (1, 1 << 10, 1 << 14, 1 << 17, 1 << 20)
"""Cells of a covering table that are tried; 1 merges nothing, only leaves out tables within wanted ones."""
# Nanoseconds: to count a row into a table of so many cells, to sum a cell; both measured, only their ratio matters.
_ROW_NS: Final = ((1 << 10, 1.8), (1 << 14, 2.3), (1 << 17, 3.2), (1 << 20, 9.0), (1 << 23, 15.0))
_FAR_ROW_NS: Final = 20.0
_CELL_NS: Final = 1.5
_SEARCH_ROWS: Final = 2
"""Rows, for each wanted marginal and attribute, from which the search costs less than it saves."""
Weights = Ints

KEPT_BYTES: Final = 1 << 25
"""Rows beyond this are counted as they pass, where the tables can be held."""
HELD_CELLS: Final = 1 << 27
"""Cells that covering tables may take together: 1 GiB; more only where the rows would take still more."""
_CELL_BYTES: Final = 8


def choose(
    wanted: Sequence[NDArray[np.int32]], sizes: Sequence[int], rows: int, held: int
) -> tuple[list[Marginal], float] | None:
    """The cheapest cover found for so many rows, and its cost in nanoseconds; None where none is worth while.

    The search looks at every wanted marginal for every table it finds, so it must have rows to save on. A
    cover may have `held` cells in all.
    """
    if sum(map(len, wanted)) * len(sizes) * _SEARCH_ROWS > rows:
        return None
    members = members_of(wanted, len(sizes))
    found: list[tuple[float, list[Marginal]]] = []
    for limit in LIMITS:
        tables, used = greedy(members, sizes, limit)
        cells = [math.prod(sizes[i] for i in table) for table in tables]
        cost = sum(rows * row_cost(n) + (1 + times) * n * _CELL_NS for n, times in zip(cells, used, strict=True))
        if sum(cells) <= held:
            found.append((cost, tables))
    if not found:
        return None
    cost, tables = min(found)
    return tables, cost


def row_cost(cells: int) -> float:
    """Nanoseconds to count one row into a table: what grows is the cache that the table needs."""
    return next((cost for top, cost in _ROW_NS if cells <= top), _FAR_ROW_NS)


def greedy(members: Bools, sizes: Sequence[int], limit: int) -> tuple[list[Marginal], list[int]]:
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


def members_of(wanted: Sequence[NDArray[np.int32]], attributes: int) -> Bools:
    """Which attributes each wanted marginal has: (marginals, attributes)."""
    parts = []
    for marginals in wanted:
        part = np.zeros((len(marginals), attributes), dtype=bool)
        np.put_along_axis(part, marginals.astype(np.intp), True, axis=1)
        parts.append(part)
    return np.unique(np.concatenate(parts), axis=0) if parts else np.zeros((0, attributes), dtype=bool)


class CoverCounts(ExactCounts):
    """Holds the covering tables, and sums their cells into what it is asked for."""

    def __init__(self, cover: Sequence[Marginal], sizes: Sequence[int]) -> None:
        by_cells = sorted((math.prod(sizes[i] for i in table), table) for table in cover if table)
        # Counted in the order of their attributes (shared prefixes), looked up in the order of their cells.
        self._cover = [table for _, table in by_cells]
        self._totals = [np.zeros(cells, dtype=np.int64) for cells, _ in by_cells]
        self._order = sorted(range(len(by_cells)), key=self._cover.__getitem__)
        self._sizes = sizes
        self._rows = 0

    def add(self, columns: Columns, rows: int, weights: Ints | None = None) -> None:
        """Count some more rows, or sum their weights."""
        self._rows += rows if weights is None else int(weights.sum())
        tables = [self._cover[i] for i in self._order]
        count(columns, rows, self._sizes, tables, [self._totals[i] for i in self._order], weights)

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return self._rows

    def tables(self, marginals: NDArray[np.int32]) -> Ints:
        """Roll up the smallest covering table of each marginal."""
        k = marginals.shape[1]
        if k == 0 or not len(marginals):
            shape = tuple(self._sizes[i] for i in marginals[0]) if len(marginals) else (0,) * k
            return np.full((len(marginals), *(shape or (1,))), self._rows, dtype=np.int64)
        inside = np.zeros((len(self._cover), len(self._sizes)), dtype=bool)
        for table, row in zip(self._cover, inside, strict=True):
            row[list(table)] = True
        contained = np.logical_and.reduce(inside[:, marginals], axis=2)
        if not contained.any(axis=0).all():
            raise LookupError("a table was asked for that was not announced in `wanted`")
        return np.stack(
            [self._roll_up(int(contained[:, m].argmax()), set(marginals[m].tolist())) for m in range(len(marginals))]
        )

    def _roll_up(self, place: int, kept: set[int]) -> Ints:
        table = self._cover[place]
        cells = self._totals[place].reshape([self._sizes[i] for i in table])
        summed: Ints = cells.sum(axis=tuple(axis for axis, i in enumerate(table) if i not in kept))
        return summed


class Counter:
    """Takes coded rows in batches, returns counts.

    Without a cover (too many tables, or too large ones) all rows are kept, coded: one to four bytes a value. This is
    thought over whenever they have doubled, so that memory is bounded by the size of the tables, not by the rows.
    """

    def __init__(self, wanted: Sequence[NDArray[np.int32]], sizes: Sequence[int], expected_rows: int | None) -> None:
        self.rows = 0
        self._wanted = wanted
        self._sizes = sizes
        self._expected = expected_rows
        self._kept: list[tuple[Columns, int, Weights | None]] = []
        self._kept_bytes = 0
        self._enough = KEPT_BYTES
        self._cover: CoverCounts | None = None

    def add(self, columns: Columns, rows: int, weights: Weights | None = None) -> None:
        """Take some more rows, to be counted, or their weights to be summed."""
        self.rows += rows
        if self._cover is not None:
            self._cover.add(columns, rows, weights)
            return
        self._kept.append((columns, rows, weights))
        arrays = [*columns.values(), *([] if weights is None else [weights])]
        self._kept_bytes += sum(array.nbytes for array in arrays)
        if self._kept_bytes > self._enough:
            self._decide(max(self._expected or 4 * self.rows, self.rows))
            self._enough = 2 * self._kept_bytes

    def finish(self) -> ExactCounts:
        """The counts of all rows."""
        if self._cover is None and self._enough == KEPT_BYTES:
            self._decide(self.rows)
        if self._cover is not None:
            return self._cover
        used = list(self._kept[0][0]) if self._kept else sorted({int(i) for m in self._wanted for i in np.unique(m)})
        joined = {
            i: np.concatenate([columns[i] for columns, *_ in self._kept]) if self._kept else np.zeros(0, dtype=np.uint8)
            for i in used
        }
        weights = [own for _, _, own in self._kept if own is not None]
        return RowCounts(joined, self.rows, self._sizes, np.concatenate(weights) if weights else None)

    def _decide(self, rows: int) -> None:
        """Cover when that is cheaper than counting each table from kept rows, or when there are many rows."""
        expected_bytes = self._kept_bytes * rows // max(self.rows, 1)
        chosen = choose(self._wanted, self._sizes, rows, max(HELD_CELLS, expected_bytes // _CELL_BYTES))
        if chosen is None:
            return
        cover, cost = chosen
        cells = [math.prod(self._sizes[i] for i in table) for group in self._wanted for table in group.tolist()]
        if self._kept_bytes <= KEPT_BYTES and cost > sum(rows * row_cost(n) + n for n in cells):
            return
        self._cover = CoverCounts(cover, self._sizes)
        for columns, some, weights in self._kept:
            self._cover.add(columns, some, weights)
        self._kept.clear()
