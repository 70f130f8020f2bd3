"""`hushcube verify`: whether a release is whole and keeps its promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcube.cli.options import as_json
from hushcube.cli.output import print_json, progress_bar, visible

if TYPE_CHECKING:
    from hushcube.release.verify import Check


@click.command("verify")
@click.argument("folder")
@as_json
def command(folder: str, as_json: bool) -> None:
    """Check a release: its files, its privacy, its tables, and what each face promises.

    Every problem is told. The exit code is 0 if all holds, 1 if not, 2 if FOLDER is no release.

    \b
    hushcube verify published
    """
    from hushcube.release.verify import verify

    with progress_bar() as progress:
        verdict = verify(Path(folder), progress)
    if as_json:
        checks = [
            {"name": c.name, "what": c.what, "holds": c.holds, "checked": c.checked, "problems": list(c.problems)}
            for c in verdict.checks
        ]
        print_json({"holds": verdict.holds, "checks": checks})
    else:
        for check in verdict.checks:
            click.echo(visible(_line(check)))
        for check in verdict.checks:
            for problem in check.problems:
                click.echo(visible(f"{check.name}: {problem}"))
        click.echo("All of it holds." if verdict.holds else "The release does not hold what it promises.")
    if not verdict.holds:
        raise click.exceptions.Exit(1)


def _line(check: Check) -> str:
    mark = "✗" if not check.holds else "✓" if check.checked else "–"
    return f"{mark} {check.name}: {check.what} ({check.checked:,} checked)"
