"""Decides, as coded rows arrive, whether to keep them or to count them into covering tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.private.engines import ExactCounts
from hushcube.private.engines.cover import CoverCounts, choose, row_cost
from hushcube.private.engines.kernels import Columns, RowCounts

Weights = NDArray[np.int64]

KEPT_BYTES: Final = 1 << 25
"""Rows beyond this are counted as they pass, where the tables can be held."""
HELD_CELLS: Final = 1 << 27
"""Cells that covering tables may take together: 1 GiB; more only where the rows would take still more."""
_CELL_BYTES: Final = 8


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
