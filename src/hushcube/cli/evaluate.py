"""`hushcube evaluate`: the owner's experiments against the truth. NOT private."""

from __future__ import annotations

from typing import Any

import click

from hushcube.cli.command import option, verb
from hushcube.cli.options import HOW, SOURCES, as_json, asked, check_data, check_schema, comparing, how, taking, typed
from hushcube.cli.output import note, print_json, print_page, progress_bar
from hushcube.errors import BadInput

METHODS = ("dwork", "twophase", "iresamp", "ireduct", "oracle")  # of verbs/evaluating.py, heavy to import for --help
_METHOD = f"A strategy, oracle or proportional; repeatable.  [default: {', '.join(METHODS)}]"
_CLASSIFY = "Predict it from the others, by naive Bayes on noisy tables; instead of --workload."
ERRORS = "Errors"


@verb("evaluate")
@comparing
@option("--method", "NAME[:OPTION=...]", _METHOD, "methods", group=HOW, multiple=True)
@taking(*SOURCES)
@option("--sanity-bound", "COUNT", "Errors are relative to max(count, this): a number, or 1%.", group=ERRORS)
@option("--people", "NUMBER", "How many people there are, if that is public.", group=ERRORS, type=int)
@option("--people-epsilon", "NUMBER", "Part of epsilon for a noisy number of people.", group=ERRORS)
@option("--runs", "NUMBER", "How often noise is drawn.  [default: 10]", group=ERRORS, type=int, default=10)
@option("--seed", "NUMBER", "Repeatable noise: run i draws from this plus i.", group=ERRORS, type=int)
@option("--classify", "ATTRIBUTE", _CLASSIFY, group=ERRORS)
@option("--folds", "NUMBER", "Of --classify.  [default: 10]", group=ERRORS, type=int, default=10)
@as_json
def command(
    data: str | None,
    query: str | None,
    methods: tuple[str, ...],
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

    check_data(data, query)
    _refuse(options, classify)
    check_schema(options)
    same = ("epsilon", "neighbours", "rows_per_person", "sanity_bound", "people", "people_epsilon")
    shared = {
        **{name: options[name] for name in same},
        **how(options),
        "methods": methods or METHODS,
        "budgets": options["budgets"] or "uniform",  # as in the paper
        "recovery": options["recovery"] or "none",
        "seed": seed,
    }
    if classify is None:
        told = asked(options)
        shared |= {"runs": runs, **{name: told[name] for name in ("schema", "workload", "queries")}}
    else:
        shared |= {"schema": options["schema"], "workload": None, "classify": classify, "folds": folds}
    with progress_bar() as progress:
        found = evaluate(data=data, query=query, progress=progress, **shared)
    note(WARNING)
    if as_json:
        what = {"workload": list(options["workload"])} if classify is None else {"classify": classify}
        about = {"private": False, **what, "neighbours": options["neighbours"], "seed": seed}
        print_json({**about, "results": found.to_list()})
    else:
        print_page(found.page())


_REFUSED = {
    "strategy": ("methods are compared by name", "give --method, several times if you like"),
    **dict.fromkeys(("rho", "delta"), ("methods are compared under pure epsilon", "give --epsilon alone")),
}
"""Planning options that make no sense here: known, so that the fix can be told, but not offered."""

for _option in command.params:
    if isinstance(_option, click.Option) and _option.name in _REFUSED:
        _option.hidden = True


def _refuse(options: dict[str, Any], classify: str | None) -> None:
    """What other verbs take, and this one does not."""
    for name, (problem, fix) in _REFUSED.items():
        if options[name]:
            raise BadInput(f"--{name}", problem, fix)
    if classify is None:
        if typed(["folds"]):
            raise BadInput("--folds", "nothing is to be predicted", "give --classify too, or leave it out")
        return
    for name in ("workload", "queries"):
        if options[name]:
            problem = "cannot be combined with --classify, which asks for its own tables"
            raise BadInput(f"--{name}", problem, "leave it out")
    if typed(["runs"]):
        problem = "cannot be combined with --classify, which draws noise for every fold"
        raise BadInput("--runs", problem, "give --folds instead")
