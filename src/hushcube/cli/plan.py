"""`hushcube plan`: the error of every table, before any data exists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.command import option, verb
from hushcube.cli.options import BEFORE, OUTPUT, as_json, asked, make_comparison, planning, public_files
from hushcube.cli.output import note, print_json, print_page, progress_bar
from hushcube.durable import check_file, new_file
from hushcube.errors import BadInput, OutputError
from hushcube.progress import Progress
from hushcube.text import visible
from hushcube.verbs.charting import new_picture, render

if TYPE_CHECKING:
    from hushcube.designs.design import Design
    from hushcube.planning.inverse import Found
    from hushcube.planning.planner import Candidate
    from hushcube.planning.question import Comparison, Scenario

FIND = "find"  # stands where a budget is not given but found
_WORDS: dict[str, Any] = {
    "more": "--json lists all of them",
    "every": "--strategy all shows every variant",
    "balance": "--balance",
    "largest": "--objective max",
}
_TARGET = "'age*sex: stderr<=20', with --epsilon find or --rho find."


@verb("plan")
@planning
@option("--target", "TARGET", _TARGET, "targets", group=BEFORE, multiple=True)
@option("--what-if", "NUMBERS", "Other budgets to look at, e.g. 0.1,0.5,1,2.", group=BEFORE)
@option("--chart", "FILE", "All strategies' errors, .png or .svg.", "charts", group=OUTPUT, multiple=True)
@option("--out", "FILE", "Save the chosen plan (JSON) for `hushcube release`.", group=OUTPUT)
@as_json
def command(
    out: str | None,
    targets: tuple[str, ...],
    what_if: str | None,
    charts: tuple[str, ...],
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
    from hushcube.planning.question import checked, what_if as other_budgets

    target, pictures = _new_outputs(out, charts)
    find = _check_find(options, targets)
    budgets = None if what_if is None else checked([text.strip() for text in what_if.split(",")])
    with progress_bar() as progress:
        found = _find(options, targets, progress, settle=not charts) if find else None
        comparison = found.comparison if found else make_comparison(options, progress, settle=not charts)
        scenarios = None if budgets is None else other_budgets(comparison.question, budgets, progress=progress)
    plan = comparison.chosen
    public = public_files(options, plan.schema)
    files = [(render(comparison, picture, "--chart"), picture, "--chart") for picture in pictures]
    if target is not None:
        files = [(plan.to_json().encode("utf-8"), target, "--out"), *files]
    for content, path, named_by in files:
        with new_file(path, named_by) as file:
            file.write_bytes(content)
    if as_json:
        extra = {
            "public_files": public,
            **(_found(found) if found else {}),
            **({"what_if": [_scenario(each) for each in scenarios]} if scenarios else {}),
        }
        print_json({**_document(comparison), **extra})
    else:
        print_page(comparison.page(every_variant="all" in options["strategy"], **_WORDS))
        if found:
            print_page(found.page())
        if scenarios:
            print_page(scenarios.page())
        click.echo(visible(f"a release publishes what these files hold: {', '.join(public)}"))
    if target is not None:
        note(f"saved the plan {plan.digest[:12]} to {target}")
    for path in pictures:
        note(f"drew the chart {path}")


def _new_outputs(out: str | None, charts: Sequence[str]) -> tuple[Path | None, list[Path]]:
    """The files to write, checked before any work is done for them."""
    target = None if out is None else Path(out)
    if target is not None:
        check_file(target, "--out")
    pictures = [new_picture(path, "--chart") for path in charts]
    places = [path.absolute() for path in (*pictures, target) if path]
    if len(set(places)) < len(places):
        raise OutputError("--chart", "two files have the same name", "name each file once")
    return target, pictures


def _check_find(options: dict[str, Any], targets: Sequence[str]) -> bool:
    """Whether a budget is to be found: targets and the word `find` go together."""
    found = [name for name in ("epsilon", "rho") if options[name] == FIND]
    given = [name for name in ("epsilon", "rho") if options[name] is not None]
    if found and not targets:
        example = 'say which error is wanted, for example `--target "age*sex: stderr<=20"`'
        raise BadInput(f"--{found[0]}", "`find` needs a target", example)
    if targets and (not found or len(given) > 1):
        problem = "needs one budget to find" if found or not given else "cannot be combined with a budget that is given"
        raise BadInput("--target", problem, "write `--epsilon find`, `--epsilon find --delta D` or `--rho find`")
    return bool(found)


def _find(options: dict[str, Any], targets: Sequence[str], progress: Progress, *, settle: bool) -> Found:
    """The smallest budget found that meets the targets, and its plan."""
    from hushcube.verbs.planning import find_budget

    if options["purpose"] is not None:
        fix = "find it for unbiased tables, or try budgets with `hushcube evaluate --face integral:method=entropy`"
        raise BadInput("--for", "the errors of face values depend on the data, so no budget can be found for them", fix)
    budget: Any = {"guarantee": "rho" if options["rho"] == FIND else "epsilon", "delta": options["delta"]}
    return find_budget(**asked(options), **budget, targets=targets, progress=progress, settle=settle)


def _found(found: Found) -> dict[str, Any]:
    """The fields that targets add to the JSON document."""
    from hushcube.planning.question import amount

    return {
        "found": {amount(found.plan.privacy): found.budget},
        "least": found.least and {amount(found.plan.privacy): found.least},
        "searched": found.searched,
        "targets": [
            {
                "target": str(goal.target),
                "tables": len(goal.tables),
                **({"quantity": str(goal.quantity)} if goal.quantity.measure else {}),
                "measure": goal.target.error,
                "bound": goal.target.bound,
                "reached": reached,
            }
            for goal, reached in zip(found.goals, found.reached, strict=True)
        ],
    }


def _document(comparison: Comparison) -> dict[str, Any]:
    """The JSON document of a comparison; beside measures, what it says of strategies and tables is about the counts."""
    from hushcube.planning.summary import typical_error, with_sums

    plan, counts = comparison.chosen, comparison.parts["count"]
    schema, workload = plan.schema, plan.workload
    parts = [
        {"part": name, "privacy": each.privacy.to_dict(), "strategy": each.strategy, "rmse": typical_error(plan, name)}
        for name, each in plan.designs.items()
    ]
    note = {} if plan.count.note is None else {"note": plan.count.note}
    return {
        "schema": {"name": schema.name, "attributes": list(schema.names), "sizes": list(schema.sizes)},
        "privacy": plan.privacy.to_dict(),
        "workload": {"words": list(workload.words), "marginals": len(workload), "cells": workload.cells},
        **({"cube": [str(quantity) for quantity in plan.asked], "parts": parts} if plan.asked else {}),
        **({} if schema.caveat is None else {"caveat": schema.caveat}),
        "plans": [_summary(candidate) for candidate in counts.candidates],
        "skipped": [{"strategy": name, "reason": reason} for name, reason in comparison.skipped.items()],
        "lower_bound": counts.least,
        "lower_bound_of_tables": counts.least_of_tables,
        "optimal": comparison.is_optimal,
        "chosen": {
            **_key(plan.count),
            "digest": plan.digest,
            "details": {**plan.details, **note},
            **_beside(plan.count),
        },
        "bounds": [bound.to_dict() for bound in plan.bounds],
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


def _beside(plan: Design) -> dict[str, Any]:
    """What generalised least squares would do with the same measurement, beside least squares on the answers."""
    from hushcube.designs import LatticeDesign

    if not (isinstance(plan, LatticeDesign) and plan.projects):
        return {}
    ways = (plan.recovered_by("gls"), plan)
    return {"recoveries": {each.recovery: _total(each) for each in ways}}


def _key(plan: Design) -> dict[str, Any]:
    return {"strategy": plan.strategy, "budgets": plan.budget_rule, "recovery": plan.recovery_told}


def _total(plan: Design) -> dict[str, Any]:
    """Of the continuous laws, which papers tell; the noise that is drawn has a little less."""
    total = plan.errors.total_variance(exact=False)
    return {"total_variance": total, "rmse": math.sqrt(total / plan.workload.cells)}


def _summary(candidate: Candidate) -> dict[str, Any]:
    plan = candidate.plan
    return {
        **_key(plan),
        "groups": plan.groups,
        **_total(plan),
        "max_variance": plan.errors.max_variance(exact=False, weighted=False),
        "noise": f"discrete {plan.law}",
        "proof": plan.proof,
        "total_variance_discrete": plan.errors.total_variance(exact=True),
        "seconds": round(candidate.seconds, 6),
    }


def _scenario(scenario: Scenario) -> dict[str, Any]:
    """A scenario in the JSON document; fields mean what they mean elsewhere in it."""
    from hushcube.planning.question import amount

    return {
        amount(scenario.plan.privacy): scenario.budget,
        **_key(scenario.plan.count),
        **_total(scenario.plan.count),
        "total_variance_discrete": scenario.total_variance,
        "median_std_error": scenario.median_std_error,
        "worst_std_error": scenario.worst_std_error,
    }
