"""`hushcube evaluate`: the owner's experiments against the truth. NOT private."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from hushcube.cli.command import option, verb
from hushcube.cli.options import (
    HOW,
    OUTPUT,
    READING,
    SOURCES,
    as_json,
    asked,
    check_data,
    check_schema,
    comparing,
    how,
    taking,
    typed,
)
from hushcube.cli.output import note, print_json, print_page, progress_bar
from hushcube.durable import check_file, new_file
from hushcube.errors import BadInput, OutputError
from hushcube.verbs.charting import new_picture

_METHOD = "A strategy, oracle or proportional; repeatable.  [default: some that fit]"
_CLASSIFY = "Predict it from the others, by naive Bayes on noisy tables; instead of --workload."
_BY = "Rows for each setting, dimension or table.  [default: setting]"
_WORKERS = "Processes side by side.  [default: one for each processor]"
_KEEP = "Keep runs in a file: a command that was stopped goes on from there."
_RELEASE = "Check this release against the data that it is of; instead of --workload."
_OF_RELEASE = ("release", "worst", "engine", "bad_rows")
"""What only the check of a release takes, and what it shares with experiments."""
_SHARED = ("data", "query", "faces", "csv", "charts", "as_json")
ERRORS = "Errors"
RUNS = "Runs"
CHECK = "One release"


@verb("evaluate")
@comparing
@option("--method", "NAME[:OPTION=...]", _METHOD, "methods", group=HOW, multiple=True)
@taking(*SOURCES, *READING)
@option("--release", "FOLDER", _RELEASE, group=CHECK)
@option("--worst", "NUMBER", "Of --release: name so many cells.  [default: 10]", group=CHECK, type=int, default=10)
@option(
    "--sanity-bound",
    "COUNT[;TABLE=COUNT]",
    "Relative errors are over max(count, this): a number, 1%, or 20;a*b=5.",
    group=ERRORS,
)
@option("--people", "NUMBER", "How many people there are, if that is public.", group=ERRORS, type=int)
@option("--people-epsilon", "NUMBER", "Part of epsilon for a noisy number of people.", group=ERRORS)
@option("--classify", "ATTRIBUTE", _CLASSIFY, group=ERRORS)
@option("--folds", "NUMBER", "Of --classify.  [default: 10]", group=ERRORS, type=int, default=10)
@option("--runs", "NUMBER", "How often noise is drawn.  [default: 10]", group=RUNS, type=int, default=10)
@option("--seed", "NUMBER", "Repeatable noise: run i draws from this plus i.", group=RUNS, type=int)
@option("--workers", "NUMBER", _WORKERS, group=RUNS, type=int)
@option("--keep", "FILE", _KEEP, group=RUNS)
@option("--by", "WHAT", _BY, group=OUTPUT, default="setting")
@option("--csv", "FILE", "Write the rows.", group=OUTPUT)
@option("--chart", "FILE", "Draw the errors, .png or .svg.", "charts", group=OUTPUT, multiple=True)
@as_json
def command(
    data: str | None,
    query: str | None,
    methods: tuple[str, ...],
    by: Any,
    csv: str | None,
    charts: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Compare methods with the exact counts of real data: an experiment for its owner, NOT PRIVATE.

    Every combination of methods, budgets, recoveries, faces and guarantees is tried, again and again. With
    --release, what was published is compared: its errors, the coverage of its intervals, and its worst cells.

    \b
    hushcube evaluate --schema people.yaml --workload 2-way --data people.csv --neighbours add-remove \\
        --epsilon 0.1 --epsilon 1 --method fourier --method covering --budgets uniform --budgets optimal
    hushcube evaluate --schema people.yaml --classify education --data people.csv \\
        --epsilon 0.1 --neighbours replace-one --sanity-bound 100 --method ireduct --method dwork
    hushcube evaluate --release published --data people.csv --chart check.png
    """
    from hushcube.verbs.evaluating import WARNING, check_by, evaluate

    check_data(data, query)
    if options["release"] is not None:
        _check_release(data, query, csv, charts, as_json, options)
        return
    classify = options["classify"]
    _refuse(options, classify)
    check_schema(options)
    check_by(by, classified=classify is not None)
    table, pictures = _new_outputs(csv, charts, options["keep"])
    with progress_bar() as progress:
        found = evaluate(data=data, query=query, methods=methods or None, progress=progress, **_given(options))
    note(WARNING)
    files = [(found.csv(by).encode(), path, "--csv") for path in table]
    _write([*files, *((found.picture(path, by), path, "--chart") for path in pictures)])
    if as_json:
        what = {"workload": list(options["workload"])} if classify is None else {"classify": classify}
        about = {"private": False, **what, "neighbours": options["neighbours"], "seed": options["seed"]}
        skipped = [{"setting": setting, "reason": reason} for setting, reason in found.skipped.items()]
        print_json({**about, "results": found.to_list(), "skipped": skipped})
    else:
        print_page(found.page(by))
    _tell_written(table, pictures)


def _check_release(
    data: str | None, query: str | None, csv: str | None, charts: Sequence[str], as_json: bool, options: dict[str, Any]
) -> None:
    """Compare one release with the truth."""
    from hushcube.verbs.evaluating import WARNING
    from hushcube.verbs.owner_check import evaluate_release

    for name in typed(own.name for own in command.params if own.name not in (*_OF_RELEASE, *_SHARED)):
        problem = "cannot be combined with --release: what was published is compared as it is"
        raise BadInput(name, problem, "leave it out")
    table, pictures = _new_outputs(csv, charts, None)
    given = {"faces": options["faces"] or None, **_picked(options, "worst", "engine", "bad_rows")}
    with progress_bar() as progress:
        found = evaluate_release(options["release"], data, query=query, progress=progress, **given)
    note(WARNING)
    files = [(found.csv().encode(), path, "--csv") for path in table]
    _write([*files, *((found.picture(path), path, "--chart") for path in pictures)])
    if as_json:
        print_json(found.to_dict())
    else:
        print_page(found.page(more="--csv and --json have all of them"))
    _tell_written(table, pictures)


def _write(files: Sequence[tuple[bytes, Path, str]]) -> None:
    """Write new files, each named by an option."""
    for content, path, named_by in files:
        with new_file(path, named_by) as file:
            file.write_bytes(content)


def _tell_written(*paths: Sequence[Path]) -> None:
    for path in chain(*paths):
        note(f"wrote {path}, which is NOT PRIVATE either")


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """What the verb takes; what is not given keeps its default."""
    same = ("neighbours", "rows_per_person", "sanity_bound", "people", "people_epsilon", "seed", "workers", "keep")
    several = {name: options[name] for name in ("epsilon", "rho", "budgets", "recovery", "faces") if options[name]}
    if options["delta"]:
        several["delta"] = tuple(None if word == "none" else word for word in options["delta"])
    given = {**{name: options[name] for name in same}, **several, **how(options)}
    if options["classify"] is not None:
        return {**given, "schema": options["schema"], "workload": None, **_picked(options, "classify", "folds")}
    return {**given, **_picked(asked(options), "schema", "workload", "queries"), "runs": options["runs"]}


def _picked(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names}


def _new_outputs(csv: str | None, charts: Sequence[str], keep: str | None) -> tuple[list[Path], list[Path]]:
    """The files to write, checked before any work is done for them."""
    tables = [] if csv is None else [Path(csv)]
    for path in tables:
        check_file(path, "--csv")
    pictures = [new_picture(path, "--chart") for path in charts]
    places = [path.absolute() for path in (*tables, *pictures, *([] if keep is None else [Path(keep)]))]
    if len(set(places)) < len(places):
        raise OutputError("--chart", "two files have the same name", "name each file once")
    return tables, pictures


_STRATEGY = next(own for own in command.params if own.name == "strategy")
_STRATEGY.hidden = True  # type: ignore[attr-defined] # known, so that the fix can be told, but not offered


def _refuse(options: dict[str, Any], classify: str | None) -> None:
    """What other verbs take, or the check of a release, and this one does not."""
    for name in typed(_OF_RELEASE):
        raise BadInput(name, "goes with --release alone", "give --release too, or leave it out")
    if options["strategy"]:
        raise BadInput("--strategy", "methods are compared by name", "give --method, several times if you like")
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
