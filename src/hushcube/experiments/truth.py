"""The truth: exact tables, counted once for all methods and runs, and how far noisy ones are from it.

error of a cell  =  |y - q| / max(q, δ),  δ the sanity bound                       [Xiao et al. 2011, Equation 1]
overall error    =  mean over tables of the mean over cells                        [Definition 6]

A table counts as much as any other, however many cells it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.design import Design
from hushcube.errors import BadInput, DataError
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.private.engines import Engine, ExactCounts
from hushcube.private.measure import MAX_ROWS
from hushcube.progress import Progress, silent

Table = NDArray[Any]


class HeldTables(ExactCounts):
    """Tables by their marginals: nothing is counted or summed again when they are asked for."""

    def __init__(self, rows: int, tables: Mapping[Marginal, Ints]) -> None:
        self.rows = rows
        self._tables = tables

    def tables(self, marginals: NDArray[np.int32]) -> Ints:
        """Tables of one shape."""
        if not marginals.size:  # the total, or no table at all
            return np.full((len(marginals), *(1,) * max(1, marginals.shape[1])), self.rows, dtype=np.int64)
        return np.stack([self._tables[tuple(row)] for row in marginals.tolist()])


def held(data: Engine | ExactCounts, schema: Schema, family: Family, progress: Progress | None = None) -> HeldTables:
    """Read the rows once, unless they are counted already, and keep the tables."""
    if isinstance(data, ExactCounts):
        return _kept(data, family)
    report = progress or silent
    report("counting", 0.0)
    counts = data.count(schema, family.levels, progress=lambda share: report("counting", share))
    if counts.rows > MAX_ROWS:
        raise DataError("data", "there are more than 2^34 rows", "evaluate a part of the data")
    return _kept(counts, family)


def _kept(counts: ExactCounts, family: Family) -> HeldTables:
    tables: dict[Marginal, Ints] = {}
    for batch in family.batches:
        try:
            found = counts.tables(batch.rows)
        except LookupError:
            fix = "count what its plan measures, too: `wanted(workload, plans)`"
            raise BadInput("counts", "a table that a method measures has not been counted", fix) from None
        tables |= dict(zip(map(tuple, batch.rows.tolist()), found, strict=True))
    return HeldTables(counts.rows, tables)


def wanted(workload: Workload, plans: Sequence[Design] = ()) -> Family:
    """All marginals whose exact tables are needed: for the truth, and by plans."""
    sizes = workload.schema.sizes
    own = Family.of((*workload.marginals, *(form.marginal for form in workload.forms)), sizes)
    groups = [*own.levels, *(group for plan in plans for group in plan.counted)]
    top = max(group.shape[1] for group in groups)
    empty = [np.zeros((0, k), np.int32) for k in range(top + 1)]
    return Family(sizes, [np.concatenate([empty[k], *(g for g in groups if g.shape[1] == k)]) for k in range(top + 1)])


def overall_error(truth: Sequence[Table], answers: Sequence[Table], sanity_bound: float) -> float:
    """The mean over tables of the mean relative error of their cells.

    >>> overall_error([np.array([100, 0])], [np.array([90.0, 2.0])], sanity_bound=4)
    0.3
    """
    return float(np.mean([errors.mean() for errors in _errors(truth, answers, sanity_bound)]))


def worst_error(truth: Sequence[Table], answers: Sequence[Table], sanity_bound: float) -> float:
    """The largest relative error of any cell."""
    return float(max(errors.max() for errors in _errors(truth, answers, sanity_bound)))


def _errors(truth: Sequence[Table], answers: Sequence[Table], sanity_bound: float) -> Iterator[Floats]:
    if not sanity_bound > 0:
        raise BadInput("sanity_bound", f"{sanity_bound:g} is not positive", "give a count below which errors are alike")
    if not truth or len(truth) != len(answers):
        problem = f"there are {len(answers)} for {len(truth)} tables"
        raise BadInput("answers", problem, "give one for each, and at least one")
    for q, y in zip(truth, answers, strict=True):
        if q.shape != y.shape:  # numpy would broadcast
            raise BadInput("answers", f"a table of shape {y.shape} answers one of shape {q.shape}", "match the shapes")
        yield np.abs(np.subtract(y, q, dtype=np.float64)) / np.maximum(q, sanity_bound, dtype=np.float64)
