"""`hushcube evaluate`: the owner's experiments against the truth. NOT private."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hushcube.cli.command import option, verb
from hushcube.cli.options import HOW, SOURCES, as_json, asked, comparing, how, taking
from hushcube.cli.output import console, note, number, print_json, progress_bar
from hushcube.errors import BadInput
from hushcube.progress import Progress
from hushcube.text import visible

if TYPE_CHECKING:
    from hushcube.experiments.classify import Classified
    from hushcube.experiments.experiment import Result

METHODS = ("dwork", "twophase", "iresamp", "ireduct", "oracle")
ERRORS = "Errors"
WARNING = "NOT PRIVATE: this compares with the exact counts; do not publish any of it."


@verb("evaluate")
@comparing
@option(
    "--method",
    "methods",
    group=HOW,
    multiple=True,
    metavar="NAME[:OPTION=...]",
    help=f"A strategy, oracle or proportional; repeatable.  [default: {', '.join(METHODS)}]",
)
@taking(*SOURCES)
@option(
    "--sanity-bound", group=ERRORS, metavar="COUNT", help="Errors are relative to max(count, this): a number, or 1%."
)
@option("--people", group=ERRORS, type=int, metavar="NUMBER", help="How many people there are, if that is public.")
@option("--people-epsilon", group=ERRORS, metavar="NUMBER", help="Part of epsilon for a noisy number of people.")
@option("--runs", group=ERRORS, type=int, default=10, metavar="NUMBER", help="How often noise is drawn.  [default: 10]")
@option("--seed", group=ERRORS, type=int, metavar="NUMBER", help="Repeatable noise: run i draws from this plus i.")
@option(
    "--classify",
    group=ERRORS,
    metavar="ATTRIBUTE",
    help="Predict it from the others, by naive Bayes on noisy tables; instead of --workload.",
)
@option("--folds", group=ERRORS, type=int, default=10, metavar="NUMBER", help="Of --classify.  [default: 10]")
@as_json
def command(
    data: str | None,
    query: str | None,
    methods: tuple[str, ...],
    sanity_bound: str | None,
    people: int | None,
    people_epsilon: str | None,
    runs: int,
    seed: int | None,
    classify: str | None,
    folds: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare methods with the exact counts of real data: an experiment for its owner, NOT PRIVATE.

    Relative errors are |noisy - exact| / max(exact, --sanity-bound), averaged over cells, tables and runs.

    \b
    hushcube evaluate --schema people.yaml --workload 2-way --data people.csv \\
        --epsilon 0.1 --neighbours replace-one --sanity-bound 100 --runs 20
    hushcube evaluate --schema people.yaml --classify education --data people.csv \\
        --epsilon 0.1 --neighbours replace-one --sanity-bound 100 --method ireduct --method dwork
    """
    if data is None and query is None:
        raise BadInput("--data", "is not given", "name the data, for example `--data people.parquet`")
    _refuse(options, classify)
    shared = {
        "methods": methods or METHODS,
        "epsilon": options["epsilon"],
        "neighbours": options["neighbours"],
        "rows_per_person": options["rows_per_person"],
        "budgets": options["budgets"] or "uniform",  # as in the paper
        "recovery": options["recovery"] or "none",
        "sanity_bound": sanity_bound,
        "people": people,
        "people_epsilon": people_epsilon,
        "seed": seed,
        **how(options),
    }
    with progress_bar() as progress:
        results: Sequence[Result | Classified]
        if classify is None:
            results = _compared(options, data, query, shared, runs, progress)
        else:
            results = _classified(options, data, query, shared, classify, folds, progress)
    note(WARNING)
    if as_json:
        wanted = {"workload": list(options["workload"])} if classify is None else {"classify": classify}
        told = {"private": False, **wanted, "neighbours": options["neighbours"], "seed": seed}
        print_json({**told, "results": [_plain(result) for result in results]})
    else:
        show_results(results)


_REFUSED = {
    "strategy": ("methods are compared by name", "give --method, several times if you like"),
    "rho": ("methods are compared under pure epsilon", "give --epsilon alone"),
    "delta": ("methods are compared under pure epsilon", "give --epsilon alone"),
}
"""Planning options that make no sense here: known, so that the fix can be told, but not offered."""

for _option in command.params:
    if isinstance(_option, click.Option) and _option.name in _REFUSED:
        _option.hidden = True


def _refuse(options: dict[str, Any], classify: str | None) -> None:
    """What other verbs take, and this one does not."""
    context = click.get_current_context()
    for name, (problem, fix) in _REFUSED.items():
        if options[name]:
            raise BadInput(f"--{name}", problem, fix)
    if classify is None and context.get_parameter_source("folds") is not ParameterSource.DEFAULT:
        raise BadInput("--folds", "nothing is to be predicted", "give --classify too, or leave it out")
    if classify is None:
        return
    if options["workload"] or options["queries"] is not None:
        given = "workload" if options["workload"] else "queries"
        raise BadInput(
            f"--{given}", "cannot be combined with --classify, which asks for its own tables", "leave it out"
        )
    if context.get_parameter_source("runs") is not ParameterSource.DEFAULT:
        raise BadInput(
            "--runs", "cannot be combined with --classify, which draws noise for every fold", "give --folds instead"
        )


def _compared(
    options: dict[str, Any], data: str | None, query: str | None, shared: dict[str, Any], runs: int, progress: Progress
) -> tuple[Result, ...]:
    from hushcube.experiments.experiment import evaluate
    from hushcube.private.engines import open_source

    told = asked(options)
    return evaluate(
        told["schema"],
        told["workload"],
        open_source(data, query=query),
        queries=told["queries"],
        runs=runs,
        progress=progress,
        **shared,
    )


def _classified(
    options: dict[str, Any],
    data: str | None,
    query: str | None,
    shared: dict[str, Any],
    classify: str,
    folds: int,
    progress: Progress,
) -> tuple[Classified, ...]:
    from hushcube.experiments.classify import coded_rows, cross_validate
    from hushcube.model.schema import Schema

    if options["schema"] is None:
        raise BadInput("--schema", "is not given", "name a schema file; `hushcube schema draft` drafts one")
    schema = Schema.read(options["schema"])
    if classify not in schema.names:
        known = ", ".join(schema.names[:20]) + (", ..." if len(schema) > 20 else "")
        raise BadInput("--classify", f"{classify!r} is not in the schema", f"use one of: {known}")
    return cross_validate(
        schema,
        lambda: coded_rows(schema, data, query=query, progress=progress),
        classify,
        folds=folds,
        progress=progress,
        **shared,
    )


def _plain(result: Result | Classified) -> dict[str, Any]:
    """Fields for JSON, which has no infinite numbers."""
    fields = dataclasses.asdict(result)
    return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in fields.items()}


def show_results(results: Sequence[Result | Classified]) -> None:
    """One row for each method."""
    from rich.table import Table

    from hushcube.experiments.experiment import Result

    first = results[-1]
    told = f"epsilon = {number(first.epsilon)}, sanity bound {number(first.sanity_bound)}"
    often = f"{first.runs:,} runs" if isinstance(first, Result) else f"{first.folds:,} folds"
    console().print(f"relative errors against the exact counts: {told}, {often}")
    grid = Table()
    grid.add_column("method")
    last = "worst cell" if isinstance(first, Result) else "accuracy"
    for name in ("overall error", last, "spent", "seconds a run"):
        grid.add_column(name, justify="right")
    for result in results:
        if isinstance(result, Result):
            extra = number(result.worst_error)
        else:
            extra = _with_error(result.accuracy, result.accuracy_error)
        grid.add_row(
            visible(result.method),
            _with_error(result.overall_error, result.standard_error),
            extra,
            number(result.spent) if math.isfinite(result.spent) else "everything",
            number(round(result.seconds, 4)),
        )
    console().print(grid)


def _with_error(mean: float, standard_error: float) -> str:
    return number(mean) + (f" ± {number(standard_error)}" if math.isfinite(standard_error) else "")
