"""`hushcube release`: measure once, publish a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.command import option, verb
from hushcube.cli.options import (
    ACCOUNT,
    FACES,
    OUTPUT,
    READING,
    SOURCES,
    as_json,
    check_data,
    make_comparison,
    planning,
    taking,
    typed,
)
from hushcube.cli.output import note, print_about, progress_bar
from hushcube.cli.recover import describe
from hushcube.errors import BadInput, PlanError, after
from hushcube.text import at_least, at_most, visible

if TYPE_CHECKING:
    from hushcube.designs.design import Design

_KEY = "A key never charges or draws twice.  [default: of account, plan and folder]"


@verb("release")
@click.argument("plan_file", metavar="[PLAN.json]", required=False)
@planning
@taking(*FACES, *SOURCES, *READING)
@option("--ledger", "FILE", "Charge the release to an account of this ledger, before anything is read.", group=ACCOUNT)
@option("--account", "NAME", "The account that is charged.", group=ACCOUNT)
@option("--part", "VALUE", "The part of the account that the data is.", group=ACCOUNT)
@option("--key", "KEY", _KEY, group=ACCOUNT)
@option("--out", "FOLDER", "The folder to publish; it must not exist yet.", group=OUTPUT)
@option("--seed", "NUMBER", "Repeatable noise: the release is NOT PRIVATE.", group=OUTPUT, type=int)
@as_json
def command(plan_file: str | None, data: str | None, out: str | None, as_json: bool, **options: Any) -> None:
    """Measure a plan on data, once, and publish the tables.

    \b
    hushcube release plan.json --data people.parquet --out published
    hushcube release --schema people.yaml --workload 2-way --epsilon 1 --neighbours add-remove \\
        --data people.csv --out published --face integral
    """
    from hushcube.durable import check_output
    from hushcube.model.files import read_text
    from hushcube.planning.plan import Plan
    from hushcube.verbs.planning import face_for
    from hushcube.verbs.releasing import release, spent

    names = ("query", "engine", "bad_rows", "seed", "face", "time_limit", "ledger", "account", "part", "key")
    measuring = {name: options.pop(name) for name in names}  # the rest is about the plan
    check_data(data, measuring["query"])
    if out is None:
        raise BadInput("--out", "is not given", "name a new folder for the release")
    whole = options.get("purpose") == "face-valid" and measuring["face"] is None
    if measuring["time_limit"] is not None and measuring["face"] is None and not whole:
        raise BadInput("--time-limit", "limits the making of a face, and none is asked for", "add --face")
    if plan_file is not None and (given := typed(options)):
        raise BadInput(given[0], "cannot be combined with a plan file", "leave it out: the plan decides")
    if measuring["ledger"] is None:  # what is published already under a key is opened where it is
        check_output(Path(out))
    text = None if plan_file is None else read_text(plan_file, PlanError, "plan")
    with progress_bar() as progress:
        plan = make_comparison(options, progress).chosen if text is None else Plan.from_json(text)
        if whole:
            measuring["face"] = face_for(plan)
        published = release(plan, data, out=out, **measuring, progress=progress, tell_owner=note)
    ended = published.plan.count
    run = {"adaptive": ended.details["adaptive"]} if ended.is_outcome else {}  # just made: no file can be one
    asked = [str(quantity) for quantity in plan.asked]

    def say() -> None:
        words = f" with count, {', '.join(asked)}" if asked else ""
        told = f"published {len(published):,} tables{words} ({published.cells:,} cells) in {out}: {plan.privacy}"
        click.echo(visible(told))
        if published.receipt is not None:
            click.echo(visible(str(published.receipt)))
        for name, shown in published.faces.items():
            click.echo(f"and the face {name}: {describe(shown.description['report'], published.schema)}")
        if run:
            click.echo(f"{ended.strategy}: {spending(ended)}")
        click.echo(f"look at them with: hushcube show {out}")

    with after(spent(out)):
        document = {
            "out": out,
            **({"cube": asked} if asked else {}),
            "tables": len(published),
            "cells": published.cells,
            "strategy": plan.strategy,
            "privacy": plan.privacy.to_dict(),
            "plan_digest": published.plan.digest,
            **({} if published.receipt is None else {"receipt": published.receipt.to_dict()}),
            "faces": {name: shown.told for name, shown in published.faces.items()},
            **run,
        }
        print_about(published.private, as_json=as_json, document=lambda: document, text=say)


def spending(plan: Design) -> str:
    """What the run that ended with a plan used of its budget, and whether its target is met."""
    met = plan.details["adaptive"].get("target_met")
    target = "" if met is None else f"the target is {'met' if met else 'not met'}; "
    if plan.strategy == "selective":
        orders = plan.details["adaptive"]["shares"].items()
        told = ", ".join(f"{share:.0%} for {k}-way" for k, share in orders if k != "0")
        return f"the budget was spent where smaller tables do not explain larger ones: {told} tables"
    spent, left = at_most(plan.person_cost), at_least(plan.person_rest)
    return f"{target}the answers cost {spent} of epsilon, {left} is left (see PRIVACY.md for what that means)"
