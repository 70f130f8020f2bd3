"""`hushcube verify`: whether a release is whole and keeps its promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hushcube.cli.options import as_json
from hushcube.cli.output import print_about, progress_bar
from hushcube.text import visible

if TYPE_CHECKING:
    from hushcube.bundle.verify import Check, Verdict


@click.command("verify")
@click.argument("folder")
@click.option("--allow-seeded", is_flag=True, help="Let a release pass whose noise came from a seed: NOT PRIVATE.")
@as_json
def command(folder: str, allow_seeded: bool, as_json: bool) -> None:
    """Check a release: its files, its privacy, its tables, and what each face promises.

    Every problem is reported. The exit code is 0 if all holds, 1 if not, 2 if FOLDER is no release.
    A release whose noise came from a seed is NOT PRIVATE, and fails.

    \b
    hushcube verify published
    """
    from hushcube.bundle.verify import verify

    with progress_bar() as progress:
        verdict = verify(Path(folder), progress, allow_seeded=allow_seeded)
    print_about(
        verdict.private,
        as_json=as_json,
        document=lambda: {
            "holds": verdict.holds,
            "checks": [
                {
                    "name": c.name,
                    "what": c.what,
                    "holds": c.holds,
                    "checked": c.checked,
                    "problems": list(c.problems),
                    "remarks": list(c.remarks),
                }
                for c in verdict.checks
            ],
        },
        text=lambda: _print(verdict),
    )
    if not verdict.holds:
        raise click.exceptions.Exit(1)


def _print(verdict: Verdict) -> None:
    for check in verdict.checks:
        click.echo(visible(_line(check)))
    for check in verdict.checks:
        for line in (*check.problems, *check.remarks):
            click.echo(visible(f"{check.name}: {line}"))
    but = "" if verdict.private else ", but it is NOT PRIVATE"
    click.echo(f"All of it holds{but}." if verdict.holds else "The release does not hold what it promises.")


def _line(check: Check) -> str:
    mark = "✗" if not check.holds else "✓" if check.checked else "–"
    return f"{mark} {check.name}: {check.what} ({check.checked:,} checked)"
