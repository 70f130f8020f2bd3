"""The parts of `plan`, `release` and `show` that concern cubes: counts, sums and averages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.output import console, note, number, print_about, print_json
from hushcube.text import visible

if TYPE_CHECKING:
    from hushcube.bundle.cube import CubeRelease
    from hushcube.planning.plan import Plan


def show_plan(cube: Plan, public: Sequence[str], *, as_json: bool) -> None:
    """Each part with its share and its error, before any data is touched."""
    from rich.table import Table

    from hushcube.designs.errors import total_variance

    parts: list[dict[str, Any]] = []
    for name, plan in cube.parts.items():
        step = 1.0 if name == "count" else float(cube.schema.measure(name).resolution)
        deviation = step * math.sqrt(total_variance(plan, exact=True) / plan.workload.cells)
        parts.append({"part": name, "privacy": plan.privacy.to_dict(), "strategy": plan.strategy, "rmse": deviation})
    if as_json:
        asked = [str(asked) for asked in cube.asked]
        caveat = {} if cube.schema.caveat is None else {"caveat": cube.schema.caveat}
        print_json(
            {"cube": asked, "privacy": cube.privacy.to_dict(), "parts": parts, "public_files": list(public), **caveat}
        )
        return
    title = f"{visible(cube.schema.name)}: {len(cube.workload):,} tables, {cube.privacy}"
    grid = Table(title=title, title_justify="left")
    for name in ("part", "share of the guarantee", "strategy"):
        grid.add_column(name)
    grid.add_column("typical error of a cell's count or sum", justify="right")
    for part, plan in zip(parts, cube.parts.values(), strict=True):
        grid.add_row(visible(part["part"]), plan.privacy.amounts, part["strategy"], f"± {number(part['rmse'])}")
    console().print(grid)
    note("an average's error is about that of its sum over the count; `release` gives an interval for each")
    if cube.schema.caveat is not None:
        click.echo(visible(cube.schema.caveat))
    click.echo(visible(f"a release publishes what these files hold: {', '.join(public)}"))


def report(cube: CubeRelease, out: str, *, as_json: bool) -> None:
    """What was published."""
    words = [str(asked) for asked in cube.plan.asked]

    def document() -> dict[str, Any]:
        return {"out": out, "cube": words, "tables": len(cube.count), "privacy": cube.plan.privacy.to_dict()}

    def text() -> None:
        told = f"published {len(cube.count):,} tables with count, {', '.join(words)} in {out}: {cube.plan.privacy}"
        click.echo(visible(told))
        click.echo(f"look at them with: hushcube show {out}")

    print_about(cube.private, as_json=as_json, document=document, text=text)


def show_cube(
    cube: CubeRelease, marginal: str | None, conditions: dict[str, list[str]], rows: int, *, as_json: bool
) -> None:
    """All numbers of a table's cells; without a table, what there is."""
    if marginal is None:
        _show_contents(cube, as_json=as_json)
    else:
        _show_cells(cube, marginal, conditions, rows, as_json=as_json)


def _show_contents(cube: CubeRelease, *, as_json: bool) -> None:
    words, tables = [str(asked) for asked in cube.plan.asked], list(cube.count)

    def text() -> None:
        click.echo(visible(f"{cube.schema.name}: {cube.plan.privacy}; count, {', '.join(words)} of the tables"))
        click.echo(visible(", ".join(tables)))

    print_about(
        cube.private,
        as_json=as_json,
        document=lambda: {"cube": words, "privacy": cube.plan.privacy.to_dict(), "tables": tables},
        text=text,
        caveat=cube.schema.caveat,
    )


def _show_cells(
    cube: CubeRelease, marginal: str, conditions: dict[str, list[str]], rows: int, *, as_json: bool
) -> None:
    where, words = conditions or None, [str(asked) for asked in cube.plan.asked]
    shown = {word: cube.table(marginal, word, where) for word in ("count", *words)}
    count = cube.count.table(marginal, where)
    cells: list[dict[str, Any]] = []
    for at, labels in enumerate(product(*count.labels)):
        numbers = {word: _number(table, at) for word, table in shown.items()}
        cells.append({**dict(zip(count.attributes, labels, strict=True)), **numbers})

    def text() -> None:
        from rich.table import Table

        title = f"{visible(cube.schema.name)}: {visible(marginal)}, with 95% intervals"
        grid = Table(title=title, title_justify="left")
        for attribute in count.attributes:
            grid.add_column(visible(attribute))
        for word in shown:
            grid.add_column(visible(word), justify="right")
        for cell in cells[:rows]:
            grid.add_row(*(visible(cell[a]) for a in count.attributes), *(_text(cell[word]) for word in shown))
        console().print(grid)
        if len(cells) > rows:
            note(f"... and {len(cells) - rows:,} more cells: --rows shows more, --json all")

    print_about(
        cube.private,
        as_json=as_json,
        document=lambda: {"attributes": list(count.attributes), "cells": cells},
        text=text,
        caveat=cube.schema.caveat,
    )


def _number(table: Any, at: int) -> dict[str, float | None]:
    value = float(table.values.reshape(-1)[at])
    if not table.is_average:
        margin = float(table.margins.reshape(-1)[at])
        return {"value": value, "low_95": value - margin, "high_95": value + margin}
    low, high = float(table.low.reshape(-1)[at]), float(table.high.reshape(-1)[at])
    known = value == value  # not a number where the count is no more than noise
    return {"value": value if known else None, "low_95": low if known else None, "high_95": high if known else None}


def _text(cell: dict[str, float | None]) -> str:
    if cell["value"] is None or cell["low_95"] is None or cell["high_95"] is None:
        return "unknown"
    return f"{number(cell['value'])} ({number(cell['low_95'])} to {number(cell['high_95'])})"
