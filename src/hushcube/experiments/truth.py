"""The truth: exact tables, counted once for all settings and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.part import FormsFromCells
from hushcube.designs.design import Design
from hushcube.errors import BadInput, DataError
from hushcube.experiments.errors import Table
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.private.engines import Engine, ExactCounts
from hushcube.private.measure import MAX_ROWS
from hushcube.progress import Progress, silent


@dataclass(frozen=True, eq=False)
class Answers:
    """The tables of one run, and what a person's data cost."""

    marginals: Mapping[Marginal, Table]
    forms: Sequence[Table]
    spent: float

    @property
    def tables(self) -> list[Table]:
        """All of them, in the order of the workload."""
        return [*self.marginals.values(), *self.forms]


def truth(workload: Workload, counts: ExactCounts) -> Answers:
    """The exact tables of a workload."""
    exact = exact_values(counts)
    return Answers(tables_of(workload, exact), [exact.form(form) for form in workload.forms], np.inf)


def exact_values(counts: ExactCounts) -> FormsFromCells:
    """Exact counts, or sums, as a source of tables and forms."""
    return FormsFromCells(_Exact(counts))


class _Exact:
    """Exact counts as answers."""

    def __init__(self, counts: ExactCounts) -> None:
        self._counts = counts

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return self._counts.tables(rows).reshape(len(rows), *shape).astype(np.float64)


def tables_of(workload: Workload, source: FormsFromCells) -> dict[Marginal, Table]:
    """The marginals of a workload from any source of tables."""
    found: dict[Marginal, Table] = {}
    for batch in Family.of(workload.marginals, workload.schema.sizes).batches:
        found |= dict(zip(map(tuple, batch.rows.tolist()), source.tables(batch.rows, batch.shape), strict=True))
    return {marginal: found[marginal] for marginal in workload.marginals}


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


def held(data: Engine | ExactCounts, schema: Schema, family: Family, progress: Progress = silent) -> HeldTables:
    """Read the rows once, unless they are counted already, and keep the tables."""
    if isinstance(data, ExactCounts):
        counts = data
    else:
        progress("counting", 0.0)
        counts = data.count(schema, family.levels, progress=lambda share: progress("counting", share))
    if counts.rows > MAX_ROWS:
        raise DataError("data", "there are more than 2^34 rows", "evaluate a part of the data")
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
