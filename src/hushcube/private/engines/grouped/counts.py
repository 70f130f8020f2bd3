"""What group-bys answered: coded groups, kept or counted as they arrive, and the tables that they give.

A group counts as often as it has rows; for a measure, as often as its integers sum up to.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hushcube.model.marginal import Marginal
from hushcube.private.engines.coding import Codes
from hushcube.private.engines.contract import ExactCounts
from hushcube.private.engines.cover import Counter
from hushcube.private.engines.measuring import Ints


class Tally:
    """Takes the groups of one group-by, in parts; what the schema refuses is remembered, and no longer counted."""

    def __init__(
        self, marginal: Marginal, wanted: Sequence[NDArray[np.int32]], sizes: Sequence[int], measures: int
    ) -> None:
        self.marginal = marginal
        self.rows = 0
        self.groups = 0
        self.largest = dict.fromkeys(marginal, 0)
        self.missing = [0] * measures
        self._sizes = sizes
        within = [marginals[np.isin(marginals, marginal).all(axis=1)] for marginals in wanted]
        within = [marginals for marginals in within if len(marginals)]
        self._counters = [Counter(within, sizes, None) for _ in range(1 + measures)]

    def add(self, columns: Sequence[Codes], numbers: Sequence[Ints]) -> None:
        """Positions of some groups; then their numbers of rows, and for each measure its sums and missing values."""
        rows, *measured = numbers
        self.rows += int(rows.sum())
        self.groups += len(rows)
        for i, column in zip(self.marginal, columns, strict=True):
            self.largest[i] = max(self.largest[i], int(column.max(initial=0)))
        self.missing = [total + int(more.sum()) for total, more in zip(self.missing, measured[1::2], strict=True)]
        if all(top < self._sizes[i] for i, top in self.largest.items()):
            batch = dict(zip(self.marginal, columns, strict=True))
            for counter, weights in zip(self._counters, [rows, *measured[::2]], strict=True):
                counter.add(batch, len(rows), weights)

    def finish(self) -> list[ExactCounts]:
        """The counts, and the sums of each measure."""
        return [counter.finish() for counter in self._counters]


class GroupedCounts(ExactCounts):
    """The groups of each covering table, counted into what is asked for."""

    def __init__(self, parts: Sequence[tuple[Marginal, int, ExactCounts]]) -> None:
        self._parts = sorted(parts, key=lambda part: part[1])

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return self._parts[0][2].rows

    def tables(self, marginals: NDArray[np.int32]) -> NDArray[np.int64]:
        """From the fewest groups that tell a marginal's attributes apart."""
        found: NDArray[np.int64] | None = None
        left = np.ones(len(marginals), dtype=bool)
        for attributes, _, counts in self._parts:
            here = left & np.isin(marginals, attributes).all(axis=1)
            if here.all():
                return counts.tables(marginals)
            if here.any():
                tables = counts.tables(marginals[here])
                if found is None:
                    found = np.zeros((len(marginals), *tables.shape[1:]), dtype=np.int64)
                found[here] = tables
                left &= ~here
        if left.any() or found is None:
            raise LookupError("a table was asked for that was not announced in `wanted`")
        return found
