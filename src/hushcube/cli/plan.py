"""`hushcube plan`: the error of every table, before any data exists."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.chart import new_picture, render
from hushcube.cli.command import option, verb
from hushcube.cli.options import (
    BEFORE,
    OUTPUT,
    as_json,
    asked_measures,
    make_comparison,
    new_file,
    planning,
    public_files,
    write_file,
)
from hushcube.cli.output import console, note, number, print_json, progress_bar
from hushcube.cli.targets import check_find, find_plan, found_document, show_found
from hushcube.cli.what_if import other_budgets, read_budgets, scenario_list, show_scenarios
from hushcube.errors import OutputError
from hushcube.text import visible

if TYPE_CHECKING:
    from hushcube.designs.design import Design
    from hushcube.planning.plan import Plan
    from hushcube.planning.planner import Candidate, Ranking
    from hushcube.planning.question import Comparison
    from hushcube.planning.summary import TableError

_SHOWN = 40
"""Tables whose errors are listed."""
_COMPARED = 8
"""Strategies that are listed."""


@verb("plan")
@planning
@option(
    "--target",
    "targets",
    group=BEFORE,
    multiple=True,
    metavar="TARGET",
    help="'age*sex: stderr<=20', with --epsilon find or --rho find.",
)
@option("--what-if", group=BEFORE, metavar="NUMBERS", help="Other budgets to look at, e.g. 0.1,0.5,1,2.")
@option("--chart", "charts", group=OUTPUT, multiple=True, metavar="FILE", help="All strategies' errors, .png or .svg.")
@option("--out", group=OUTPUT, metavar="FILE", help="Save the chosen plan (JSON) for `hushcube release`.")
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
    measured = asked_measures(options, measures, shares)
    find = check_find(options, targets)
    budgets = None if what_if is None else read_budgets(what_if)
    with progress_bar() as progress:
        found = find_plan(options, measured, targets, progress) if find else None
        comparison = found.comparison if found else make_comparison(options, measured, progress, settle=not charts)
        scenarios = () if budgets is None else other_budgets(comparison, budgets, options, progress)
    plan = comparison.chosen
    public = public_files(options, plan.schema)
    drawn = [(render(comparison, picture), picture) for picture in pictures]
    if target is not None:
        write_file(plan.to_json(), target)
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
        if plan.asked:
            show_parts(plan)
        else:
            show_comparison(comparison.parts["count"], every_variant="all" in options["strategy"])
        show_marginals(plan)
        if found:
            show_found(found)
        if scenarios:
            show_scenarios(scenarios)
        click.echo(visible(f"a release publishes what these files hold: {', '.join(public)}"))
    if target is not None:
        note(f"saved the plan {plan.digest[:12]} to {target}")
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


def document(comparison: Comparison) -> dict[str, Any]:
    """The JSON document of a comparison; beside measures, what it says of strategies and tables is about the counts."""
    plan, counts = comparison.chosen, comparison.parts["count"]
    return {
        "schema": {
            "name": plan.schema.name,
            "attributes": list(plan.schema.names),
            "sizes": list(plan.schema.sizes),
        },
        "privacy": plan.privacy.to_dict(),
        "workload": {
            "words": list(plan.workload.words),
            "marginals": len(plan.workload),
            "cells": plan.workload.cells,
        },
        **({"cube": [str(quantity) for quantity in plan.asked], "parts": _parts(plan)} if plan.asked else {}),
        **({} if plan.schema.caveat is None else {"caveat": plan.schema.caveat}),
        "plans": [_summary(candidate) for candidate in counts.candidates],
        "skipped": [{"strategy": name, "reason": reason} for name, reason in comparison.skipped.items()],
        "lower_bound": counts.least,
        "lower_bound_of_tables": counts.least_of_tables,
        "optimal": comparison.is_optimal,
        "chosen": {**_key(plan.count), "digest": plan.digest, "details": _details(plan.count)},
        "marginals": [
            {
                **({"form": t.word} if t.is_form else {}),
                "attributes": list(t.attributes),
                "cells": t.cells,
                "std_error": t.std_error,
                "margin_95": t.margin,
                **sums,
            }
            for t, sums in _with_sums(plan)
        ],
    }


def _with_sums(plan: Plan) -> Iterator[tuple[TableError, dict[str, Any]]]:
    """The tables' expected errors, with those of sums beside them."""
    from hushcube.planning.summary import table_errors

    sums = {str(plan.measured[name]): table_errors(plan, plan.measured[name]) for name in plan.sums}
    for told in table_errors(plan):
        others = {word: next(errors) for word, errors in sums.items()}
        yield told, {w: {"std_error": t.std_error, "margin_95": t.margin} for w, t in others.items()}


def show_parts(plan: Plan) -> None:
    """Each part with its share and its error, before any data is touched."""
    from rich.table import Table

    title = f"{visible(plan.schema.name)}: {len(plan.workload):,} tables, {plan.privacy}"
    grid = Table(title=title, title_justify="left")
    for name in ("part", "share of the guarantee", "strategy"):
        grid.add_column(name)
    grid.add_column("typical error of a cell's count or sum", justify="right")
    for part, design in zip(_parts(plan), plan.designs.values(), strict=True):
        grid.add_row(visible(part["part"]), design.privacy.amounts, part["strategy"], f"± {number(part['rmse'])}")
    console().print(grid)
    note("an average's error is about that of its sum over the count; `release` gives an interval for each")


def _parts(plan: Plan) -> list[dict[str, Any]]:
    """Each part of a plan with its share and the typical error of a cell's count or sum."""
    from hushcube.planning.summary import total_variance

    return [
        {
            "part": name,
            "privacy": design.privacy.to_dict(),
            "strategy": design.strategy,
            "rmse": math.sqrt(total_variance(plan, plan.measured[name]) / plan.workload.cells),
        }
        for name, design in plan.designs.items()
    ]


def _details(plan: Design) -> dict[str, Any]:
    return {**plan.details, **({} if plan.note is None else {"note": plan.note})}


def _key(plan: Design) -> dict[str, Any]:
    return {"strategy": plan.strategy, "budgets": plan.budget_rule, "recovery": plan.recovery}


def _summary(candidate: Candidate) -> dict[str, Any]:

    plan = candidate.plan
    total, discrete = plan.errors.total_variance(exact=False), plan.errors.total_variance(exact=True)
    return {
        **_key(plan),
        "groups": plan.groups,
        "total_variance": total,
        "rmse": math.sqrt(total / plan.workload.cells),
        "max_variance": plan.errors.max_variance(exact=False, weighted=False),
        "noise": f"discrete {plan.law}",
        "proof": plan.proof,
        "total_variance_discrete": discrete,
        "seconds": round(candidate.seconds, 6),
    }


def show_comparison(comparison: Ranking, *, every_variant: bool = False, to: Any = None) -> None:
    """The strategies, or every variant, as a table, the best first; `to` a console other than standard output."""
    terminal = to or console()
    terminal.print(_variants(comparison) if every_variant else _strategies(comparison))
    if comparison.least is not None:
        terminal.print(_distance(comparison), highlight=False)
    skipped = {} if comparison.is_optimal else comparison.skipped
    for name, reason in skipped.items():
        note(f"{name} was skipped: {reason}")


def _strategies(comparison: Ranking) -> Any:
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


def _variants(comparison: Ranking) -> Any:
    """A line for each distinct variant of each strategy."""
    from hushcube.planning.summary import merged_variants

    grid, is_max = _grid(comparison, "strategy", "budgets", "recovery"), _is_max(comparison)
    for name in ("sets measured", "total variance", "typical error", *["largest error"] * is_max):
        grid.add_column(name, justify="right")
    for equals in merged_variants(comparison):
        design = equals[0]
        total = design.errors.total_variance(exact=True)
        is_chosen = comparison.chosen in equals
        grid.add_row(
            "→" if is_chosen else "",
            design.strategy,
            " = ".join(dict.fromkeys(d.budget_rule for d in equals)),
            " = ".join(dict.fromkeys(d.recovery for d in equals)),
            f"{design.groups:,}",
            number(total),
            f"± {number(math.sqrt(total / design.workload.cells))}",
            *[f"± {number(math.sqrt(design.errors.max_variance(weighted=False)))}"] * is_max,
            style="bold" if is_chosen else None,
        )
    return grid


def _grid(comparison: Ranking, *columns: str) -> Any:
    """A table under what is compared, with a column for the mark of the chosen plan."""
    from rich.table import Table

    chosen = comparison.chosen
    asked = f"{len(chosen.workload):,} tables, {chosen.workload.cells:,} cells, {chosen.privacy}"
    grid = Table(title=f"{visible(chosen.schema.name)}: {asked}", title_justify="left")
    for name in ("", *columns):
        grid.add_column(name)
    return grid


def _is_max(comparison: Ranking) -> bool:
    return comparison.chosen.request.objective == "max"


def _distance(comparison: Ranking) -> str:
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


def show_marginals(plan: Plan) -> None:
    """Each table's expected standard error and 95% margin, worst last."""
    from rich.table import Table

    counts = plan.count
    grid = Table(
        title=f"expected error of a cell with {counts.strategy}, {counts.budget_rule}, {counts.recovery}",
        title_justify="left",
    )
    grid.add_column("table")
    for name in ("cells", "standard error", "95% margin", *(str(plan.measured[name]) for name in plan.sums)):
        grid.add_column(visible(name), justify="right")
    for t, sums in islice(_with_sums(plan), _SHOWN):
        others = (f"± {number(told['margin_95'])}" for told in sums.values())
        grid.add_row(visible(t.word), f"{t.cells:,}", number(t.std_error), f"± {number(t.margin)}", *others)
    console().print(grid)
    if len(plan.workload) > _SHOWN:
        note(f"... and {len(plan.workload) - _SHOWN:,} more tables: --json lists all of them")
    for name, value in counts.details.items():
        console().print(visible(f"{name.replace('_', ' ')}: {in_words(value)}"), highlight=False)
    if counts.note is not None:
        note(counts.note)
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
