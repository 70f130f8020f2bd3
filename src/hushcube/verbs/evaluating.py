"""The owner's experiments: settings compared with the exact counts of real data. NOT private."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, get_args

from hushcube.designs.design import AnyRecovery, Budgets, read_recovery
from hushcube.designs.request import Effort, Objective
from hushcube.durable import check_file, new_file
from hushcube.errors import BadInput
from hushcube.experiments.classify import Classified, coded_rows, cross_validate
from hushcube.experiments.experiment import Result, evaluate as compare_settings
from hushcube.experiments.trial import AnyBound, Trial
from hushcube.faces.value import UNBIASED, FaceValue
from hushcube.model.privacy import Number, Privacy
from hushcube.model.queries import QueryTable
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.options import check_choice
from hushcube.private.engines import open_source
from hushcube.progress import Progress, silent
from hushcube.shown import Grid, Page, Remark, Shown, columns, number
from hushcube.strategies.strategy import Strategy
from hushcube.verbs.schemas import schema_of

By = Literal["setting", "dimension", "table"]
"""What a row of numbers is about."""

RELATIVE: Final = ("dwork", "twophase", "iresamp", "ireduct", "oracle")
ABSOLUTE: Final = ("identity", "workload", "fourier", "covering", "residual")
"""The methods that are compared unless others are named: with a sanity bound under pure epsilon, and elsewhere."""
WARNING: Final = "NOT PRIVATE: this compares with the exact counts; do not publish any of it."
ASKED: Final = ("budgets", "recovery", "face", "epsilon", "rho", "delta")
"""What makes the settings of one method differ."""
_ABOUT: Final = {"setting": (), "dimension": ("attributes", "tables"), "table": ("table", "attributes", "cells")}
_CELLS: Final = ("mean_error", "mean_error_se", "root_mean_square", "worst_cell", "over_mean")
_TABLES: Final = ("table_error", "worst_table", "over_mean_by_table")
_ONLY_ROWS: Final = ("root_mean_square", "table_error", "over_mean_by_table", "planning_seconds")
"""Numbers that a page has no room for."""
_RELATIVE: Final = ("overall_error", "standard_error", "worst_error")
_ACCURACY: Final = ("accuracy", "accuracy_error")
_COST: Final = ("spent", "seconds", "planning_seconds")
_ERRORS: Final = {"mean_error": "mean_error_se", "overall_error": "standard_error", "accuracy": "accuracy_error"}
"""Means over runs, with their standard errors."""


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """What each setting came to, against the exact counts; NOT private."""

    results: tuple[Result | Classified, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Settings that do not apply, with the reason."""

    def __repr__(self) -> str:
        methods = ", ".join(dict.fromkeys(result.method for result in self.results[:12]))
        return f"Evaluation({len(self.results):,} settings of {methods}; NOT PRIVATE)"

    def _whole_page(self) -> Page:
        return Page((WARNING,)) + self.page()

    @property
    def varying(self) -> list[str]:
        """In what settings differ, besides their methods."""
        noisy = self.results if isinstance(self.results[0], Result) else self.results[1:]
        return [name for name in ASKED if len({getattr(result, name) for result in noisy}) > 1]

    @property
    def about(self) -> str:
        """What settings have in common, and how often they ran."""
        last, varying = self.results[-1], self.varying
        same = [f"{name} {_cell(given)}" for name in ASKED if name not in varying and (given := getattr(last, name))]
        often = f"{last.runs:,} runs" if isinstance(last, Result) else f"{last.folds:,} folds"
        bound = [] if last.sanity_bound is None else [f"sanity bound {_cell(last.sanity_bound)}"]
        return ", ".join([*same, *bound, often])

    def page(self, by: By = "setting") -> Page:
        """A row for each setting, or for each number of attributes or each table of every setting."""
        rows = self.rows(by)
        named = ["method", *self.varying, *_ABOUT[by]]
        left_out = {*named, *ASKED, *_ERRORS.values(), *_ONLY_ROWS}
        numbers = [name for name in rows[0] if name not in left_out]
        headings = columns(named, [name.replace("_", " ") for name in numbers])
        cells = [[*(_cell(row[name]) for name in named), *(_with_error(row, name) for name in numbers)] for row in rows]
        remarks = [Remark(f"left out: {setting}: {reason}") for setting, reason in self.skipped.items()]
        return Page((f"errors against the exact counts: {self.about}", Grid("", headings, cells), *remarks))

    def rows(self, by: By = "setting") -> list[dict[str, Any]]:
        """All numbers as flat rows, of a setting, or of each number of attributes or each table of every setting."""
        check_by(by, classified=isinstance(self.results[0], Classified))
        return [row for result in self.results for row in _rows(result, by)]

    def to_list(self) -> list[dict[str, Any]]:
        """Fields for JSON, which has no infinite numbers."""
        return [finite(asdict(result)) for result in self.results]

    def to_csv(self, out: str | Path, by: By = "setting") -> Path:
        """Write the rows as a new CSV file."""
        check_file(Path(out))
        text = self.csv(by)
        with new_file(Path(out)) as file:
            file.write_text(text, encoding="utf-8")
        return Path(out)

    def csv(self, by: By = "setting") -> str:
        """The rows as CSV; each says that it is not private."""
        rows, text = [{"private": "false", **row} for row in self.rows(by)], io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def picture(self, path: Path, by: By = "setting") -> bytes:
        """A chart in the form that a file's name asks for; `hushcube.chart` writes it."""
        from hushcube.verbs.charting import saved
        from hushcube.verbs.error_charts import draw_errors

        return saved(draw_errors(self, by), path)


def check_by(by: str, *, classified: bool) -> None:
    """Refuse rows that there are not."""
    check_choice(by, "by", get_args(By))
    if by != "setting" and classified:
        raise BadInput("by", f"classifiers are not compared by {by}", "leave it out")


def _rows(result: Result | Classified, by: By) -> Iterator[dict[str, Any]]:
    relative = () if result.sanity_bound is None else _RELATIVE
    if isinstance(result, Classified):
        parts: Sequence[object] = [result]
        numbers = [*relative[:2], *_ACCURACY, *_COST[:2]]
    else:
        parts = {"setting": [result], "dimension": result.dimensions, "table": result.tables}[by]
        numbers = [*_CELLS, *(_TABLES if by != "table" else ()), *relative, *(_COST if by == "setting" else ())]
    setting = {name: getattr(result, name) for name in ("method", *ASKED)}
    for part in parts:
        yield setting | {name: getattr(part, name) for name in (*_ABOUT[by], *numbers)}


def _cell(value: object) -> str:
    """As a page shows it."""
    if isinstance(value, float):
        return number(value) if math.isfinite(value) else "everything" if value > 0 else ""
    return "" if value is None else str(value)


def _with_error(row: Mapping[str, Any], name: str) -> str:
    error = row.get(_ERRORS.get(name, ""), math.nan)
    return _cell(row[name]) + (f" ± {error:.2g}" if math.isfinite(error) else "")


def finite(fields: Any) -> Any:
    """Fields for JSON, which has no infinite numbers."""
    if isinstance(fields, dict):
        return {key: finite(value) for key, value in fields.items()}
    if isinstance(fields, list | tuple):
        return [finite(value) for value in fields]
    return None if isinstance(fields, float) and not math.isfinite(fields) else fields


def evaluate(
    schema: Schema | str | Path,
    workload: str | Sequence[str] | None,
    data: object,
    *,
    neighbours: str,
    epsilon: Number | Sequence[Number] | None = None,
    rho: Number | Sequence[Number] | None = None,
    delta: Number | Sequence[Number | None] | None = None,
    query: str | None = None,
    queries: QueryTable | None = None,
    methods: Sequence[str | Strategy] | None = None,
    rows_per_person: int | None = None,
    budgets: Budgets | Sequence[Budgets] = "uniform",
    recovery: AnyRecovery | Sequence[AnyRecovery] = "none",
    faces: str | FaceValue | Sequence[str | FaceValue] = UNBIASED,
    sanity_bound: AnyBound | None = None,
    people: int | None = None,
    people_epsilon: Number | None = None,
    objective: Objective = "total",
    effort: Effort = "default",
    runs: int = 10,
    classify: str | None = None,
    folds: int = 10,
    seed: int | None = None,
    workers: int | None = None,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Compare methods with the exact counts of real data: an experiment for its owner, NOT private.

    Lists of `epsilon`, `rho`, `delta`, `budgets`, `recovery` and `faces` may be given: every combination is a setting.
    Reported are mean and largest errors, of cells and of tables, errors over the mean count of a table, and, with a
    `sanity_bound`, relative errors |noisy - exact| / max(exact, `sanity_bound`). Budgets and recovery are those of Xiao
    et al. 2011 unless others are given. Run i draws its noise from `seed` + i. Runs are spread over `workers`
    processes; those that are in the file `keep` are not run again. With `classify`, which takes no workload, that
    attribute is predicted from the others by naive Bayes on its noisy tables, and `folds` parts of the data are
    cross-validated.
    """
    declared = schema_of(schema)
    privacies = _privacies(epsilon, rho, delta, neighbours, declared.rows_per_person(rows_per_person))
    relative = sanity_bound is not None and all(privacy.is_pure for privacy in privacies)
    trial = Trial(
        methods=(RELATIVE if relative else ABSOLUTE) if methods is None else methods,
        privacies=privacies,
        sanity_bound=sanity_bound,
        people=people,
        people_epsilon=people_epsilon,
        budgets=_several(budgets),
        recoveries=[read_recovery(way) for way in _several(recovery)],
        faces=_several(faces),
        objective=objective,
        effort=effort,
        runs=runs if classify is None else folds,
        seed=seed,
        workers=workers,
        keep=None if keep is None else Path(keep),
        progress=progress or silent,
    )
    if classify is None:
        if workload is None:
            raise BadInput("workload", "is not given", "name the tables to compare, for example `2-way`")
        source, asked = open_source(data, query=query), Workload.parse(workload, declared, queries)
        return Evaluation(*compare_settings(asked, source, trial))
    if workload is not None or queries is not None:
        name = "workload" if workload is not None else "queries"
        raise BadInput(name, "cannot be combined with classify, which asks for tables of its own", "leave it out")
    if classify not in declared.names:
        raise BadInput("classify", f"{classify!r} is not in the schema", f"use one of: {declared.some_names}")

    def read() -> Mapping[int, Any]:
        return coded_rows(declared, data, query=query, progress=progress)

    return Evaluation(*cross_validate(declared, read, classify, trial))


def _privacies(epsilon: Any, rho: Any, delta: Any, neighbours: str, rows: int) -> list[Privacy]:
    """Every guarantee: each epsilon with each delta, and each rho."""
    amounts: list[dict[str, Any]] = []
    if epsilon is not None or rho is None:
        amounts += [{"epsilon": one, "delta": own} for one in _several(epsilon) for own in _several(delta)]
    if rho is not None:
        amounts += [{"rho": one, "delta": None if epsilon is not None else delta} for one in _several(rho)]
    return [Privacy.of(**one, neighbours=neighbours, rows_per_person=rows) for one in amounts]


def _several(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]
