"""`hushcube evaluate`: the owner's experiments against the truth. NOT private."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from hushcube.cli.command import option, verb
from hushcube.cli.options import HOW, SOURCES, as_json, asked, comparing, how, taking
from hushcube.cli.output import note, print_json, print_page, progress_bar
from hushcube.errors import BadInput

METHODS = ("dwork", "twophase", "iresamp", "ireduct", "oracle")  # of verbs/evaluating.py, heavy to import for --help
ERRORS = "Errors"


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
    from hushcube.verbs.evaluating import WARNING, evaluate

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
    if options["schema"] is None:
        raise BadInput("--schema", "is not given", "name a schema file; `hushcube schema draft` drafts one")
    wanted = {"classify": classify, "folds": folds} if classify is not None else {"runs": runs}
    told = {"schema": options["schema"], "workload": None, "queries": None} if classify else asked(options)
    with progress_bar() as progress:
        found = evaluate(
            told["schema"],
            told["workload"],
            data,
            query=query,
            queries=told["queries"],
            progress=progress,
            **wanted,
            **shared,
        )
    note(WARNING)
    if as_json:
        about = {"workload": list(options["workload"])} if classify is None else {"classify": classify}
        told = {"private": False, **about, "neighbours": options["neighbours"], "seed": seed}
        print_json({**told, "results": found.to_list()})
    else:
        print_page(found.page())


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
