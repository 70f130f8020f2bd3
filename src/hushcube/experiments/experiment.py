"""Run settings on real counts again and again, and compare their answers with the truth.

Nothing of this is private: it is for the owner of the data, and for nobody else. Exact tables are counted once for all
settings and runs.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcube.experiments.contender import Contender, Setting
from hushcube.experiments.errors import PartErrors, RunErrors, Summary, Table
from hushcube.experiments.runs import repeated
from hushcube.experiments.trial import Trial
from hushcube.experiments.truth import held, truth, wanted
from hushcube.model.workload import Workload
from hushcube.private.engines import Engine, ExactCounts


@dataclass(frozen=True, kw_only=True)
class Result(Setting, Summary):
    """How a setting did; NOT private."""

    sanity_bound: float | str | None
    spent: float
    """Of pure epsilon, on average over runs; for oracle and proportional what such noise would cost, were it blind.
    Of other guarantees all is spent."""
    seconds: float
    """For one run, without counting."""
    planning_seconds: float
    dimensions: tuple[PartErrors, ...]
    """By the number of attributes of tables."""
    tables: tuple[PartErrors, ...]


def evaluate(workload: Workload, data: ExactCounts | Engine, trial: Trial) -> tuple[tuple[Result, ...], dict[str, str]]:
    """The errors of settings against the exact counts, and the settings that do not apply, with the reason.

    `data` is counted once, if it is not counted already. The result is NOT private.
    """
    contenders, skipped = trial.prepare(workload)
    family = wanted(workload, [contender.plan for contender in contenders])
    counts = held(data, workload.schema, family, trial.progress)
    exact, bound = truth(workload, counts).tables, trial.known_bound(workload, counts.rows)

    def run(at: int, number: int) -> RunErrors:
        start = time.perf_counter()
        answers = contenders[at].run(counts, trial.entropy(number))
        seconds = time.perf_counter() - start
        return RunErrors.of(exact, answers.tables, bound.by_table, spent=answers.spent, seconds=seconds)

    about = {
        "workload": list(workload.words),
        "data set": digest(exact),
        "sanity bound": bound.told,
        "seed": trial.seed,
    }
    names, keys = ([getattr(own, name) for own in contenders] for name in ("name", "key"))
    found = repeated(run, names, keys, about, trial)
    return tuple(_result(*each, workload, exact, bound.told) for each in zip(contenders, found, strict=True)), skipped


def _result(
    contender: Contender,
    runs: Sequence[RunErrors],
    workload: Workload,
    exact: Sequence[Table],
    bound: float | str | None,
) -> Result:
    cells = np.array([table.size for table in exact], np.float64)
    means = np.array([table.mean() for table in exact])
    words = [*map(workload.schema.describe, workload.marginals), *(form.word for form in workload.forms)]
    orders = np.array([len(m) for m in (*workload.marginals, *(form.marginal for form in workload.forms))])

    def part(table: str | None, order: int, at: list[int]) -> PartErrors:
        more = {"table": table, "attributes": order, "tables": len(at), "cells": int(cells[at].sum())}
        return PartErrors.of(runs, cells, means, at, **more)

    return Result.of(
        runs,
        cells,
        means,
        **vars(contender.setting),
        sanity_bound=bound,
        spent=float(np.mean([run.spent for run in runs])),
        seconds=float(np.mean([run.seconds for run in runs])),
        planning_seconds=contender.planning_seconds,
        dimensions=tuple(part(None, n, np.flatnonzero(orders == n).tolist()) for n in sorted(set(orders.tolist()))),
        tables=tuple(part(word, int(orders[at]), [at]) for at, word in enumerate(words)),
    )


def digest(tables: Sequence[Table]) -> str:
    """Any change of a table changes it."""
    found = hashlib.sha256()
    for table in tables:
        found.update(np.ascontiguousarray(table, np.float64).tobytes())
    return found.hexdigest()
