"""`hushcube plan`: the error of every table, before any data exists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
from hushcube.cli.output import note, print_json, print_page, progress_bar
from hushcube.cli.targets import check_find, find_plan, found_document, other_budgets, read_budgets, scenario_list
from hushcube.errors import OutputError
from hushcube.text import visible
from hushcube.verbs.charting import new_picture, render

if TYPE_CHECKING:
    from hushcube.designs.design import Design
    from hushcube.planning.plan import Plan
    from hushcube.planning.planner import Candidate
    from hushcube.planning.question import Comparison

_MORE = "--json lists all of them"
_EVERY = "--strategy all shows every variant"


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
        scenarios = None if budgets is None else other_budgets(comparison, budgets, options, progress)
    plan = comparison.chosen
    public = public_files(options, plan.schema)
    drawn = [(render(comparison, picture, "--chart"), picture) for picture in pictures]
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
        print_page(comparison.page(every_variant="all" in options["strategy"], more=_MORE, every=_EVERY))
        if found:
            print_page(found.page())
        if scenarios:
            print_page(scenarios.page())
        click.echo(visible(f"a release publishes what these files hold: {', '.join(public)}"))
    if target is not None:
        note(f"saved the plan {plan.digest[:12]} to {target}")
    for path in pictures:
        note(f"drew the chart {path}")


def new_outputs(out: str | None, charts: Sequence[str]) -> tuple[Path | None, list[Path]]:
    """The files to write, checked before any work is done for them."""
    target = None if out is None else new_file(out)
    pictures = [new_picture(path, "--chart") for path in charts]
    places = [path.absolute() for path in (*pictures, *([target] if target else []))]
    if len(set(places)) < len(places):
        raise OutputError("--chart", "two files have the same name", "name each file once")
    return target, pictures


def document(comparison: Comparison) -> dict[str, Any]:
    """The JSON document of a comparison; beside measures, what it says of strategies and tables is about the counts."""
    from hushcube.planning.pages import with_sums

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
                **{word: {"std_error": s.std_error, "margin_95": s.margin} for word, s in sums.items()},
            }
            for t, sums in with_sums(plan)
        ],
    }


def _parts(plan: Plan) -> list[dict[str, Any]]:
    """Each part of a plan with its share and the typical error of a cell's count or sum."""
    from hushcube.planning.pages import typical_error

    return [
        {
            "part": name,
            "privacy": design.privacy.to_dict(),
            "strategy": design.strategy,
            "rmse": typical_error(plan, name),
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
