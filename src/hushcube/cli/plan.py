"""`hushcube plan`: the error of every table, before any data exists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.chart import new_picture, render
from hushcube.cli.options import (
    as_json,
    make_comparison,
    make_cube,
    measuring,
    new_file,
    planning,
    public_files,
    write_file,
)
from hushcube.cli.output import console, note, number, print_json, progress_bar
from hushcube.cli.targets import check_find, find_plan, found_document, show_found
from hushcube.cli.what_if import other_budgets, read_budgets, scenario_list, show_scenarios
from hushcube.errors import BadInput, OutputError
from hushcube.text import visible

if TYPE_CHECKING:
    from hushcube.designs.design import Design
    from hushcube.planning.planner import Candidate, Comparison

_SHOWN = 40
"""Tables whose errors are listed."""
_COMPARED = 8
"""Strategies that are listed."""


@click.command("plan")
@planning
@measuring
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    help='An error to reach, e.g. "age*sex: stderr<=20", with --epsilon find or --rho find; repeatable.',
)
@click.option("--what-if", metavar="NUMBERS", help="Other budgets to look at, e.g. 0.1,0.5,1,2.")
@click.option(
    "--chart", "charts", multiple=True, metavar="FILE", help="Draw all strategies' errors, .png or .svg; repeatable."
)
@click.option("--out", metavar="FILE", help="Save the chosen plan (JSON) for `hushcube release`.")
@as_json
def command(
    out: str | None,
    targets: tuple[str, ...],
    what_if: str | None,
    charts: tuple[str, ...],
    measures: tuple[str, ...],
    shares: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare strategies and see the error of every table before any data is touched.

    \b
    hushcube plan --schema people.yaml --workload 2-way --epsilon 1 --neighbours add-remove
    hushcube plan --schema people.yaml --workload "<=3-way" --rho 0.5 --neighbours add-remove --out plan.json
    hushcube plan --schema people.yaml --workload 2-way --epsilon find --target "age*sex: stderr<=20" \\
        --neighbours add-remove
    """
    target, pictures = new_outputs(out, charts)
    if measures or shares is not None:
        if targets or what_if is not None or charts:
            option = "--target" if targets else "--chart" if charts else "--what-if"
            raise BadInput(option, "stands beside --measure", "plan the counts alone for that")
        from hushcube.cli.cubes import show_plan

        cube = make_cube(options, measures, shares)
        show_plan(cube, public_files(options, cube.schema), as_json=as_json)
        if target is not None:
            write_file(cube.to_json(), target)
            note(f"saved the plan to {target}")
        return
    find = check_find(options, targets)
    budgets = None if what_if is None else read_budgets(what_if)
    with progress_bar() as progress:
        found = find_plan(options, targets, progress) if find else None
        comparison = found.comparison if found else make_comparison(options, progress, settle=not charts)
        scenarios = () if budgets is None else other_budgets(comparison, budgets, options, progress)
    public = public_files(options, comparison.chosen.schema)
    drawn = [(render(comparison, picture), picture) for picture in pictures]
    if target is not None:
        save(comparison.chosen, target)
    for picture, path in drawn:
        write_file(picture, path, "--chart")
    if as_json:
        extra = {
            "public_files": public,
            **(found_document(found) if found else {}),
            **({"what_if": scenario_list(scenarios)} if scenarios else {}),
        }
        print_json({**document(comparison), **extra})
    else:
        show_comparison(comparison, every_variant=options["strategy"] == "all")
        show_marginals(comparison.chosen)
        if found:
            show_found(found)
        if scenarios:
            show_scenarios(scenarios)
        click.echo(visible(f"a release publishes what these files hold: {', '.join(public)}"))
    if target is not None:
        note(f"saved the plan {comparison.chosen.digest[:12]} to {target}")
    for path in pictures:
        note(f"drew the chart {path}")


def new_outputs(out: str | None, charts: Sequence[str]) -> tuple[Path | None, list[Path]]:
    """The files to write, checked before any work is done for them."""
    target = None if out is None else new_file(out)
    pictures = [new_picture(path) for path in charts]
    places = [path.absolute() for path in (*pictures, *([target] if target else []))]
    if len(set(places)) < len(places):
        raise OutputError("--chart", "two files have the same name", "name each file once")
    return target, pictures


def save(plan: Design, target: Path) -> None:
    """Write a plan file whole or not at all."""
    write_file(plan.to_json(), target)


def document(comparison: Comparison) -> dict[str, Any]:
    """The JSON document of a comparison."""
    from hushcube.planning.summary import table_errors

    chosen = comparison.chosen
    return {
        "schema": {
            "name": chosen.schema.name,
            "attributes": list(chosen.schema.names),
            "sizes": list(chosen.schema.sizes),
        },
        "privacy": chosen.privacy.to_dict(),
        "workload": {
            "words": list(chosen.workload.words),
            "marginals": len(chosen.workload),
            "cells": chosen.workload.cells,
        },
        **({} if chosen.schema.caveat is None else {"caveat": chosen.schema.caveat}),
        "plans": [_summary(candidate) for candidate in comparison.candidates],
        "skipped": [{"strategy": name, "reason": reason} for name, reason in comparison.skipped.items()],
        "lower_bound": comparison.least,
        "lower_bound_of_tables": comparison.least_of_tables,
        "optimal": comparison.is_optimal,
        "chosen": {**_key(chosen), "digest": chosen.digest, "details": _details(chosen)},
        "marginals": [
            {
                **({"form": t.word} if t.is_form else {}),
                "attributes": list(t.attributes),
                "cells": t.cells,
                "std_error": t.std_error,
                "margin_95": t.margin,
            }
            for t in table_errors(chosen)
        ],
    }


def _details(plan: Design) -> dict[str, Any]:
    return {**plan.details, **({} if plan.note is None else {"note": plan.note})}


def _key(plan: Design) -> dict[str, Any]:
    return {"strategy": plan.strategy, "budgets": plan.budget_rule, "recovery": plan.recovery}


def _summary(candidate: Candidate) -> dict[str, Any]:
    from hushcube.designs import errors as error

    plan = candidate.plan
    total, discrete = error.total_variance(plan, exact=False), error.total_variance(plan, exact=True)
    return {
        **_key(plan),
        "groups": plan.groups,
        "total_variance": total,
        "rmse": math.sqrt(total / plan.workload.cells),
        "max_variance": error.max_variance(plan, exact=False, weighted=False),
        "noise": f"discrete {plan.law}",
        "proof": plan.proof,
        "total_variance_discrete": discrete,
        "seconds": round(candidate.seconds, 6),
    }


def show_comparison(comparison: Comparison, *, every_variant: bool = False, to: Any = None) -> None:
    """The strategies, or every variant, as a table, the best first; `to` a console other than standard output."""
    terminal = to or console()
    terminal.print(_variants(comparison) if every_variant else _strategies(comparison))
    if comparison.least is not None:
        terminal.print(_distance(comparison), highlight=False)
    skipped = {} if comparison.is_optimal else comparison.skipped
    for name, reason in skipped.items():
        note(f"{name} was skipped: {reason}")


def _strategies(comparison: Comparison) -> Any:
    """A line for each distinct strategy."""
    from hushcube.planning.summary import compared_strategies

    lines = compared_strategies(comparison)
    grid, is_max = _grid(comparison, "strategy", "what it measures"), _is_max(comparison)
    for name in ("typical error", *["largest error"] * is_max, "total variance", "times the best"):
        grid.add_column(name, justify="right")
    for line in lines[:_COMPARED]:
        grid.add_row(
            "→" if line.is_chosen else "",
            " = ".join(line.names),
            line.measures,
            f"± {number(line.typical_error)}",
            *[f"± {number(line.largest_error)}"] * is_max,
            number(line.total_variance),
            number(float(f"{line.times_best:.3g}")),
            style="bold" if line.is_chosen else None,
        )
    if len(lines) > _COMPARED:
        more = len(lines) - _COMPARED
        grid.caption = (
            f"... and {more} more {'strategy' if more == 1 else 'strategies'}: --strategy all shows every variant"
        )
        grid.caption_justify = "left"
    return grid


def _variants(comparison: Comparison) -> Any:
    """A line for each distinct variant of each strategy."""
    from hushcube.designs import errors as error
    from hushcube.planning.summary import merged_variants

    grid, is_max = _grid(comparison, "strategy", "budgets", "recovery"), _is_max(comparison)
    for name in ("sets measured", "total variance", "typical error", *["largest error"] * is_max):
        grid.add_column(name, justify="right")
    for equals in merged_variants(comparison):
        design = equals[0]
        total = error.total_variance(design, exact=True)
        is_chosen = comparison.chosen in equals
        grid.add_row(
            "→" if is_chosen else "",
            design.strategy,
            " = ".join(dict.fromkeys(d.budget_rule for d in equals)),
            " = ".join(dict.fromkeys(d.recovery for d in equals)),
            f"{design.groups:,}",
            number(total),
            f"± {number(math.sqrt(total / design.workload.cells))}",
            *[f"± {number(math.sqrt(error.max_variance(design, weighted=False)))}"] * is_max,
            style="bold" if is_chosen else None,
        )
    return grid


def _grid(comparison: Comparison, *columns: str) -> Any:
    """A table under what is compared, with a column for the mark of the chosen plan."""
    from rich.table import Table

    chosen = comparison.chosen
    asked = f"{len(chosen.workload):,} tables, {chosen.workload.cells:,} cells, {chosen.privacy}"
    grid = Table(title=f"{visible(chosen.schema.name)}: {asked}", title_justify="left")
    for name in ("", *columns):
        grid.add_column(name)
    return grid


def _is_max(comparison: Comparison) -> bool:
    return comparison.chosen.request.options.objective == "max"


def _distance(comparison: Comparison) -> str:
    """How far the chosen plan is from the best possible one."""
    from hushcube.strategies.objective import objective_value

    if comparison.is_optimal:
        return "optimal: no plan of this kind can have less total variance"
    least, reached = comparison.least or 0.0, objective_value(comparison.chosen)
    if not least:
        return ""
    of_all = f"{number(reached / least)} times the best possible"
    if (of_tables := comparison.least_of_tables) is None:
        return f"total variance at most {of_all}"
    near = number(reached / of_tables)
    return f"total variance at most {near} times that of the best plan of tables of counts, and {of_all}"


def show_marginals(plan: Design) -> None:
    """Each table's expected standard error and 95% margin, worst last."""
    from rich.table import Table

    from hushcube.planning.summary import table_errors

    grid = Table(
        title=f"expected error of a cell with {plan.strategy}, {plan.budget_rule}, {plan.recovery}",
        title_justify="left",
    )
    grid.add_column("table")
    for name in ("cells", "standard error", "95% margin"):
        grid.add_column(name, justify="right")
    for t in islice(table_errors(plan), _SHOWN):
        grid.add_row(visible(t.word), f"{t.cells:,}", number(t.std_error), f"± {number(t.margin)}")
    console().print(grid)
    if len(plan.workload) > _SHOWN:
        note(f"... and {len(plan.workload) - _SHOWN:,} more tables: --json lists all of them")
    for name, value in plan.details.items():
        console().print(visible(f"{name.replace('_', ' ')}: {in_words(value)}"), highlight=False)
    if plan.note is not None:
        note(plan.note)
    if plan.schema.caveat is not None:
        click.echo(visible(plan.schema.caveat))


def in_words(value: Any) -> str:
    """A detail of a plan, for people.

    >>> in_words({"age": [3, 4]}), in_words(784.0), in_words(["age*sex", "sex"])
    ('age 3, 4', '784', 'age*sex, sex')
    """
    if isinstance(value, dict):
        return "; ".join(f"{key} {in_words(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value)) or "none"
    return number(value) if isinstance(value, float) else str(value)
