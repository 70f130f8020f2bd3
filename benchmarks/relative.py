"""Regenerate the experiments of Xiao et al. 2011, section 6, and write docs/relative-errors.md: `make relative`.

    python -m benchmarks.relative [--runs N] [--quick] [--points FILE]

The truth is known here: errors are measured against it, and nothing of this is private. Each point of a figure is a
method at one epsilon and one sanity bound, with seeds of its own. `--points` keeps the points in a file and does not
measure again what is there: a run that was stopped goes on. `--quick` prints a rough page and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # every figure is for one core

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.datasets import shared
from tests.populations import CENSUS, census

from benchmarks import relative_page
from hushcube import Attribute, Schema
from hushcube.experiments.classify import coded_rows, cross_validate
from hushcube.experiments.experiment import evaluate
from hushcube.experiments.trial import Trial
from hushcube.experiments.truth import held, wanted
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.private.engines import open_source
from hushcube.strategies import ADAPTIVE

PAPER = {"lambda_max": "10%", "lambda_step": "0.0001%", "caution": "0"}
"""The parameters of section 6.1: |T|/10 and |T|/10^6."""
OURS = {"start_share": "0.05", "lambda_factor": "0.99", "caution": "0.1"}


@dataclass(frozen=True)
class Method:
    strategy: str
    rule: dict[str, str] = field(default_factory=lambda: PAPER)
    budgets: str = "uniform"
    recovery: str = "none"


METHODS = {name: Method(name) for name in ("dwork", "twophase", "iresamp", "ireduct", "oracle")}
METHODS["ireduct+"] = Method("ireduct", OURS, "optimal", "gls")
STEPS = {  # from the paper's iReduct to ours, one change after another
    "with caution": Method("ireduct", PAPER | {"caution": "0.1"}),
    "geometric steps": Method("ireduct", OURS),
    "optimal start": Method("ireduct", OURS, "optimal"),
}
FINER = "finer steps"
VARIANTS = METHODS | {FINER: Method("ireduct", PAPER | {"lambda_max": "1%", "lambda_step": "0.00001%"})}


@dataclass(frozen=True)
class Task:
    """A set of tables, the epsilons around the paper's own, and how often methods run."""

    tables: int
    epsilons: tuple[str, ...]
    centre: str
    first_share: str
    """TwoPhase's epsilon_1 / epsilon, as calibrated in the paper."""
    more: dict[str, int] = field(default_factory=dict)
    """Runs of a method as a multiple of the paper's 10; few cells make for errors that vary from run to run."""


TASKS = {
    "1-way": Task(
        9,
        ("0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1"),
        "0.01",
        "0.07",
        {
            "dwork": 30,
            "oracle": 30,
            "twophase": 10,
            "iresamp": 10,
            "ireduct+": 10,
            **dict.fromkeys(("ireduct", *STEPS), 5),
        },
    ),
    "2-way": Task(36, ("0.01", "0.03", "0.1", "0.3", "1"), "0.1", "0.025"),
    "classifier": Task(9, ("0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1"), "0.01", "0.03"),
}
DELTA, DELTAS = "0.01%", ("0.001%", "0.003%", "0.01%", "0.03%", "0.1%")
SHARES = ("0.01", "0.02", "0.03", "0.05", "0.07", "0.1", "0.15", "0.2", "0.3", "0.5")
FOLDS, NEIGHBOURS = 10, "replace-one"


@dataclass(frozen=True)
class Data:
    name: str
    schema: Schema
    people: pa.Table
    class_name: str


@dataclass(frozen=True)
class Point:
    """What one method came to; delta is a share of the people, first_share is TwoPhase's."""

    data: str
    people: int
    task: str
    epsilon: str
    delta: str
    method: str
    first_share: str
    runs: int
    error: float
    error_se: float
    seconds: float
    """Of one run."""
    busy: float
    """Processor time of all runs."""
    accuracy: float | None = None
    accuracy_se: float | None = None

    @property
    def key(self):
        return self.data, self.people, self.task, self.epsilon, self.delta, self.method, self.first_share


class Points:
    """All points so far, kept in a file if there is one."""

    def __init__(self, file):
        self._file = file
        kept = json.loads(file.read_text(encoding="utf-8")) if file and file.exists() else []
        self.found = {point.key: point for point in (Point(**raw) for raw in kept)}

    def __contains__(self, key):
        return key in self.found

    def add(self, point):
        self.found[point.key] = point
        accuracy = "" if point.accuracy is None else f", accuracy {point.accuracy:.4f}"
        told = f"{point.data:8} {point.task:10} epsilon {point.epsilon:5} delta {point.delta:6} {point.method:15}"
        error = f"error {point.error:.4g} +- {point.error_se:.2g}{accuracy}"
        print(f"{told} {error}, {point.seconds:.3f} s a run", flush=True)
        if self._file:
            self._file.write_text(json.dumps([asdict(p) for p in self.found.values()]), encoding="utf-8")


def acs():
    """Working adults of the American Community Survey 2018, coded like the paper's US data."""
    table = pq.read_table(shared("acs2018_census9.parquet"))
    table = table.select(table.column_names[:9])
    labels = {name: sorted(table.column(name).unique().to_pylist()) for name in table.column_names}
    attributes = (Attribute(name=name, values=tuple(map(str, values))) for name, values in labels.items())
    return Data("ACS", Schema(tuple(attributes), "acs"), table, "EDU5")


def datasets(rows):
    """One after another, so that only one is in memory; the survey only where it is."""
    try:
        yield acs()
    except pytest.skip.Exception as reason:
        print(f"ACS is left out: {reason}")
    yield Data("census", CENSUS, census(rows, seed=1), "education")


def strategy_of(method, first_share):
    """A method with those of the options that it has; others have no options."""
    own = ADAPTIVE.get(method.strategy)
    return method.strategy if own is None else own.filled(first_share=first_share, **method.rule)


def measure_tables(data, task, points, runs, epsilons, deltas, steps):
    """The overall error of every method against epsilon, against delta, and of the steps between the two iReducts."""
    chosen, n = TASKS[task], data.people.num_rows
    workload = Workload.parse(task, data.schema)
    counts = held(open_source(data.people), data.schema, wanted(workload))
    tried = [(name, METHODS[name], epsilon, DELTA) for epsilon in epsilons for name in METHODS]
    tried += [(name, METHODS[name], chosen.centre, d) for d in deltas if d != DELTA for name in METHODS]
    tried += [(name, method, chosen.centre, d) for d in (DELTA, *deltas[:1]) for name, method in steps.items()]
    orders = [(*order, chosen.first_share) for order in tried]
    if task == "1-way":
        orders += [("twophase", METHODS["twophase"], chosen.centre, DELTA, share) for share in SHARES]
    for name, method, epsilon, delta, share in orders:
        key = (data.name, n, task, epsilon, delta, name, share)
        if key in points:
            continue
        busy = time.process_time()
        trial = Trial(
            methods=[strategy_of(method, share)],
            privacies=[Privacy.of(epsilon=epsilon, neighbours=NEIGHBOURS)],
            sanity_bound=delta,
            people=n,
            budgets=[method.budgets],
            recoveries=[method.recovery],
            runs=runs * chosen.more.get(name, 1),
            seed=zlib.crc32(repr(key).encode()),
            workers=1,  # what is timed is one core
        )
        (result,), _ = evaluate(workload, counts, trial)
        busy = time.process_time() - busy
        points.add(
            Point(*key, result.runs, result.overall_error, result.standard_error, result.seconds, busy),
        )


def measure_classifiers(data, points, folds, epsilons):
    """The overall error and the accuracy of classifiers; what is measured is the people outside a fold."""
    task, n = TASKS["classifier"], data.people.num_rows
    together = [tuple(name for name in METHODS if name != "ireduct+"), ("ireduct+",)]  # of one rule
    columns = None
    for epsilon in epsilons:
        for names in (*together, (FINER,)) if epsilon == epsilons[-1] else together:
            known = (data.name, n, "classifier", epsilon, DELTA)
            if all((*known, name, task.first_share) in points for name in names):
                continue
            if columns is None:
                columns = coded_rows(data.schema, data.people)
            method = VARIANTS[names[-1]]
            busy = time.process_time()
            trial = Trial(
                methods=[strategy_of(VARIANTS[name], task.first_share) for name in names],
                privacies=[Privacy.of(epsilon=epsilon, neighbours=NEIGHBOURS)],
                sanity_bound=DELTA,
                people=n - n // folds,
                budgets=[method.budgets],
                recoveries=[method.recovery],
                runs=folds,
                seed=zlib.crc32(repr(known).encode()),
                workers=1,
            )
            (exact, *found), _ = cross_validate(data.schema, columns, data.class_name, trial)
            busy = (time.process_time() - busy) / len(names)
            for name, result in (*zip(names, found, strict=True), ("exact", exact)):
                points.add(
                    Point(
                        *known,
                        name,
                        task.first_share,
                        folds,
                        result.overall_error,
                        result.standard_error,
                        result.seconds,
                        0.0 if name == "exact" else busy,
                        result.accuracy,
                        result.accuracy_error,
                    )
                )


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument(
        "--runs", type=int, default=10, help="runs of a method, as in the paper; more where it is fast"
    )
    options.add_argument("--quick", action="store_true", help="few points, a million generated people, no page written")
    options.add_argument("--points", type=Path, help="a JSON file that keeps what was measured")
    given = options.parse_args()
    points = Points(given.points)
    runs, folds, rows = (1, 3, 1_000_000) if given.quick else (given.runs, FOLDS, 10_000_000)
    for data in datasets(rows):
        for task, chosen in TASKS.items():
            epsilons = (chosen.epsilons[0], chosen.centre, chosen.epsilons[-1]) if given.quick else chosen.epsilons
            if task == "classifier":
                measure_classifiers(data, points, folds, epsilons)
            else:
                deltas, steps = ((), {}) if given.quick else (DELTAS, STEPS)
                measure_tables(data, task, points, runs, epsilons, deltas, steps)
    relative_page.write(list(points.found.values()), TASKS, DELTA, STEPS, print_only=given.quick)


if __name__ == "__main__":
    main()
