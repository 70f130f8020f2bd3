"""`hushcube release`: measure once, publish a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from hushcube.cli.command import option, verb
from hushcube.cli.options import (
    DATA,
    FACE,
    OUTPUT,
    SOURCES,
    TIME_LIMIT,
    as_json,
    asked_measures,
    check_limit,
    make_comparison,
    planning,
    taking,
)
from hushcube.cli.output import note, print_about, progress_bar
from hushcube.cli.recover import describe
from hushcube.errors import BadInput, PlanError, after
from hushcube.text import at_least, at_most, visible

if TYPE_CHECKING:
    from hushcube.designs.design import Design


@verb("release")
@click.argument("plan_file", metavar="[PLAN.json]", required=False)
@planning
@taking(FACE, TIME_LIMIT, *SOURCES)
@option("--engine", group=DATA, metavar="NAME", help="spark: read Parquet files with Spark.  [default: duckdb]")
@option(
    "--bad-rows",
    group=DATA,
    type=click.Choice(["refuse", "missing"]),
    default="refuse",
    metavar="RULE",
    help="refuse (the default), or count what does not fit as missing.",
)
@option("--out", group=OUTPUT, metavar="FOLDER", help="The folder to publish; it must not exist yet.")
@option("--seed", group=OUTPUT, type=int, metavar="NUMBER", help="Repeatable noise: the release is NOT PRIVATE.")
@as_json
def command(
    plan_file: str | None,
    data: str | None,
    query: str | None,
    engine: str | None,
    bad_rows: Literal["refuse", "missing"],
    out: str | None,
    face: str | None,
    time_limit: float | None,
    seed: int | None,
    measures: tuple[str, ...],
    shares: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure a plan on data, once, and publish the tables.

    \b
    hushcube release plan.json --data people.parquet --out published
    hushcube release --schema people.yaml --workload 2-way --epsilon 1 --neighbours add-remove \\
        --data people.csv --out published --face integral
    """
    from hushcube.durable import check_output
    from hushcube.model.files import read_text
    from hushcube.planning.plan import Plan
    from hushcube.verbs.releasing import release, spent

    if data is None and query is None:
        raise BadInput("--data", "is not given", "name the data, for example `--data people.parquet`")
    if out is None:
        raise BadInput("--out", "is not given", "name a new folder for the release")
    if time_limit is not None and face is None:
        raise BadInput("--time-limit", "limits the making of a face, and none is asked for", "add --face")
    limit = check_limit(time_limit)
    context = click.get_current_context()
    given = [name for name in options if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
    if plan_file is not None and given:
        raise BadInput(
            f"--{given[0].replace('_', '-')}", "cannot be combined with a plan file", "leave it out: the plan decides"
        )
    check_output(Path(out))
    measured = asked_measures(options, measures, shares)
    if plan_file is not None and (measures or shares is not None):
        raise BadInput("--measure", "cannot be combined with a plan file", "leave it out: the plan decides")
    text = None if plan_file is None else read_text(plan_file, PlanError, "plan")
    with progress_bar() as progress:
        plan = make_comparison(options, measured, progress).chosen if text is None else Plan.from_json(text)
        published = release(
            plan,
            data,
            query=query,
            engine=engine,
            bad_rows=bad_rows,
            out=out,
            seed=seed,
            face=face,
            time_limit=limit,
            progress=progress,
            tell_owner=note,
        )
    ended = published.plan.count
    run = ended.details["adaptive"] if ended.is_outcome else None  # just made: no file can be one

    def say() -> None:
        words = f" with count, {', '.join(map(str, plan.asked))}" if plan.asked else ""
        told = f"published {len(published):,} tables{words} ({published.cells:,} cells) in {out}: {plan.privacy}"
        click.echo(visible(told))
        for name, shown in published.faces.items():
            click.echo(f"and the face {name}: {describe(shown.description['report'])}")
        if run is not None:
            click.echo(f"{ended.strategy}: {spending(ended)}")
        click.echo(f"look at them with: hushcube show {out}")

    with after(spent(out)):
        print_about(
            published.private,
            as_json=as_json,
            document=lambda: {
                "out": out,
                **({"cube": [str(quantity) for quantity in plan.asked]} if plan.asked else {}),
                "tables": len(published),
                "cells": published.cells,
                "strategy": plan.strategy,
                "privacy": plan.privacy.to_dict(),
                "plan_digest": published.plan.digest,
                "faces": {name: shown.description for name, shown in published.faces.items()},
                **({} if run is None else {"adaptive": run}),
            },
            text=say,
        )


def spending(plan: Design) -> str:
    """What the run that ended with a plan used of its budget, and whether its target is met."""
    met = plan.details["adaptive"].get("target_met")
    target = "" if met is None else f"the target is {'met' if met else 'not met'}; "
    spent, left = at_most(plan.person_cost), at_least(plan.person_rest)
    return f"{target}the answers cost {spent} of epsilon, {left} is left (see PRIVACY.md for what that means)"
