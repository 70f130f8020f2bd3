"""From coded rows to exact tables: each table counted by itself, or a few larger ones that are rolled up.

A table's cell is a mixed-radix number: for attributes i < j < k of sizes n it is (c_i n_j + c_j) n_k + c_k.
Compiled code counts a row into a small table in 0.5 ns [compiled.py]. Where it was not built numpy does, in 2 to 3 ns,
half of what one bincount over whole columns takes: rows are taken in blocks that fit the cache, indices are kept in the
smallest type, and tables that begin with the same attributes share that part of the index. It holds the interpreter's
lock, and so a second thread gains nothing there.

Every wanted table is a sum of cells of any table over more attributes. A greedy search packs the wanted
marginals into tables of at most a given number of cells; the limit is chosen by the measured cost of a row
against that of a cell. Or neighbouring attributes are bundled into one of at most 254 values, and the tables are
those of bundles: there may be more of them, but the index of four attributes takes one addition. A `Counter`
decides, as coded rows arrive, whether to keep them or to count them so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Bools, Ints, Marginal, keep_freed, position_rows
from hushcube.private.engines import compiled
from hushcube.private.engines.coding import Codes
from hushcube.private.engines.contract import ExactCounts, Wanted, attributes_of

Columns = Mapping[int, Codes]
"""Coded columns of equal length, by schema position."""
Sizes = Sequence[int]
Weights = Ints | None
"""What each row counts for; None: one."""

BLOCK: Final = 1 << 18
_EXACT: Final = 1 << 53  # integers up to this are exact as doubles
_LADDER: Final = tuple((np.iinfo(dtype).max, np.dtype(dtype)) for dtype in (np.uint8, np.uint16, np.uint32, np.int64))

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
_MOST_BUNDLED: Final = (
    1 << 9
)  # tables, from which bundles are not looked at: finding the largest ones takes their square
_SEARCH_ROWS: Final = 2  # Rows, for each wanted marginal and attribute, from which the search costs less than it saves
KEPT_BYTES: Final = 1 << 25  # rows beyond this are counted as they pass, where the tables can be held
HELD_CELLS: Final = 1 << 27
"""Cells that covering tables may take together: 1 GiB; more only where the rows would take still more."""
_CELL_BYTES: Final = 8


Tables = tuple[NDArray[np.int32], Ints]
"""Marginals of one length and shape, and the cells of their tables: (marginals, cells)."""


def count(columns: Columns, rows: int, sizes: Sizes, totals: Sequence[Tables], weights: Weights) -> None:
    """Add the rows to tables, or sum their weights, exactly: absolute values must sum to less than 2^63."""
    keep_freed()  # else the indices of each block cost as much as the counting
    if all(compiled.can_count(columns, tables) for _, tables in totals):
        for marginals, tables in totals:
            compiled.add(columns, rows, sizes, marginals, tables, weights)
        return
    every = (
        (tuple(table), total) for some, tables in totals for table, total in zip(some.tolist(), tables, strict=True)
    )
    ordered = sorted(every, key=lambda pair: pair[0])  # neighbours share leading attributes
    for start in range(0, rows, BLOCK):
        stop = min(rows, start + BLOCK)
        indices = _Indices({i: column[start:stop] for i, column in columns.items()}, sizes)
        times = None if weights is None else weights[start:stop]
        for table, total in ordered:
            index = indices.of(table)
            if total.size > stop - start:  # a pass over all cells would cost more than the rows
                np.add.at(total, index.astype(np.intp), 1 if times is None else times)
            elif times is None:
                total += np.bincount(index, minlength=total.size)
            else:
                total += _summed(index, times, total.size)


def _summed(index: Codes, times: Ints, cells: int) -> Ints:
    """Sums of one block of weights; bincount adds doubles, so large ones go through it in two halves of 32 bits."""
    if max(-int(times.min()), int(times.max())) <= _EXACT // BLOCK:
        return np.bincount(index, times, minlength=cells).astype(np.int64)
    high, low = (np.bincount(index, half, minlength=cells) for half in (times >> 32, times & 0xFFFFFFFF))
    summed: Ints = (high.astype(np.int64) << 32) + low.astype(np.int64)
    return summed


class _Indices:
    """The cell indices of one block of rows; remembers those of the last table's leading attributes."""

    def __init__(self, columns: Columns, sizes: Sizes) -> None:
        self._columns = columns
        self._sizes = sizes
        self._path: list[tuple[int, int, Codes]] = []
        self._scaled: list[dict[int, Codes]] = []
        self._typed: dict[tuple[int, str], Codes] = {}

    def of(self, table: Marginal) -> Codes:
        """The index of a table of at least one attribute."""
        shared = 0
        while shared < min(len(table), len(self._path)) and self._path[shared][0] == table[shared]:
            shared += 1
        del self._path[shared:], self._scaled[shared:]
        for attribute in table[shared:]:
            cells, index = self._sizes[attribute], self._columns[attribute]
            if self._path:
                size, cells = cells, cells * self._path[-1][1]
                scaled = self._scale(size, cells)
                index = scaled + self._column(attribute, scaled.dtype)
            self._path.append((attribute, cells, index))
            self._scaled.append({})
        return self._path[-1][2]

    def _column(self, attribute: int, dtype: np.dtype[Any]) -> Codes:
        """A column in the type of the sum it goes into: adding mixed types takes thrice as long."""
        key = attribute, dtype.char
        if key not in self._typed:
            self._typed[key] = self._columns[attribute].astype(dtype, copy=False)
        return self._typed[key]

    def _scale(self, size: int, cells: int) -> Codes:
        """The last index times `size`, in a type that holds every cell of the longer table."""
        known = self._scaled[-1]
        if size not in known:
            dtype = next(smallest for top, smallest in _LADDER if cells <= top)
            known[size] = np.multiply(self._path[-1][2], size, dtype=dtype)
        return known[size]


class RowCounts(ExactCounts):
    """Keeps the coded rows and counts what it is asked for, or sums their weights; `rows` is then their total."""

    def __init__(self, columns: Columns, rows: int, sizes: Sizes, weights: Weights = None) -> None:
        self.rows = rows if weights is None else int(weights.sum())
        self._kept = columns, rows, sizes
        self._weights = weights

    def tables(self, marginals: NDArray[np.int32]) -> Ints:
        """Count all of them in one pass."""
        shape = _shape(marginals, self._kept[2])
        if marginals.shape[1] == 0:
            return np.full((len(marginals), *shape), self.rows, dtype=np.int64)
        tables = np.zeros((len(marginals), math.prod(shape)), dtype=np.int64)
        count(*self._kept, [(marginals, tables)], self._weights)
        return tables.reshape(len(marginals), *shape)


def _shape(marginals: NDArray[np.int32], sizes: Sizes) -> Marginal:
    """The shape that tables of these marginals share; there may be no marginal."""
    if not len(marginals):
        return (0,) * int(marginals.shape[1])
    return tuple(sizes[i] for i in marginals[0].tolist()) or (1,)


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


class CoverCounts(ExactCounts):
    """Holds the covering tables, and sums their cells into what it is asked for."""

    def __init__(self, cover: Sequence[Marginal], sizes: Sizes, bundles: Sequence[Marginal] | None = None) -> None:
        by_cells = sorted((math.prod(sizes[i] for i in table), table) for table in cover if table)
        self._cover = [(table, np.zeros(cells, dtype=np.int64)) for cells, table in by_cells]
        self._sizes = sizes
        self._bundles: Sequence[Marginal] = [(i,) for i in range(len(sizes))] if bundles is None else bundles
        self._bundle_sizes = [math.prod(sizes[i] for i in bundle) for bundle in self._bundles]
        self._counted = [
            (position_rows(tuple(k for k, bundle in enumerate(self._bundles) if bundle[0] in table)), total[None])
            for table, total in self._cover
        ]
        self.rows = 0

    def add(self, columns: Columns, rows: int, weights: Weights = None) -> None:
        """Count some more rows, or sum their weights."""
        self.rows += rows if weights is None else int(weights.sum())
        used = {k for marginals, _ in self._counted for k in marginals.ravel().tolist()}
        joined = {k: self._joined(columns, bundle) for k, bundle in enumerate(self._bundles) if k in used}
        count(joined, rows, self._bundle_sizes, self._counted, weights)

    def _joined(self, columns: Columns, bundle: Marginal) -> Codes:
        """The positions of a bundle; they are bytes, where it has more than one attribute."""
        found = columns[bundle[0]]
        for i in bundle[1:]:
            found = np.multiply(found, self._sizes[i], dtype=np.uint8, casting="unsafe")
            np.add(found, columns[i], out=found, casting="unsafe")
        return found

    def tables(self, marginals: NDArray[np.int32]) -> Ints:
        """Roll up the smallest covering table of each marginal."""
        if not marginals.size:
            return np.full((len(marginals), *_shape(marginals, self._sizes)), self.rows, dtype=np.int64)
        inside = np.zeros((len(self._cover), len(self._sizes)), dtype=bool)
        for (table, _), row in zip(self._cover, inside, strict=True):
            row[list(table)] = True
        contained = np.logical_and.reduce(inside[:, marginals], axis=2)
        if not contained.any(axis=0).all():
            raise LookupError("a table was asked for that was not announced in `wanted`")
        places = contained.argmax(axis=0).tolist()
        return np.stack([self._roll_up(at, kept) for at, kept in zip(places, marginals.tolist(), strict=True)])

    def _roll_up(self, place: int, kept: Sequence[int]) -> Ints:
        table, total = self._cover[place]
        cells = total.reshape([self._sizes[i] for i in table])
        summed: Ints = cells.sum(axis=tuple(axis for axis, i in enumerate(table) if i not in kept))
        return summed


class Counter:
    """Takes coded rows in batches, returns counts.

    Without a cover (too many tables, or too large ones) all rows are kept, coded: one to four bytes a value. This is
    thought over at once where many are expected, and whenever they have doubled, so that memory is bounded by the size
    of the tables, not by the rows.
    """

    def __init__(self, wanted: Wanted, sizes: Sizes, expected_rows: int | None) -> None:
        self.rows = 0
        self._wanted = wanted
        self._sizes = sizes
        self._expected = expected_rows
        self._kept: list[tuple[Columns, int, Weights]] = []
        self._kept_bytes = 0
        self._enough = 0
        self._cover: CoverCounts | None = None

    def add(self, columns: Columns, rows: int, weights: Weights = None) -> None:
        """Take some more rows, to be counted, or their weights to be summed."""
        self.rows += rows
        if self._cover is not None:
            self._cover.add(columns, rows, weights)
            return
        self._kept.append((columns, rows, weights))
        self._kept_bytes += sum(array.nbytes for array in (*columns.values(), weights) if array is not None)
        if self._kept_bytes > self._enough and self._bytes_of(max(self._expected or 0, self.rows)) > KEPT_BYTES:
            self._decide(max(self._expected or 4 * self.rows, self.rows))
            self._enough = 2 * self._kept_bytes

    def finish(self) -> ExactCounts:
        """The counts of all rows."""
        if self._cover is None and not self._enough:
            self._decide(self.rows)
        if self._cover is not None:
            return self._cover
        used = list(self._kept[0][0]) if self._kept else attributes_of(self._wanted)
        nothing = np.zeros(0, dtype=np.uint8)
        joined = {i: np.concatenate([columns[i] for columns, *_ in self._kept] or [nothing]) for i in used}
        weights = [own for _, _, own in self._kept if own is not None]
        return RowCounts(joined, self.rows, self._sizes, np.concatenate(weights) if weights else None)

    def _bytes_of(self, rows: int) -> int:
        """What so many rows like those so far would take."""
        return self._kept_bytes * rows // max(self.rows, 1)

    def _decide(self, rows: int) -> None:
        """Cover when that is cheaper than counting each table from kept rows, or when there are many rows."""
        expected_bytes = self._bytes_of(rows)
        chosen = choose(self._wanted, self._sizes, rows, max(HELD_CELLS, expected_bytes // _CELL_BYTES))
        if chosen is None:
            return
        cells = [math.prod(self._sizes[i] for i in table) for group in self._wanted for table in group.tolist()]
        if expected_bytes <= KEPT_BYTES and chosen.cost > sum(rows * row_cost(n) + n for n in cells):
            return
        self._cover = CoverCounts(chosen.tables, self._sizes, chosen.bundles)
        for batch in self._kept:
            self._cover.add(*batch)
        self._kept.clear()
