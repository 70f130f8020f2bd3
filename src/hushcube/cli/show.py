"""`hushcube show`: a table of a release, with error bars."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.options import as_json
from hushcube.cli.output import console, note, number, print_about, print_page
from hushcube.errors import QueryError
from hushcube.text import visible

if TYPE_CHECKING:
    from hushcube.bundle.published_table import Table
    from hushcube.bundle.release import Release

UNBIASED = "unbiased"  # as in faces/value.py, which is too heavy to import for --help
MORE = "--rows shows more, --json all"


@click.command("show")
@click.argument("folder")
@click.argument("marginal", required=False)
@click.option(
    "--where",
    multiple=True,
    metavar="ATTRIBUTE=LABEL",
    help="Keep these cells; repeat it for more labels or attributes.",
)
@click.option("--sum", "as_sum", is_flag=True, help="Print the sum of the kept cells with its interval.")
@click.option("--face", metavar="NAME", help="unbiased, or another face of the release.  [default: unbiased]")
@click.option("--rows", type=click.IntRange(min=1), default=60, show_default=True, help="The most rows to print.")
@click.option("--no-verify", is_flag=True, help="Skip the checksums (large releases).")
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
    hushcube show published age*sex --face face-valid
    """
    from hushcube.api import open_release
    from hushcube.bundle.cube_bundle import is_cube, open_cube
    from hushcube.bundle.index import Found, find_table
    from hushcube.bundle.manifest import steadily
    from hushcube.cli.cubes import show_cube

    if is_cube(Path(folder)):
        if face is not None or as_sum:
            raise QueryError("--face" if face else "--sum", "is for releases of counts", "look into parts/count")
        show_cube(open_cube(Path(folder), verify=not no_verify), marginal, _conditions(where), rows, as_json=as_json)
        return
    if marginal is None:
        if where or as_sum:
            raise QueryError("marginal", "is not given", "name a table, for example `hushcube show FOLDER age*sex`")
        _show_contents(open_release(folder, verify=not no_verify), rows, face, as_json=as_json)
        return
    conditions = _conditions(where)
    if as_sum:
        if face not in (None, UNBIASED):
            raise QueryError("--face", "a sum has an interval on the unbiased face only", "leave --face or --sum out")
        _show_sum(open_release(folder, verify=not no_verify), marginal, conditions, as_json=as_json)
        return
    shown = face or UNBIASED

    def read() -> Found:
        release = open_release(folder, verify=not no_verify)
        return Found(release.schema.name, release.private, release.table(marginal, face=shown))

    found = find_table(Path(folder), marginal, face=shown, verify=not no_verify) or steadily(Path(folder), read)
    table = found.table.slice(conditions)
    print_about(
        found.private,
        as_json=as_json,
        document=lambda: {
            "attributes": list(table.attributes),
            "face": shown,
            "cells": list(_cells(table, intervals=shown == UNBIASED)),
        },
        text=lambda: print_page(table.page(rows, more=MORE)),
        caveat=table.schema.caveat,
    )


def _conditions(where: tuple[str, ...]) -> dict[str, list[str]]:
    conditions: dict[str, list[str]] = {}
    for condition in where:
        name, equals, label = condition.partition("=")
        if not equals:
            raise QueryError("--where", f"{condition!r} has no =", "write for example `--where sex=Female`")
        conditions.setdefault(name.strip(), []).append(label)
    return conditions


def _cells(table: Table, *, intervals: bool) -> Any:
    """One document a cell; intervals are those of the unbiased estimates, and stand only beside these."""
    from hushcube.bundle.published_table import beside

    own = beside(table.attributes, "value", "std_error", *(["low_95", "high_95"] if intervals else []))
    numbers = zip(
        table.values.ravel().tolist(),
        table.std_errors.ravel().tolist(),
        table.margins.ravel().tolist(),
        strict=True,
    )
    for labels, (value, std_error, margin) in zip(product(*table.labels), numbers, strict=True):
        found = (value, std_error, value - margin, value + margin)[: len(own)]
        yield dict(zip((*table.attributes, *own), (*labels, *found), strict=True))


def _show_sum(release: Release, marginal: str, conditions: dict[str, list[str]], *, as_json: bool) -> None:
    estimate = release.estimate(marginal, conditions)
    print_about(
        release.private,
        as_json=as_json,
        document=lambda: {
            "value": estimate.value,
            "std_error": estimate.std_error,
            "low_95": estimate.low,
            "high_95": estimate.high,
        },
        text=lambda: click.echo(
            f"{number(estimate.value)} ± {number(estimate.margin)}  "
            f"(95%: {number(estimate.low)} to {number(estimate.high)})"
        ),
        caveat=release.schema.caveat,
    )


def _show_contents(release: Release, rows: int, face: str | None, *, as_json: bool) -> None:
    from hushcube.planning.summary import table_errors

    plan = release.plan
    faces = [face] if face is not None else [UNBIASED, *release.faces]
    for name in faces:
        if name != UNBIASED:
            release.face(name)
    listed: list[dict[str, Any]] = [
        {
            "table": t.word,
            "attributes": list(t.attributes),
            "cells": t.cells,
            "face": name,
            "std_error": t.std_error,
        }
        for name in faces
        for t in table_errors(plan, published=True)
    ]

    def text() -> None:
        from rich.table import Table

        title = f"{visible(release.schema.name)}: {len(release):,} tables, {plan.privacy}"
        grid = Table(title=title, title_justify="left")
        grid.add_column("table")
        if len(faces) > 1:
            grid.add_column("face")
        grid.add_column("cells", justify="right")
        grid.add_column("standard error", justify="right")
        for entry in listed[:rows]:
            shown = [entry["face"]] if len(faces) > 1 else []
            grid.add_row(visible(entry["table"]), *shown, f"{entry['cells']:,}", number(entry["std_error"]))
        console().print(grid)
        if len(listed) > rows:
            note(f"... and {len(listed) - rows:,} more tables: {MORE}")

    print_about(
        release.private,
        as_json=as_json,
        document=lambda: {
            "name": release.schema.name,
            "privacy": plan.privacy.to_dict(),
            "faces": {name: shown.description for name, shown in release.faces.items()},
            "tables": listed,
        },
        text=text,
        caveat=release.schema.caveat,
    )
