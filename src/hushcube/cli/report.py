"""`hushcube report`: a page about a release, for people who do not have hushcube."""

import click

from hushcube.cli.command import option, verb
from hushcube.cli.options import REQUIRED, SHAPES
from hushcube.cli.output import note, progress_bar


@verb("report")
@click.argument("release", metavar="RELEASE")
@option("--out", "PATH", "The new page: a file that ends in .html, or a folder.", required=True)
@option("--target", "TARGET", REQUIRED, "targets", multiple=True)
@option("--shapes", "ATTRIBUTE=FILE", SHAPES, multiple=True)
def command(release: str, out: str, targets: tuple[str, ...], shapes: tuple[str, ...]) -> None:
    """Write a page about a release that works offline: tables, charts, sums of cells, comparisons.

    \b
    hushcube report published --out published.html
    hushcube report published --out site --target "age*sex: stderr<=20"

    A file that ends in .html holds everything; a folder may hold more, and loads tables when they are looked at.
    """
    from hushcube.verbs.reporting import report

    with progress_bar() as progress:
        path = report(release, out, targets=targets, shapes=shapes, progress=progress)
    note(f"wrote {path}: open {path if path.is_file() else path / 'index.html'} in a browser")
