"""Exact tables, counted once for all methods and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.design import Design
from hushcube.errors import BadInput, DataError
from hushcube.lattice.family import Family
from hushcube.model.arrays import Ints
from hushcube.model.form import QueryTable
from hushcube.model.marginal import Marginal
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.private.engines import Engine, ExactCounts, open_source
from hushcube.private.measure import MAX_ROWS
from hushcube.progress import Progress, silent


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
    """The exact tables of a workload, and those that plans measure besides; `data` as in `hushcube.api.release`.

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
