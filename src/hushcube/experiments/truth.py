"""The truth: exact tables, counted once for all methods and runs, and how far noisy ones are from it.

error of a cell  =  |y - q| / max(q, δ),  δ the sanity bound                       [Xiao et al. 2011, Equation 1]
overall error    =  mean over tables of the mean over cells                        [Definition 6]
expected         =  mean over tables of E|noise| * mean over cells of 1/max(q, δ)  [Section 5.2]

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
from hushcube.model.form import QueryTable
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.private.engines import Engine, ExactCounts, open_source
from hushcube.private.measure import MAX_ROWS
from hushcube.progress import Progress, silent

Table = NDArray[Any]


class HeldTables(ExactCounts):
    """Tables by their marginals: nothing is counted or summed again when they are asked for."""

    def __init__(self, rows: int, tables: Mapping[Marginal, Ints]) -> None:
        self._rows = rows
        self._tables = tables

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return self._rows

    def tables(self, marginals: NDArray[np.int32]) -> Ints:
        """Tables of one shape."""
        if not marginals.size:  # the total, or no table at all
            return np.full((len(marginals), *(1,) * max(1, marginals.shape[1])), self._rows, dtype=np.int64)
        return np.stack([self._tables[tuple(row)] for row in marginals.tolist()])


def exact_counts(
    schema: Schema,
    workload: str | Sequence[str],
    data: Any,
    *,
    query: str | None = None,
    queries: QueryTable | None = None,
    plans: Sequence[Design] = (),
    progress: Progress | None = None,
) -> ExactCounts:
    """The exact tables of a workload, and those that plans measure besides; `data` as in `release`.

    They serve every method that measures the workload's own tables; other strategies need their plans given.
    """
    asked = Workload.parse(workload, schema, queries)
    return held(open_source(data, query=query), asked.schema, wanted(asked, plans), progress)


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
            fix = "count for its plan too: `exact_counts(..., plans=...)`"
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
    """The largest relative error of any cell.

    >>> worst_error([np.array([100, 0])], [np.array([90.0, 2.0])], sanity_bound=4)
    0.5
    """
    return float(max(errors.max() for errors in _errors(truth, answers, sanity_bound)))


def expected_overall_error(truth: Sequence[Table], scales: Sequence[float], sanity_bound: float) -> float:
    """The expected overall error when the noise of table i has the mean absolute value scales[i] in every cell.

    >>> marginals = [np.array([100, 100]), np.array([1, 1, 1, 1])]
    >>> round(expected_overall_error(marginals, (22, 2.2), sanity_bound=1), 12)
    1.21
    """
    _check(truth, scales, "scales", sanity_bound)
    return float(
        np.mean([scale * (1 / _sizes(q, sanity_bound)).mean() for q, scale in zip(truth, scales, strict=True)])
    )


def _errors(truth: Sequence[Table], answers: Sequence[Table], sanity_bound: float) -> Iterator[Floats]:
    _check(truth, answers, "answers", sanity_bound)
    for q, y in zip(truth, answers, strict=True):
        if q.shape != y.shape:  # numpy would broadcast
            raise BadInput("answers", f"a table of shape {y.shape} answers one of shape {q.shape}", "match the shapes")
        yield np.abs(np.subtract(y, q, dtype=np.float64)) / _sizes(q, sanity_bound)


def _sizes(q: Table, sanity_bound: float) -> Floats:
    """max(q, δ): what an error is relative to."""
    return np.maximum(q, sanity_bound, dtype=np.float64)


def _check(truth: Sequence[Table], others: Sequence[Any], name: str, sanity_bound: float) -> None:
    if not sanity_bound > 0:
        raise BadInput("sanity_bound", f"{sanity_bound:g} is not positive", "give a count below which errors are alike")
    if not truth or len(truth) != len(others):
        raise BadInput(name, f"there are {len(others)} for {len(truth)} tables", "give one for each, and at least one")
