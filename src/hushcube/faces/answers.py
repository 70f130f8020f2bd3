"""Tables of a face on demand: sums of one full table, or others without rounding errors below zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.answering import Answers
from hushcube.model.arrays import Floats


class SummedTable:
    """Tables as sums of one full table."""

    def __init__(self, table: Floats) -> None:
        self._table = table

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        axes = range(self._table.ndim)
        summed = [self._table.sum(axis=tuple(a for a in axes if a not in row)) for row in rows.tolist()]
        return np.stack(summed).reshape(len(rows), *shape)


class NonNegative:
    """Tables whose rounding errors below zero are cut."""

    def __init__(self, tables: Answers) -> None:
        self._tables = tables

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return np.maximum(self._tables.tables(rows, shape), 0.0)
