"""`hushcube plan`: the error of every table, before any data exists."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.options import as_json, make_comparison, new_file, planning, write_file
from hushcube.cli.output import console, note, number, print_json, progress_bar, visible

if TYPE_CHECKING:
    from hushcube.plan.plan import Plan
    from hushcube.plan.planner import Candidate, Comparison

_SHOWN = 40


@click.command("plan")
@planning
@click.option("--out", metavar="FILE", help="Save the chosen plan (JSON) for `hushcube release`.")
@as_json
def command(out: str | None, as_json: bool, **options: Any) -> None:
    """Compare strategies and see the error of every table before any data is touched.

    \b
    hushcube plan --schema people.yaml --workload 2-way --epsilon 1 --neighbours add-remove
    hushcube plan --schema people.yaml --workload "<=3-way" --rho 0.5 --neighbours add-remove --out plan.json
    """
    target = None if out is None else new_file(out)
    with progress_bar() as progress:
        comparison = make_comparison(options, progress)
    if target is not None:
        save(comparison.chosen, target)
    if as_json:
        print_json(document(comparison))
    else:
        show_comparison(comparison)
        show_marginals(comparison.chosen)
    if target is not None:
        note(f"saved the plan {comparison.chosen.digest[:12]} to {target}")


def save(plan: Plan, target: Path) -> None:
    """Write a plan file whole or not at all."""
    write_file(plan.to_json(), target)


def document(comparison: Comparison) -> dict[str, Any]:
    """The JSON document of a comparison."""
    from hushcube.plan import error, margins

    chosen = comparison.chosen
    names = chosen.schema.names
    asked = chosen.workload.marginals
    ids = chosen.request.marginals.ids(asked)
    rows = zip(
        asked,
        error.exact_cell_variances(chosen)[ids].tolist(),
        margins.margins(chosen)[ids].tolist(),
        strict=True,
    )
    return {
        "schema": {"name": chosen.schema.name, "attributes": list(names), "sizes": list(chosen.schema.sizes)},
        "privacy": chosen.privacy.to_dict(),
        "workload": {
            "words": list(chosen.workload.words),
            "marginals": len(chosen.workload),
            "cells": chosen.workload.cells,
        },
        "plans": [_summary(candidate) for candidate in comparison.candidates],
        "skipped": [{"strategy": name, "reason": reason} for name, reason in comparison.skipped.items()],
        "chosen": {**_key(chosen), "digest": chosen.digest},
        "marginals": [
            {
                "attributes": [names[i] for i in marginal],
                "cells": chosen.schema.cells(marginal),
                "std_error": math.sqrt(variance),
                "margin_95": margin,
            }
            for marginal, variance, margin in rows
        ],
    }


def _key(plan: Plan) -> dict[str, Any]:
    return {"strategy": plan.strategy, "budgets": plan.budget_rule, "recovery": plan.recovery}


def _summary(candidate: Candidate) -> dict[str, Any]:
    from hushcube.plan import error

    plan = candidate.plan
    total, discrete = error.total_variance(plan, exact=False), error.total_variance(plan, exact=True)
    return {
        **_key(plan),
        "groups": len(plan.measured),
        "total_variance": total,
        "rmse": math.sqrt(total / plan.workload.cells),
        "max_variance": float(error.cell_variances(plan, exact=False).max()),
        "noise": f"discrete {plan.law}",
        "proof": plan.proof,
        "total_variance_discrete": discrete,
        "seconds": round(candidate.seconds, 6),
    }


def show_comparison(comparison: Comparison, *, to: Any = None) -> None:
    """The candidates as a table, the best first; printed `to` a console, standard output by default."""
    from rich.table import Table

    from hushcube.plan import error

    chosen = comparison.chosen
    grid = Table(
        title=f"{visible(chosen.schema.name)}: {len(chosen.workload):,} tables, "
        f"{chosen.workload.cells:,} cells, {chosen.privacy}",
        title_justify="left",
    )
    for name in ("", "strategy", "budgets", "recovery"):
        grid.add_column(name)
    for name in ("sets measured", "total variance", "typical error"):
        grid.add_column(name, justify="right")
    for alike in _merged(comparison):
        plan = alike[0]
        total = error.total_variance(plan, exact=True)
        grid.add_row(
            "→" if chosen in alike else "",
            plan.strategy,
            " = ".join(dict.fromkeys(p.budget_rule for p in alike)),
            " = ".join(dict.fromkeys(p.recovery for p in alike)),
            f"{len(plan.measured):,}",
            number(total),
            f"± {number(math.sqrt(total / plan.workload.cells))}",
            style="bold" if chosen in alike else None,
        )
    (to or console()).print(grid)
    for name, reason in comparison.skipped.items():
        note(f"{name} was skipped: {reason}")


def _merged(comparison: Comparison) -> list[list[Plan]]:
    """The plans, best first; variants of a strategy that come to the same are one row."""
    from hushcube.plan import error

    groups: dict[tuple[str, str], list[Plan]] = {}
    for plan in (candidate.plan for candidate in comparison.candidates):
        groups.setdefault((plan.strategy, f"{error.weighted_variance(plan):.9g}"), []).append(plan)
    return sorted(groups.values(), key=lambda alike: error.weighted_variance(alike[0]))


def show_marginals(plan: Plan) -> None:
    """Each table's expected standard error and 95% margin, worst last."""
    from rich.table import Table

    from hushcube.plan import error, margins

    grid = Table(
        title=f"expected error of a cell with {plan.strategy}, {plan.budget_rule}, {plan.recovery}",
        title_justify="left",
    )
    grid.add_column("table")
    for name in ("cells", "standard error", "95% margin"):
        grid.add_column(name, justify="right")
    variances, widths = error.exact_cell_variances(plan), margins.margins(plan)
    ids = plan.request.marginals.ids(plan.workload.marginals[:_SHOWN])
    for marginal, at in zip(plan.workload.marginals, ids.tolist(), strict=False):
        grid.add_row(
            visible(plan.schema.describe(marginal)),
            f"{plan.schema.cells(marginal):,}",
            number(math.sqrt(variances[at])),
            f"± {number(widths[at])}",
        )
    console().print(grid)
    if len(plan.workload) > _SHOWN:
        note(f"... and {len(plan.workload) - _SHOWN:,} more tables: --json lists all of them")
