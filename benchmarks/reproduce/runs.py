"""Plan a method once, draw its noise some times, and compare its tables with the exact ones.

Where noise and recovery are linear, errors do not depend on the counts: they are drawn on empty tables, and are the
errors on any data (tests/docs/test_reproduction.py compares). Adaptive methods run on the data.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.reproduce.data import Data
from hushcube import Schema
from hushcube.designs import AdaptiveDesign
from hushcube.designs.design import Design
from hushcube.designs.request import Request
from hushcube.experiments.truth import held, wanted
from hushcube.model.arrays import Floats, Ints
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.planning.planner import compare
from hushcube.private.engines import ExactCounts, open_source
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy

_PART = 1 << 24
"""Cells that are compared at a time."""


class Nobody(ExactCounts):
    """Empty tables."""

    rows = 0

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def tables(self, marginals: NDArray[np.int32]) -> Ints:
        """Zeros, also for the total."""
        alike = (
            self._schema.shape(tuple(marginals[0].tolist())) if marginals.size else (1,) * max(1, marginals.shape[1])
        )
        return np.zeros((len(marginals), *alike), np.int64)


@cache
def planned(
    schema: Schema,
    words: str,
    strategy: str,
    budgets: str | None = None,
    recovery: str | None = None,
    *,
    epsilon: str,
    delta: str | None = None,
    neighbours: str = "add-remove",
    objective: str = "total",
) -> Design:
    """A method's design. Without a delta, `residual` is planned at rho = epsilon²/2: epsilon-DP implies no less."""
    amounts = (
        {"rho": repr(float(epsilon) ** 2 / 2)} if strategy == "residual" and delta is None else {"epsilon": epsilon}
    )
    privacy = Privacy.of(neighbours=neighbours, delta=delta, **amounts)
    request = Request(Workload.parse(words, schema), privacy, objective=objective)
    return compare(request, strategy=strategy, budgets=budgets, recovery=recovery).chosen


def counts_for(design: Design, data: Data) -> ExactCounts:
    """Empty tables, unless the method adapts to what it sees."""
    return exact(design, data) if isinstance(design, AdaptiveDesign) else Nobody(data.schema)


def exact(design: Design, data: Data) -> ExactCounts:
    """The exact tables that a method and its workload need."""
    return held(open_source(data.people), data.schema, wanted(design.workload, [design]))


def table_errors(design: Design, counts: ExactCounts, *, runs: int, seed: int, power: int = 1) -> Floats:
    """The mean |error|^power of a cell of each table, as (runs, tables), in the order of `design.request.marginals`."""
    family = design.request.marginals
    found = np.empty((runs, len(family)))
    for run in range(runs):
        made, measurement = draw(design, counts, entropy=SeededEntropy(seed + run))
        answers = made.answers(measurement)
        for batch in family.batches:
            for part in batch.parts(_PART):
                rows = batch.rows[part]
                off = answers.tables(rows, batch.shape) - counts.tables(rows).reshape(len(rows), *batch.shape)
                found[run, batch.ids[part]] = (np.abs(off) ** power).reshape(len(rows), -1).mean(axis=1)
    return found
