"""What becomes of coded rows, or of groups of rows, as they arrive: they are counted, and refusals are remembered.

Refusals are raised only after all is counted, so that which one is named does not depend on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Ints
from hushcube.model.schema import Schema
from hushcube.private.engines.coding import Codes
from hushcube.private.engines.contract import ExactCounts, Measures, Wanted, missing_values, refused
from hushcube.private.engines.counting import Counter


class Tally:
    """Takes rows, or groups of them, by some attributes; after a refusal nothing is counted any more."""

    def __init__(
        self, schema: Schema, marginal: Sequence[int], wanted: Wanted, measures: Measures, expected: int | None = None
    ) -> None:
        self.marginal = tuple(marginal)
        self.rows = self.groups = 0
        self.largest = dict.fromkeys(marginal, 0)
        self.missing = [0] * len(measures)
        self._sizes = schema.sizes
        within = [marginals[np.isin(marginals, self.marginal).all(axis=1)] for marginals in wanted]
        within = [marginals for marginals in within if len(marginals)]
        self._lock = Lock()
        self._counters = [Counter(within, schema.sizes, expected) for _ in range(1 + len(measures))]

    def add(self, columns: Sequence[Codes], rows: Ints | int, sums: Sequence[Ints], missing: Sequence[int]) -> None:
        """Positions of so many rows, or of groups of so many rows each; of each measure, sums and missing values.

        Several threads may add what they have read.
        """
        weights, groups = (None, rows) if isinstance(rows, int) else (rows, len(rows))
        counted = groups if weights is None else int(weights.sum())
        tops = [int(column.max(initial=0)) for column in columns]
        with self._lock:
            self.rows += counted
            self.groups += groups
            self.largest = {i: max(self.largest[i], top) for i, top in zip(self.marginal, tops, strict=True)}
            self.missing = [total + int(more) for total, more in zip(self.missing, missing, strict=True)]
        if all(top < self._sizes[i] for i, top in self.largest.items()):
            batch = dict(zip(self.marginal, columns, strict=True))
            for counter, each in zip(self._counters, [weights, *sums], strict=True):
                counter.add(batch, groups, each)

    def finish(self) -> list[ExactCounts]:
        """The counts, and the sums of each measure."""
        return [counter.finish() for counter in self._counters]


def counts_of(schema: Schema, measures: Measures, tallies: Sequence[Tally]) -> ExactCounts:
    """What tallies that contain every wanted marginal have counted, unless they met what the schema refuses."""
    for i in sorted({i for tally in tallies for i in tally.marginal}):
        top = max(tally.largest.get(i, 0) for tally in tallies)
        if top >= schema.sizes[i]:
            raise refused(schema.attributes[i], missing=top == schema.sizes[i])
    for i, measure in enumerate(measures):
        if measure.missing is None and any(tally.missing[i] for tally in tallies):
            raise missing_values(measure)
    ordered = sorted(tallies, key=lambda tally: tally.groups)
    finished = zip(*(tally.finish() for tally in ordered), strict=True)
    counts, *sums = [PartedCounts(ordered, parts) if len(parts) > 1 else parts[0] for parts in finished]
    counts.sums = {measure.name: tables for measure, tables in zip(measures, sums, strict=True)}
    return counts


class PartedCounts(ExactCounts):
    """The counts of several tallies of the same rows, those of the fewest groups first."""

    def __init__(self, tallies: Sequence[Tally], parts: Sequence[ExactCounts]) -> None:
        self.rows = parts[0].rows
        self._parts = [(tally.marginal, counts) for tally, counts in zip(tallies, parts, strict=True)]

    def tables(self, marginals: NDArray[np.int32]) -> Ints:
        """From the fewest groups that tell a marginal's attributes apart."""
        found: Ints | None = None
        left = np.ones(len(marginals), dtype=bool)
        for attributes, counts in self._parts:
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
