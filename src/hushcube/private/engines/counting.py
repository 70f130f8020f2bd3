"""From coded rows to exact tables: each table counted by itself, or a few larger ones that are rolled up.

A table's cell is a mixed-radix number: for attributes i < j < k of sizes n it is (c_i n_j + c_j) n_k + c_k.
Compiled code counts a row into a small table in 0.5 ns [compiled.py]. Where it was not built numpy does, in 2 to 3 ns,
half of what one bincount over whole columns takes: rows are taken in blocks that fit the cache, indices are kept in the
smallest type, and tables that begin with the same attributes share that part of the index. It holds the interpreter's
lock, and so a second thread gains nothing there.

A `Counter` decides, as coded rows arrive, whether to keep them and count each table when it is asked for, or to count
them into covering tables as they pass [covers.py].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Ints, Marginal, keep_freed, position_rows
from hushcube.private.engines import compiled
from hushcube.private.engines.coding import Codes
from hushcube.private.engines.compiled import Tables
from hushcube.private.engines.contract import ExactCounts, Wanted, attributes_of
from hushcube.private.engines.covers import Sizes, choose, row_cost

Columns = Mapping[int, Codes]
"""Coded columns of equal length, by schema position."""
Weights = Ints | None
"""What each row counts for; None: one."""

BLOCK: Final = 1 << 18
_EXACT: Final = 1 << 53  # integers up to this are exact as doubles
_LADDER: Final = tuple((np.iinfo(dtype).max, np.dtype(dtype)) for dtype in (np.uint8, np.uint16, np.uint32, np.int64))

KEPT_BYTES: Final = 1 << 25  # rows beyond this are counted as they pass, where the tables can be held
HELD_CELLS: Final = 1 << 27
"""Cells that covering tables may take together: 1 GiB; more only where the rows would take still more."""
_CELL_BYTES: Final = 8
_COPIED_CELLS: Final = 1 << 22  # of covering tables that each thread has for itself


class Totals:
    """Tables that rows are added to, by compiled code if it is there."""

    def __init__(self, every: Sequence[Tables], sizes: Sizes) -> None:
        self._every, self._sizes = every, sizes
        self._target = None if compiled.kernel() is None else compiled.Target(every, sizes)

    def add(self, columns: Columns, rows: int, weights: Weights = None) -> None:
        """Add rows, or their weights, exactly: absolute values must sum to less than 2^63."""
        keep_freed()  # else the indices of each block cost as much as the counting
        if self._target is None or not self._target.add(columns, rows, weights):
            self._add(columns, rows, weights)

    def _add(self, columns: Columns, rows: int, weights: Weights) -> None:
        """By numpy."""
        every = [pair for marginals, tables in self._every for pair in zip(marginals.tolist(), tables, strict=True)]
        ordered = sorted(every, key=lambda pair: pair[0])  # neighbours share leading attributes
        for start in range(0, rows, BLOCK):
            stop = min(rows, start + BLOCK)
            indices = _Indices({i: column[start:stop] for i, column in columns.items()}, self._sizes)
            times = None if weights is None else weights[start:stop]
            for table, total in ordered:
                index = indices.of(tuple(table))
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
        self._columns, self._rows, self._sizes, self._weights = columns, rows, sizes, weights

    def tables(self, marginals: NDArray[np.int32]) -> Ints:
        """Count all of them in one pass."""
        shape = _shape(marginals, self._sizes)
        if marginals.shape[1] == 0:
            return np.full((len(marginals), *shape), self.rows, dtype=np.int64)
        tables = np.zeros((len(marginals), math.prod(shape)), dtype=np.int64)
        Totals([(marginals, tables)], self._sizes).add(self._columns, self._rows, self._weights)
        return tables.reshape(len(marginals), *shape)


def _shape(marginals: NDArray[np.int32], sizes: Sizes) -> Marginal:
    """The shape that tables of these marginals share; there may be no marginal."""
    if not len(marginals):
        return (0,) * int(marginals.shape[1])
    return tuple(sizes[i] for i in marginals[0].tolist()) or (1,)


class CoverCounts(ExactCounts):
    """Holds the covering tables, and sums their cells into what it is asked for."""

    def __init__(self, cover: Sequence[Marginal], sizes: Sizes, bundles: Sequence[Marginal] | None = None) -> None:
        by_cells = sorted((math.prod(sizes[i] for i in table), table) for table in cover if table)
        self._tables = [table for _, table in by_cells]
        self._cells = [cells for cells, _ in by_cells]
        self._sizes = sizes
        self._bundles: Sequence[Marginal] = [(i,) for i in range(len(sizes))] if bundles is None else bundles
        self._of_bundles = [tuple(k for k, b in enumerate(self._bundles) if b[0] in table) for table in self._tables]
        self._used = sorted({k for table in self._of_bundles for k in table})
        self._copies: list[list[Ints]] = []
        self._free: list[Totals] = []
        self._lock, self._turn = Lock(), Lock()
        self.rows = 0

    def add(self, columns: Columns, rows: int, weights: Weights = None) -> None:
        """Count some more rows, or sum their weights; threads have small tables of their own, else they take turns."""
        joined = {k: self._joined(columns, self._bundles[k]) for k in self._used}
        with self._turn if sum(self._cells) > _COPIED_CELLS else nullcontext():
            totals = self._taken()
            totals.add(joined, rows, weights)
            with self._lock:
                self._free.append(totals)
                self.rows += rows if weights is None else int(weights.sum())

    def _taken(self) -> Totals:
        """Tables that no other thread adds to."""
        with self._lock:
            if self._free:
                return self._free.pop()
            self._copies.append([np.zeros(cells, dtype=np.int64) for cells in self._cells])
            every = zip(map(position_rows, self._of_bundles), self._copies[-1], strict=True)
            sizes = [math.prod(self._sizes[i] for i in bundle) for bundle in self._bundles]
            return Totals([(marginals, own[None]) for marginals, own in every], sizes)

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
        inside = np.zeros((len(self._tables), len(self._sizes)), dtype=bool)
        for table, row in zip(self._tables, inside, strict=True):
            row[list(table)] = True
        contained = np.logical_and.reduce(inside[:, marginals], axis=2)
        if not contained.any(axis=0).all():
            raise LookupError("a table was asked for that was not announced in `wanted`")
        places = contained.argmax(axis=0).tolist()
        return np.stack([self._roll_up(at, kept) for at, kept in zip(places, marginals.tolist(), strict=True)])

    def _roll_up(self, place: int, kept: Sequence[int]) -> Ints:
        table, shape = self._tables[place], [self._sizes[i] for i in self._tables[place]]
        away = tuple(axis for axis, i in enumerate(table) if i not in kept)
        parts = [copy[place].reshape(shape).sum(axis=away) for copy in self._copies]
        return np.asarray(sum(parts, np.zeros([self._sizes[i] for i in kept], np.int64)))


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
        self._lock = Lock()

    def add(self, columns: Columns, rows: int, weights: Weights = None) -> None:
        """Take some more rows, to be counted, or their weights to be summed; several threads may."""
        with self._lock:
            self.rows += rows
            if self._cover is None:
                self._keep(columns, rows, weights)
                return
        self._cover.add(columns, rows, weights)

    def _keep(self, columns: Columns, rows: int, weights: Weights) -> None:
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
