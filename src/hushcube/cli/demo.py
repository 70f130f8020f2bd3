"""`hushcube demo`: the whole path on built-in data, from the plan to tables at face value and averages."""

from __future__ import annotations

from itertools import count, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.command import option, verb
from hushcube.cli.output import print_page, progress_bar
from hushcube.shown import console

if TYPE_CHECKING:
    from hushcube.bundle.published_table import Table

_OUT = "The folder to publish.  [default: the first free of demo-release, demo-release-2, ...]"
_SAMPLE = "A made-up hospital's 100,000 stays, or the 2,201 people aboard the Titanic."


@verb("demo")
@option("--out", "FOLDER", _OUT)
@option("--sample", None, _SAMPLE, type=click.Choice(["hospital", "titanic"]), default="hospital", show_default=True)
def command(out: str | None, sample: str) -> None:
    """Plan, release and show built-in data with epsilon = 1: a made-up hospital, or the Titanic.

    The truth is shown beside the noisy tables because one is made up and the other public.
    """
    from hushcube.durable import check_output

    folder = Path(out) if out is not None else _free_folder()
    check_output(folder)
    show(sample, folder)
    example = "'diagnosis*outcome' --where diagnosis=heart" if sample == "hospital" else "'sex*survived'"
    click.echo(f"\nnext: hushcube show {folder} {example}")


def show(sample: str, folder: Path | None, *, seed: int | None = None, to: Any = None) -> None:
    """Go the whole way, publishing in a folder if there is one, and print what is seen on it `to` a console."""
    from hushcube.planning.summary import ranking_page
    from hushcube.samples import HOSPITAL, TITANIC, hospital, titanic
    from hushcube.verbs.planning import compare
    from hushcube.verbs.releasing import recover, release

    is_hospital = sample == "hospital"
    schema, people = (HOSPITAL, hospital()) if is_hospital else (TITANIC, titanic())
    # no man is in the maternity ward, so that its noise is seen to be noise
    shown, measures = ("ward*sex", ["avg(nights)"]) if is_hospital else ("class*survived", [])
    say = (to or console()).print
    say("1. Plan: the error of every strategy is known before any data is touched.\n")
    asked: dict[str, Any] = {"epsilon": 1, "neighbours": "add-remove", "measures": measures, "strategy": "auto"}
    with progress_bar() as progress:
        comparison = compare(schema, "<=2-way", **asked, progress=progress)
    print_page(ranking_page(comparison.parts["count"]), to=to)
    plan = comparison.chosen
    with progress_bar() as progress:
        published = release(plan, people, out=folder, seed=seed, progress=progress)
    shares = " and ".join(f"{name} with {part.privacy.amounts}" for name, part in plan.designs.items())
    say(f"\n2. Release: measured once, {shares}, in {folder or 'demo-release'}.")
    say("\n3. Every cell has its error bar, and every table adds up.\n")
    table = published.table(shown)
    known = _numbers(people, table)
    print_page(table.page(truth=known), to=to)
    say("\n4. At face value: whole numbers, none negative, still adding up, from the same noise at no cost.\n")
    with progress_bar() as progress:
        faced = recover(folder or published, "integral:method=local", progress=progress)
    print_page(faced.table(shown, face="face-valid").page(truth=known), to=to)
    for number, measure in enumerate(measures, start=5):
        say(f"\n{number}. Averages, with intervals.\n")
        averages = published.table("ward", measure)
        print_page(averages.page(truth=_numbers(people, averages, "nights")), to=to)


def _numbers(people: Any, table: Table, averaged: str | None = None) -> list[float]:
    """The exact counts or averages of a table's cells, which anyone may know of these people."""
    names = list(table.attributes)
    groups = people.group_by(names).aggregate([([], "count_all") if averaged is None else (averaged, "mean")])
    numbers = groups.column("count_all" if averaged is None else f"{averaged}_mean").to_pylist()
    found = dict(zip(zip(*(groups.column(name).to_pylist() for name in names), strict=True), numbers, strict=True))
    return [found.get(codes, 0) for codes in product(*table.coded)]


def _free_folder() -> Path:
    names = (Path("demo-release" + (f"-{n}" if n > 1 else "")) for n in count(1))
    return next(name for name in names if not name.exists())
