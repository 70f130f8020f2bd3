"""The owner's experiments: methods compared with the exact counts of real data. NOT private."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushcube.designs.design import AnyRecovery, Budgets
from hushcube.designs.refinement import Amount
from hushcube.designs.request import Effort, Objective
from hushcube.errors import BadInput
from hushcube.experiments.classify import Classified, coded_rows, cross_validate
from hushcube.experiments.experiment import Result, Trial, evaluate as compare_methods
from hushcube.model.privacy import Number
from hushcube.model.queries import QueryTable
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.private.engines import open_source
from hushcube.progress import Progress, silent
from hushcube.shown import Grid, Page, Shown, columns, number
from hushcube.strategies.strategy import Strategy
from hushcube.verbs.schemas import schema_of

METHODS: Final = ("dwork", "twophase", "iresamp", "ireduct", "oracle")
WARNING: Final = "NOT PRIVATE: this compares with the exact counts; do not publish any of it."


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """What each method came to, against the exact counts; NOT private."""

    results: tuple[Result | Classified, ...]

    def __repr__(self) -> str:
        methods = ", ".join(result.method for result in self.results[:12])
        return f"Evaluation({methods}; NOT PRIVATE)"

    def _whole_page(self) -> Page:
        return Page((WARNING,)) + self.page()

    def page(self) -> Page:
        """One row for each method."""
        first = self.results[-1]
        told = f"epsilon = {number(first.epsilon)}, sanity bound {number(first.sanity_bound)}"
        often = f"{first.runs:,} runs" if isinstance(first, Result) else f"{first.folds:,} folds"
        last = "worst cell" if isinstance(first, Result) else "accuracy"
        headings = columns(["method"], ("overall error", last, "spent", "seconds a run"))
        rows = [
            [
                result.method,
                _with_error(result.overall_error, result.standard_error),
                number(result.worst_error)
                if isinstance(result, Result)
                else _with_error(result.accuracy, result.accuracy_error),
                number(result.spent) if math.isfinite(result.spent) else "everything",
                number(round(result.seconds, 4)),
            ]
            for result in self.results
        ]
        return Page((f"relative errors against the exact counts: {told}, {often}", Grid("", headings, rows)))

    def to_list(self) -> list[dict[str, Any]]:
        """Fields for JSON, which has no infinite numbers."""
        return [
            {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in fields.items()}
            for fields in map(dataclasses.asdict, self.results)
        ]


def evaluate(
    schema: Schema | str | Path,
    workload: str | Sequence[str] | None,
    data: object,
    *,
    epsilon: Number,
    neighbours: str,
    query: str | None = None,
    queries: QueryTable | None = None,
    methods: Sequence[str | Strategy] = METHODS,
    rows_per_person: int | None = None,
    budgets: Budgets = "uniform",
    recovery: AnyRecovery = "none",
    sanity_bound: Amount | Number | None = None,
    people: int | None = None,
    people_epsilon: Number | None = None,
    objective: Objective = "total",
    effort: Effort = "default",
    runs: int = 10,
    classify: str | None = None,
    folds: int = 10,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Compare methods with the exact counts of real data: an experiment for its owner, NOT private.

    Relative errors are |noisy - exact| / max(exact, `sanity_bound`), averaged over cells, tables and runs. Budgets and
    recovery are those of the paper [Xiao et al. 2011] unless others are given. Run i draws its noise from `seed` + i.
    With `classify`, which takes no workload, that attribute is predicted from the others by naive Bayes on its noisy
    tables, and `folds` parts of the data are cross-validated.
    """
    given = {**locals(), "runs": runs if classify is None else folds, "progress": progress or silent}
    trial = Trial(**{field.name: given[field.name] for field in dataclasses.fields(Trial)})
    declared = schema_of(schema)
    if classify is None:
        if workload is None:
            raise BadInput("workload", "is not given", "name the tables to compare, for example `2-way`")
        source, asked = open_source(data, query=query), Workload.parse(workload, declared, queries)
        return Evaluation(compare_methods(asked, source, trial))
    if workload is not None or queries is not None:
        name = "workload" if workload is not None else "queries"
        raise BadInput(name, "cannot be combined with classify, which asks for tables of its own", "leave it out")
    if classify not in declared.names:
        raise BadInput("classify", f"{classify!r} is not in the schema", f"use one of: {declared.some_names}")

    def read() -> Mapping[int, Any]:
        return coded_rows(declared, data, query=query, progress=progress)

    return Evaluation(cross_validate(declared, read, classify, trial))


def _with_error(mean: float, standard_error: float) -> str:
    return number(mean) + (f" ± {number(standard_error)}" if math.isfinite(standard_error) else "")
