"""`hushcube explore`: the page of a release, served on this machine."""

import click

from hushcube.cli.command import option, verb
from hushcube.cli.options import REQUIRED, SHAPES
from hushcube.cli.output import note


@verb("explore")
@click.argument("release", metavar="RELEASE")
@option("--port", "NUMBER", "Where to listen, on this machine alone.  [default: any free one]", type=int, default=0)
@option("--no-browser", None, "Only print the address.", is_flag=True)
@option("--target", "TARGET", REQUIRED, "targets", multiple=True)
@option("--shapes", "ATTRIBUTE=FILE", SHAPES, multiple=True)
def command(release: str, port: int, no_browser: bool, targets: tuple[str, ...], shapes: tuple[str, ...]) -> None:
    """Look at a release in a browser, with any roll-up computed when it is asked for.

    \b
    hushcube explore published
    hushcube explore published --port 8123 --no-browser

    The address is printed when the page can be opened; nobody but this machine reaches it. Ctrl-C stops it.
    """
    from hushcube.verbs.reporting import explore

    explore(release, port=port, browser=not no_browser, targets=targets, shapes=shapes, ready=click.echo)
    note("stopped")
