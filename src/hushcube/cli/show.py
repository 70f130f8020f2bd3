"""`hushcube show`: a table of a release, with error bars."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.command import option, verb
from hushcube.cli.options import as_json
from hushcube.cli.output import print_about, print_page
from hushcube.errors import QueryError
from hushcube.text import visible

if TYPE_CHECKING:
    from hushcube.bundle.published_table import Table
    from hushcube.bundle.release import Release

UNBIASED = "unbiased"  # as in faces/value.py, which is too heavy to import for --help
MORE = "--rows shows more, --json all"
_WHERE = "Keep these cells; repeat it for more labels or attributes."
_FACE = "A published face: unbiased (the default), consistent, nonnegative or integral."


@verb("show")
@click.argument("folder")
@click.argument("marginal", required=False)
@option("--where", "ATTRIBUTE=LABEL", _WHERE, multiple=True)
@option("--sum", None, "Print the sum of the kept cells with its interval.", "as_sum", is_flag=True)
@option("--face", "KIND", _FACE)
@option("--rows", None, "The most rows to print.", type=click.IntRange(min=1), default=60, show_default=True)
@option("--no-verify", None, "Skip the checksums (large releases).", is_flag=True)
@as_json
def command(
    folder: str,
    marginal: str | None,
    where: tuple[str, ...],
    as_sum: bool,
    face: str | None,
    rows: int,
    no_verify: bool,
    as_json: bool,
) -> None:
    """Print a table of a release, with error bars; without MARGINAL, what it holds.

    \b
    hushcube show published
    hushcube show published age*sex --where sex=Female
    hushcube show published age*sex --where age=30 --where age=31 --sum
    hushcube show published age*sex --face integral
    """
    import hushcube as hc
    from hushcube.bundle.folder import find_table
    from hushcube.bundle.manifest import steadily

    if face is not None:
        from hushcube.faces.value import published_name

        face = published_name(face)
    if marginal is None:
        if where or as_sum:
            raise QueryError("marginal", "is not given", "name a table, for example `hushcube show FOLDER age*sex`")
        _show_contents(hc.open(folder, verify=not no_verify), rows, face, as_json=as_json)
        return
    conditions, shown = _conditions(where), face or UNBIASED
    if as_sum:
        if shown != UNBIASED:
            raise QueryError("--face", "a sum has an interval on the unbiased face only", "leave --face or --sum out")
        _show_sum(hc.open(folder, verify=not no_verify), marginal, conditions, as_json=as_json)
        return

    def read() -> Table:
        release = hc.open(folder, verify=not no_verify)
        return release[marginal] if shown == UNBIASED else release.table(marginal, face=shown)

    found = find_table(Path(folder), marginal, face=shown, verify=not no_verify) or steadily(Path(folder), read)
    table = found.slice(conditions)

    def document() -> dict[str, Any]:
        cells = _quantities(table) if table.others else _cells(table, intervals=shown == UNBIASED)
        return {"attributes": list(table.attributes), "face": shown, "cells": list(cells)}

    def text() -> None:
        print_page(table.page(rows, more=MORE))

    print_about(table.private, as_json=as_json, document=document, text=text, caveat=table.schema.caveat)


def _quantities(table: Table) -> Iterator[dict[str, Any]]:
    """One document a cell: counts, sums and averages, each with its interval."""
    from hushcube.bundle.published_table import beside

    every = (table, *table.others)
    tables = dict(zip(beside(table.attributes, *(one.what for one in every)), every, strict=True))
    for at, labels in enumerate(table.rows()):
        numbers = {word: _interval(one, at) for word, one in tables.items()}
        yield {**dict(zip(table.attributes, labels, strict=True)), **numbers}


def _interval(table: Table, at: int) -> dict[str, float | None]:
    numbers = {"value": table.values, "low_95": table.low, "high_95": table.high}
    return _known({name: float(each.ravel()[at]) for name, each in numbers.items()})


def _known(numbers: dict[str, float]) -> dict[str, float | None]:
    """Numbers for JSON; none where the count is no more than noise, and an average is not known."""
    return {name: None if math.isnan(number) else number for name, number in numbers.items()}


def _conditions(where: tuple[str, ...]) -> dict[str, list[str]]:
    conditions: dict[str, list[str]] = {}
    for condition in where:
        name, equals, label = condition.partition("=")
        if not equals:
            raise QueryError("--where", f"{condition!r} has no =", "write for example `--where sex=Female`")
        conditions.setdefault(name.strip(), []).append(label)
    return conditions


def _cells(table: Table, *, intervals: bool) -> Iterator[dict[str, Any]]:
    """One document a cell; intervals are those of the unbiased estimates, and stand only beside these."""
    from hushcube.bundle.published_table import beside

    own = beside(table.attributes, "value", "std_error", *(["low_95", "high_95"] if intervals else []))
    numbers = (each.ravel().tolist() for each in (table.values, table.std_errors, table.margins))
    for labels, value, std_error, margin in zip(product(*table.labels), *numbers, strict=True):
        found = (value, std_error, value - margin, value + margin)[: len(own)]
        yield dict(zip((*table.attributes, *own), (*labels, *found), strict=True))


def _show_sum(release: Release, marginal: str, conditions: dict[str, list[str]], *, as_json: bool) -> None:
    words = [str(quantity) for quantity in release.plan.quantities]
    estimates = {word: release.estimate(marginal, conditions, word) for word in words}

    def document() -> dict[str, Any]:
        told = {
            word: _known({"value": e.value, "std_error": e.std_error, "low_95": e.low, "high_95": e.high})
            for word, e in estimates.items()
        }
        return {**told.pop("count"), **told}

    def text() -> None:
        for word, estimate in estimates.items():
            click.echo(visible(f"{'' if len(words) == 1 else f'{word}: '}{estimate}"))

    print_about(release.private, as_json=as_json, document=document, text=text, caveat=release.schema.caveat)


def _show_contents(release: Release, rows: int, face: str | None, *, as_json: bool) -> None:
    from hushcube.planning.summary import table_errors

    plan = release.plan
    faces = [face] if face is not None else [UNBIASED, *release.faces]
    for name in faces:
        if name != UNBIASED:
            release.face(name)

    def document() -> dict[str, Any]:
        words = [str(quantity) for quantity in plan.asked]
        return {
            "name": release.schema.name,
            **({"cube": words} if words else {}),
            "privacy": plan.privacy.to_dict(),
            **({} if release.receipt is None else {"receipt": release.receipt.to_dict()}),
            "faces": {name: shown.description for name, shown in release.faces.items()},
            "tables": [
                {
                    "table": t.word,
                    "attributes": [*t.attributes],
                    "cells": t.cells,
                    "face": name,
                    "std_error": t.std_error,
                }
                for name in faces
                for t in table_errors(plan, published=True)
            ],
        }

    def text() -> None:
        print_page(release.page(rows, faces, MORE))

    print_about(release.private, as_json=as_json, document=document, text=text, caveat=release.schema.caveat)
