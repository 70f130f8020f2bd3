"""`hushcube show`: a table of a release, with error bars."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.command import option, verb
from hushcube.cli.options import as_json, typed
from hushcube.cli.output import print_about, print_csv, print_page
from hushcube.errors import QueryError

if TYPE_CHECKING:
    from hushcube.bundle.published_table import Table
    from hushcube.bundle.release import Release
    from hushcube.bundle.sharing import Of

UNBIASED = "unbiased"  # as in faces/value.py, which is too heavy to import for --help
MORE = "--rows shows more, --json all"
_WHERE = "Keep these cells; repeat it for more labels or attributes."
_VERSUS = "Compare with these cells: difference and ratio; other attributes as in --where."
_FACE = "A published face: unbiased (the default), consistent, nonnegative or integral."


@verb("show")
@click.argument("folder")
@click.argument("marginal", required=False)
@option("--where", "ATTRIBUTE=LABEL", _WHERE, multiple=True)
@option("--sum", None, "Print the sum of the kept cells with its interval.", "as_sum", is_flag=True)
@option("--versus", "ATTRIBUTE=LABEL", _VERSUS, multiple=True)
@option("--cross", None, "Print a cross-table with totals: the last attribute in the columns.", is_flag=True)
@option("--columns", "ATTRIBUTE", "Another attribute for the columns of --cross or --share.")
@option("--share", "row|column|all", "Print percentages of these totals.", type=click.Choice(["row", "column", "all"]))
@option("--face", "KIND", _FACE)
@option("--rows", None, "The most rows to print.", type=click.IntRange(min=1), default=60, show_default=True)
@option("--no-verify", None, "Skip the checksums (large releases).", is_flag=True)
@option("--csv", None, "Print CSV and nothing else: one row a cell.", "as_csv", is_flag=True)
@as_json
def command(
    folder: str,
    marginal: str | None,
    where: tuple[str, ...],
    as_sum: bool,
    versus: tuple[str, ...],
    cross: bool,
    columns: str | None,
    share: Of | None,
    face: str | None,
    rows: int,
    no_verify: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Print a table of a release, with error bars; without MARGINAL, what it holds.

    \b
    hushcube show published
    hushcube show published age*sex --where sex=Female
    hushcube show published age*sex --where age=30 --where age=31 --sum
    hushcube show published age*sex --cross --share row
    hushcube show published age*sex --where sex=Female --versus sex=Male
    hushcube show published age*sex --face integral
    """
    import hushcube as hc
    from hushcube.bundle.crossing import documents
    from hushcube.bundle.folder import find_table
    from hushcube.bundle.manifest import steadily

    if face is not None:
        from hushcube.faces.value import published_name

        face = published_name(face)
    _check_choices(typed(("as_sum", "versus", "cross")), typed(("as_csv", "as_json")))
    if columns is not None and not (cross or share):
        raise QueryError("--columns", "is for cross-tables and shares", "give --cross or --share, or leave it out")
    if as_csv and cross:
        raise QueryError("--csv", "has one row for every cell, and no cross-table", "leave --cross or --csv out")
    if marginal is None:
        if where or as_sum or versus or cross or share or as_csv:
            raise QueryError("marginal", "is not given", "name a table, for example `hushcube show FOLDER age*sex`")
        _show_contents(hc.open(folder, verify=not no_verify), rows, face, as_json=as_json)
        return
    conditions, shown = _conditions("--where", where), face or UNBIASED
    if shown != UNBIASED and (asked := typed(("as_sum", "versus", "share"))):
        problem = f"{asked[0]} has intervals on the unbiased face only"
        raise QueryError("--face", problem, f"leave --face or {asked[0]} out")
    if as_sum or versus or cross or share:
        from hushcube.cli.show_groups import show_compared, show_cross, show_shares, show_sum

        release = hc.open(folder, verify=not no_verify)
        if as_sum:
            show_sum(release, marginal, conditions, as_csv=as_csv, as_json=as_json)
        elif versus:
            others = _conditions("--versus", versus)
            show_compared(release, marginal, conditions, others, as_csv=as_csv, as_json=as_json)
        elif cross:
            show_cross(release, marginal, conditions, columns, share, shown, rows, as_json=as_json)
        elif share:
            show_shares(release, marginal, conditions, columns, share, rows, as_csv=as_csv, as_json=as_json)
        return

    def read() -> Table:
        release = hc.open(folder, verify=not no_verify)
        return release[marginal] if shown == UNBIASED else release.table(marginal, face=shown)

    found = find_table(Path(folder), marginal, face=shown, verify=not no_verify) or steadily(Path(folder), read)
    table = found.slice(conditions)
    if as_csv:
        print_csv(table.to_csv(), table.private, table.schema.caveat)
        return

    def document() -> dict[str, Any]:
        cells = _quantities(table) if table.others else documents(table)
        return {"attributes": list(table.attributes), "face": shown, "cells": list(cells)}

    def text() -> None:
        print_page(table.page(rows, more=MORE))

    print_about(table.private, as_json=as_json, document=document, text=text, caveat=table.schema.caveat)


def _check_choices(*alternatives: list[str]) -> None:
    """Of some options only one may be given."""
    for given in alternatives:
        if len(given) > 1:
            raise QueryError(given[1], f"cannot be combined with {given[0]}", "choose one of them")


def _quantities(table: Table) -> Iterator[dict[str, Any]]:
    """One document a cell: counts, sums and averages, each with its interval."""
    from hushcube.bundle.crossing import numbers_of
    from hushcube.bundle.published_table import beside

    every = (table, *table.others)
    tables = dict(zip(beside(table.attributes, *(one.what for one in every)), every, strict=True))
    numbers = {word: numbers_of(one) for word, one in tables.items()}
    for at, labels in enumerate(table.rows()):
        yield {**dict(zip(table.attributes, labels, strict=True)), **{word: each[at] for word, each in numbers.items()}}


def _conditions(option: str, given: tuple[str, ...]) -> dict[str, list[str]]:
    conditions: dict[str, list[str]] = {}
    for condition in given:
        name, equals, label = condition.partition("=")
        if not equals:
            raise QueryError(option, f"{condition!r} has no =", f"write for example `{option} sex=Female`")
        conditions.setdefault(name.strip(), []).append(label)
    return conditions


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
