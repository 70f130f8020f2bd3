"""Helmert coefficients of residual spaces, and least squares between them and tables.

    coefficient_C = sum_{A >= C}  w_A / cells(A)  coefficient_C(table_A)  /  K_C(w)   [designs/lattice/design.py]

For iterative methods the places of a family's coefficients are looked up once: all coefficients stand in one vector,
all cells in another. Each cell of a table's Helmert transform has the number of its coefficient: tables are a gather
and an inverse transform, coefficients a transform and a counted sum. A step takes a few passes over the cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from hushcube.lattice import helmert
from hushcube.lattice.basis import MARGINAL, kernel
from hushcube.lattice.family import Batch, Family, Inclusion, Rows
from hushcube.model.arrays import Bools, Floats, Ints

Numbers = Ints | Floats


@dataclass(frozen=True, eq=False)
class Coefficients:
    """For each batch of a family's sets, an array (sets, rows of the basis along each axis)."""

    spaces: Family
    blocks: tuple[Numbers, ...]

    @cached_property
    def _places(self) -> tuple[Ints, Ints]:
        """In which batch and in which row of it each set is kept."""
        places = np.empty((2, len(self.spaces)), np.int64)
        for number, batch in enumerate(self.spaces.batches):
            places[0, batch.ids], places[1, batch.ids] = number, np.arange(len(batch.ids))
        return places[0], places[1]

    def gather(self, rows: Rows) -> Numbers | None:
        """The blocks of sets of one shape, in the given order; None where the family lacks them."""
        ids = self.spaces.find(rows)
        if not len(ids) or ids[0] < 0:
            return None
        batch_of, row_of = self._places
        return np.asarray(self.blocks[batch_of[ids[0]]][row_of[ids]])

    def add(self, ids: Ints, values: Floats) -> None:
        """Add values (one array a set, sets of one shape, repetitions allowed) to the blocks."""
        batch_of, row_of = self._places
        block, rows = self.blocks[batch_of[ids[0]]], row_of[ids]
        if len(rows) == 1:
            block[rows] += values
            return
        order = np.argsort(rows, kind="stable")
        first = np.flatnonzero(np.diff(rows[order], prepend=-1))
        block[rows[order][first]] += np.add.reduceat(values[order], first, axis=0)

    @classmethod
    def zeros(cls, spaces: Family) -> Coefficients:
        """Of all spaces, to add to."""
        return cls(spaces, tuple(np.zeros((len(b.ids), *(n - 1 for n in b.shape))) for b in spaces.batches))

    def add_tables(self, family: Family, tables: Floats, shares: Floats, inverse: Floats) -> None:
        """Add what the tables of a family of one shape say of each space, times their shares, over its scale."""
        found = helmert.forward(tables, range(1, tables.ndim))
        for pair in family.inclusions(self.spaces):
            if pair.kept.ndim == 1:
                chosen = found[(pair.big, *_places(pair.kept.tolist()))]
                factor = (shares[pair.big] * inverse[pair.small]).reshape(-1, *[1] * (chosen.ndim - 1))
                self.add(pair.small, chosen * factor)
                continue
            for big, small, kept in zip(pair.big.tolist(), pair.small.tolist(), pair.kept.tolist(), strict=True):
                chosen = found[(big, *_places(kept))]
                self.add(np.array([small]), chosen[None] * (shares[big] * inverse[small]))

    def assemble(self, rows: Rows, shape: tuple[int, ...]) -> Floats:
        """The full coefficient arrays of marginals of one shape: index 0 along an axis is 'summed out'.

        `shape` is the length of each axis in the basis's own terms (n, or 2^k for bit codes).
        """
        full = np.zeros((len(rows), *shape))
        for pattern in product((False, True), repeat=len(shape)):
            block = self.gather(rows[:, np.array(pattern, dtype=bool)])
            if block is not None:
                full[(slice(None), *_places(pattern))] = block
        return full

    def tables(self, rows: Rows, shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return helmert.inverse(self.assemble(rows, shape), range(1, len(shape) + 1))


@dataclass(frozen=True, eq=False)
class Weighed:
    """Tables of a family: an array (tables, *shape) for each batch of it, and the weight of each table."""

    tables: Family
    values: Sequence[Floats]
    weights: Floats


def combine(tables: Family, values: Sequence[Floats], weights: Floats, spaces: Family) -> Coefficients:
    """The coefficients of the consistent tables nearest to given ones: sum_A weights_A ||table_A - value_A||² least."""
    to = Projection(tables, weights, spaces)
    return to.unpack(to.nearest(to.join(values)))


class Projection:
    """The least-squares projection onto consistent tables, for one family, its weights and its residual spaces.

    >>> family = Family.of([(0,), (1,)], (2, 2))
    >>> to = Projection(family, np.ones(2), family.closure)
    >>> to.spread(to.nearest(np.array([6.0, 2.0, 1.0, 5.0]))).round(9).tolist()
    [5.5, 1.5, 1.5, 5.5]
    """

    def __init__(self, tables: Family, weights: Floats, spaces: Family) -> None:
        self.family, self.spaces = tables, spaces
        starts = np.zeros(len(spaces), np.int64)
        owners = [np.zeros(0, np.int64)]
        self._blocks: list[tuple[slice, tuple[int, ...]]] = []
        self.length = 0
        """How many coefficients there are."""
        for batch in spaces.batches:
            shape, start = tuple(n - 1 for n in batch.shape), self.length
            size = math.prod(shape)
            self.length += size * len(batch.ids)
            starts[batch.ids] = start + size * np.arange(len(batch.ids))
            owners.append(np.repeat(batch.ids, size))
            self._blocks.append((slice(start, self.length), (len(batch.ids), *shape)))
        self._owners = np.concatenate(owners)
        self._shares = [(weights / tables.cells)[batch.ids] for batch in tables.batches]
        ends = np.cumsum([0, *(len(batch.ids) * batch.cells for batch in tables.batches)]).tolist()
        self._places = [slice(*pair) for pair in pairwise(ends)]
        self.cells: int = ends[-1]
        """How many cells the tables have together."""
        pairs = zip(tables.batches, tables.alone, strict=True)
        indices = [_index(batch, alone.inclusions(spaces), starts, self.length).ravel() for batch, alone in pairs]
        self._index = np.concatenate([np.zeros(0, np.int64), *indices])
        scale = self.each(kernel(MARGINAL, tables, weights, spaces))
        self._inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)

    def nearest(self, cells: Floats) -> Floats:
        """The vector of all coefficients of the consistent tables nearest to given ones, from that of all cells."""
        moved = np.empty(self.cells)
        for place, tables, share in zip(self._places, self.split(cells), self._shares, strict=True):
            found = helmert.forward(tables, range(1, tables.ndim)).reshape(len(tables), -1)
            np.multiply(found, share[:, None], out=moved[place].reshape(len(tables), -1))
        sums = np.bincount(self._index, moved, self.length + 1)
        return np.asarray(sums[:-1] * self._inverse, np.float64)

    def spread(self, coefficients: Floats) -> Floats:
        """The vector of all cells of the tables with these coefficients."""
        cells: Floats = np.append(coefficients, 0.0)[self._index]  # the last: coefficients of spaces that are not there
        for place, tables in zip(self._places, self.split(cells), strict=True):
            cells[place] = helmert.inverse(tables, range(1, tables.ndim)).ravel()
        return cells

    def each(self, values: Floats) -> Floats:
        """A number for each space, repeated for each of its coefficients."""
        return np.asarray(values[self._owners])

    def join(self, values: Sequence[Numbers]) -> Floats:
        """The vector of all cells, or of all coefficients, from an array for each batch."""
        return np.concatenate([np.zeros(0), *(np.asarray(v, np.float64).ravel() for v in values)])

    def split(self, cells: Floats) -> tuple[Floats, ...]:
        """The cells in a vector as an array (tables, *shape) for each batch."""
        pairs = zip(self._places, self.family.batches, strict=True)
        return tuple(cells[place].reshape(len(batch.ids), *batch.shape) for place, batch in pairs)

    def unpack(self, vector: Floats) -> Coefficients:
        """The coefficients in a vector; the inverse of joining their blocks."""
        return Coefficients(self.spaces, tuple(vector[place].reshape(shape) for place, shape in self._blocks))


def _places(kept: Sequence[bool]) -> tuple[slice | int, ...]:
    """Where a transformed table has the coefficients of the space of those of its attributes that are kept."""
    return tuple(slice(1, None) if inside else 0 for inside in kept)


def _index(batch: Batch, inclusions: Iterable[Inclusion], starts: Ints, nowhere: int) -> Ints:
    """For each cell of the batch's transformed tables, the number of its coefficient."""
    index = np.full((len(batch.ids), *batch.shape), nowhere, np.int64)
    for pair in inclusions:
        if pair.kept.ndim == 1:
            _fill(index, pair.kept, pair.big, starts[pair.small])
            continue
        for at, kept in enumerate(pair.kept):
            _fill(index, kept, pair.big[at : at + 1], starts[pair.small[at : at + 1]])
    return index


def _fill(index: Ints, kept: Bools, rows: Ints, starts: Ints) -> None:
    block = index[(slice(None), *_places(kept.tolist()))]
    inside = block.shape[1:]
    block[rows] = starts.reshape(-1, *[1] * len(inside)) + np.arange(math.prod(inside)).reshape(inside)
