"""Helmert coefficients of residual spaces, stored as one array for each shape."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from hushcube.lattice import helmert
from hushcube.lattice.family import Family, Rows
from hushcube.model.arrays import Floats, Ints

Ids = Ints
Numbers = Ints | Floats


@dataclass(frozen=True, eq=False)
class Coefficients:
    """For each batch of a family's sets, an array (sets, rows of the basis along each axis)."""

    spaces: Family
    blocks: tuple[Numbers, ...]

    @cached_property
    def _places(self) -> tuple[Ids, Ids]:
        """In which batch and in which row of it each set is kept."""
        batch_of = np.empty(len(self.spaces), np.int64)
        row_of = np.empty(len(self.spaces), np.int64)
        for number, batch in enumerate(self.spaces.batches):
            batch_of[batch.ids], row_of[batch.ids] = number, np.arange(len(batch.ids))
        return batch_of, row_of

    def gather(self, rows: Rows) -> Numbers | None:
        """The blocks of sets of one shape, in the given order; None where the family lacks them."""
        ids = self.spaces.find(rows)
        if not len(ids) or ids[0] < 0:
            return None
        batch_of, row_of = self._places
        block: Numbers = self.blocks[batch_of[ids[0]]]
        return block[row_of[ids]]

    def add(self, ids: Ids, values: Floats) -> None:
        """Add values (one array a set, sets of one shape, repetitions allowed) to the blocks."""
        batch_of, row_of = self._places
        block, rows = self.blocks[batch_of[ids[0]]], row_of[ids]
        order = np.argsort(rows, kind="stable")
        first = np.flatnonzero(np.diff(rows[order], prepend=-1))
        block[rows[order][first]] += np.add.reduceat(values[order], first, axis=0)

    def assemble(self, rows: Rows, shape: tuple[int, ...]) -> Floats:
        """The full coefficient arrays of marginals of one shape: index 0 along an axis is 'summed out'.

        `shape` is the length of each axis in the basis's own terms (n, or 2^k for bit codes).
        """
        full = np.zeros((len(rows), *shape))
        for pattern in product((False, True), repeat=len(shape)):
            block = self.gather(rows[:, np.array(pattern, dtype=bool)])
            if block is not None:
                full[(slice(None), *(slice(1, None) if kept else 0 for kept in pattern))] = block
        return full

    def tables(self, rows: Rows, shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return helmert.inverse(self.assemble(rows, shape), range(1, len(shape) + 1))
