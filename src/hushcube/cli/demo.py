"""`hushcube demo`: the whole path on the built-in Titanic data."""

from __future__ import annotations

from itertools import count, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.command import verb
from hushcube.cli.output import progress_bar

if TYPE_CHECKING:
    from hushcube.bundle.published_table import Table


@verb("demo")
@click.option(
    "--out",
    metavar="FOLDER",
    help="The folder to publish.  [default: the first free of demo-release, demo-release-2, ...]",
)
def command(out: str | None) -> None:
    """Plan, release and show the built-in Titanic data: 2,201 people, epsilon = 1.

    The truth is shown beside the noisy tables because these people's data is public.
    """
    from hushcube.api import compare, release
    from hushcube.cli.output import print_page
    from hushcube.durable import check_output
    from hushcube.samples import TITANIC, titanic

    folder = Path(out) if out is not None else _free_folder()
    check_output(folder)
    with progress_bar() as progress:
        comparison = compare(TITANIC, "<=2-way", epsilon=1, neighbours="add-remove", progress=progress)
    click.echo("1. Plan: the error of every table, before any data is touched.\n")
    print_page(comparison.page())
    with progress_bar() as progress:
        published = release(comparison.chosen, titanic(), out=folder, progress=progress)
    click.echo(f"\n2. Release: measured once, published in {folder}.\n")
    click.echo("3. Show: every cell with its error bar, every table adding up.\n")
    for name in ("class*survived", "class"):
        table = published.table(name)
        print_page(table.page(truth=truth(table)))
    click.echo(f"next: hushcube show {folder} sex*survived --where sex=female")
    click.echo(f"      hushcube recover {folder}  (whole numbers, no negative cells, at no cost)")


def truth(table: Table) -> Any:
    """The exact counts of a table of the Titanic, which anyone may know."""
    from hushcube.samples import titanic

    people = titanic().group_by(list(table.attributes)).aggregate([([], "count_all")]).to_pylist()
    counts = {tuple(group[a] for a in table.attributes): group["count_all"] for group in people}
    return [counts.get(labels, 0) for labels in product(*table.labels)]


def _free_folder() -> Path:
    names = (Path("demo-release" + (f"-{n}" if n > 1 else "")) for n in count(1))
    return next(name for name in names if not name.exists())
