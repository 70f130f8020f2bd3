"""`hushcube verify`: whether a release is whole and keeps its promises."""

from pathlib import Path

import click

from hushcube.cli.command import option, verb
from hushcube.cli.options import as_json
from hushcube.cli.output import print_about, print_page, progress_bar


@verb("verify")
@click.argument("folder")
@option("--allow-seeded", None, "Let a release pass whose noise came from a seed: NOT PRIVATE.", is_flag=True)
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
    print_about(verdict.private, as_json=as_json, document=verdict.to_dict, text=lambda: print_page(verdict.page()))
    if not verdict.holds:
        raise click.exceptions.Exit(1)
