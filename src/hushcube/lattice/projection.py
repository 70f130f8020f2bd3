"""Between tables and coefficients, many times: the places of a family's coefficients are looked up once.

    coefficient_C = sum_{A >= C}  w_A / cells(A)  coefficient_C(table_A)  /  K_C(w)  [designs/lattice/answers.py]

All coefficients stand in one vector, all cells in another. Each cell of a table's Helmert transform has the number of
its coefficient: tables are a gather and an inverse transform, coefficients a transform and a counted sum. An iterative
method takes a step in the time of a few passes over the cells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hushcube.lattice import helmert
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.family import Batch, Family
from hushcube.lattice.variances import kernel
from hushcube.model.arrays import Bools, Floats, Ints

Ids = Ints


def combine(tables: Family, values: Sequence[Floats], weights: Floats, spaces: Family) -> Coefficients:
    """The coefficients of the consistent tables nearest to given ones: sum_A weights_A ||table_A - given_A||² is least.

    `values` holds one array (tables, *shape) for each batch of the family.
    """
    return Projection(tables, weights, spaces).coefficients(values)


class Projection:
    """The least-squares projection onto consistent tables, for one family, its weights and its residual spaces.

    >>> family = Family.of([(0,), (1,)], (2, 2))
    >>> to = Projection(family, np.ones(2), family.closure)
    >>> found = to.coefficients([np.array([[6.0, 2.0], [1.0, 5.0]])])
    >>> [table.round(9).tolist() for table in to.tables(found)]
    [[[5.5, 1.5], [1.5, 5.5]]]
    """

    def __init__(self, tables: Family, weights: Floats, spaces: Family) -> None:
        self.family, self.spaces = tables, spaces
        starts = np.zeros(len(spaces), np.int64)
        lengths = np.zeros(len(spaces), np.int64)
        self._blocks: list[tuple[slice, tuple[int, ...]]] = []
        end = 0
        for batch in spaces.batches:
            shape = tuple(n - 1 for n in batch.shape)
            size = int(np.prod(shape, dtype=np.int64))
            starts[batch.ids], lengths[batch.ids] = end + size * np.arange(len(batch.ids)), size
            self._blocks.append((slice(end, end + size * len(batch.ids)), (len(batch.ids), *shape)))
            end += size * len(batch.ids)
        self.length = end
        """How many coefficients there are."""
        order = np.concatenate([np.zeros(0, np.int64), *(batch.ids for batch in spaces.batches)])
        self._owners = np.repeat(order, lengths[order])
        shares = weights / tables.cells
        self._shares = tuple(shares[batch.ids] for batch in tables.batches)
        self._places: list[slice] = []
        at = 0
        for batch in tables.batches:
            self._places.append(slice(at, at + len(batch.ids) * batch.cells))
            at += len(batch.ids) * batch.cells
        self.cells = at
        """How many cells the tables have together."""
        indices = [_index(batch, spaces, starts, end).ravel() for batch in tables.batches]
        self._index = np.concatenate([np.zeros(0, np.int64), *indices])
        scale = self.each(kernel(MARGINAL, tables, weights, spaces))
        self._inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)

    def coefficients(self, values: Sequence[Floats]) -> Coefficients:
        """Those of the consistent tables nearest to the given ones: an array (tables, *shape) for each batch."""
        return self.unpack(self.nearest(self.join(values)))

    def tables(self, coefficients: Coefficients) -> tuple[Floats, ...]:
        """The tables with these coefficients, an array for each batch of the family."""
        return self.split(self.spread(self.pack(coefficients)))

    def nearest(self, cells: Floats) -> Floats:
        """`coefficients`, from the vector of all cells to the vector of all coefficients."""
        moved = np.empty(self.cells)
        for place, batch, share in zip(self._places, self.family.batches, self._shares, strict=True):
            tables = cells[place].reshape(len(batch.ids), *batch.shape)
            found = helmert.forward(tables, range(1, len(batch.shape) + 1)).reshape(len(batch.ids), -1)
            np.multiply(found, share[:, None], out=moved[place].reshape(len(batch.ids), -1))
        sums = np.bincount(self._index, moved, self.length + 1)
        return np.asarray(sums[:-1] * self._inverse, np.float64)

    def spread(self, coefficients: Floats) -> Floats:
        """`tables`, from the vector of all coefficients to the vector of all cells."""
        cells: Floats = np.append(coefficients, 0.0)[self._index]  # the last: coefficients of spaces that are not there
        for place, batch in zip(self._places, self.family.batches, strict=True):
            tables = cells[place].reshape(len(batch.ids), *batch.shape)
            cells[place] = helmert.inverse(tables, range(1, len(batch.shape) + 1)).ravel()
        return cells

    def each(self, values: Floats) -> Floats:
        """A number for each space, repeated for each of its coefficients."""
        repeated: Floats = values[self._owners]
        return repeated

    def join(self, values: Sequence[Floats]) -> Floats:
        """The vector of all cells."""
        return np.concatenate([np.zeros(0), *(np.asarray(v, np.float64).ravel() for v in values)])

    def split(self, cells: Floats) -> tuple[Floats, ...]:
        """An array (tables, *shape) for each batch; the inverse of `join`."""
        pairs = zip(self._places, self.family.batches, strict=True)
        return tuple(cells[place].reshape(len(batch.ids), *batch.shape) for place, batch in pairs)

    def pack(self, coefficients: Coefficients) -> Floats:
        """The vector of all coefficients."""
        return np.concatenate([np.zeros(0), *(np.asarray(b, np.float64).ravel() for b in coefficients.blocks)])

    def unpack(self, vector: Floats) -> Coefficients:
        """The inverse of `pack`."""
        return Coefficients(self.spaces, tuple(vector[place].reshape(shape) for place, shape in self._blocks))


def _index(batch: Batch, spaces: Family, starts: Ids, nowhere: int) -> Ids:
    """For each cell of the batch's transformed tables, the number of its coefficient."""
    index = np.full((len(batch.ids), *batch.shape), nowhere, np.int64)
    level: list[NDArray[np.int32]] = [np.zeros((0, k), np.int32) for k in range(len(batch.shape))]
    members = Family(spaces.sizes, [*level, batch.rows])  # keeps the batch's order, which is sorted
    for pair in members.inclusions(spaces):
        if pair.kept.ndim == 1:
            _fill(index, batch.shape, pair.kept, pair.big, starts[pair.small])
            continue
        for at, kept in enumerate(pair.kept):
            _fill(index, batch.shape, kept, pair.big[at : at + 1], starts[pair.small[at : at + 1]])
    return index


def _fill(index: Ids, shape: tuple[int, ...], kept: Bools, rows: Ids, starts: Ids) -> None:
    inside = tuple(n - 1 for n, keep in zip(shape, kept.tolist(), strict=True) if keep)
    numbers = np.arange(int(np.prod(inside, dtype=np.int64))).reshape(inside)
    block = (slice(None), *(slice(1, None) if keep else 0 for keep in kept.tolist()))
    index[block][rows] = starts.reshape(-1, *[1] * len(inside)) + numbers
