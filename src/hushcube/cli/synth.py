"""`hushcube synth`: synthetic people whose tables match a release."""

from __future__ import annotations

from typing import Any

import click

from hushcube.cli.face_options import face_knobs, read_face, take, time_limit
from hushcube.cli.options import as_json, new_file
from hushcube.cli.output import number, print_about, progress_bar
from hushcube.errors import BadInput, OutputError


@click.command("synth")
@click.argument("folder", metavar="BUNDLE")
@click.option(
    "--rows", metavar="N|auto", default="auto", show_default=True, help="How many people; auto: as published."
)
@click.option("--out", metavar="FILE", help="The file to write: .parquet or .csv.")
@face_knobs
@as_json
def command(folder: str, rows: str, out: str | None, as_json: bool, **options: Any) -> None:
    """Write made-up people whose tables match the release. No data is read, no budget is spent.

    With --rows auto and a face-valid face, these are the very people whose counts were published.

    \b
    hushcube synth published --out people.parquet
    hushcube synth published --rows 1000 --out people.csv
    """
    from hushcube.api import open_release, synthesize
    from hushcube.bundle.people import SUFFIXES

    given = take(options)
    limit = time_limit(given)
    if out is None:
        raise BadInput("--out", "is not given", "name a new file, for example `--out people.parquet`")
    target = new_file(out)
    if target.suffix not in SUFFIXES:
        raise OutputError("--out", f"{out!r} is no kind of file that can be written", "end it in .parquet or .csv")
    value = read_face(given, open_release(folder).schema, kind="integral", rows=_rows(rows))
    with progress_bar() as progress:
        people = synthesize(folder, value, out=target, time_limit=limit, progress=progress)

    def text() -> None:
        click.echo(f"wrote {len(people.codes):,} synthetic people to {out}; they are made up and stand for nobody")
        if (distance := people.report.get("rms_from_rounding")) is not None:
            click.echo(f"their tables are {number(distance)} people a cell from the wanted ones")

    print_about(
        people.private,
        as_json=as_json,
        document=lambda: {"out": out, "rows": len(people.codes), "report": people.report},
        text=text,
    )


def _rows(text: str) -> int | None:
    from hushcube.faces.value import MOST_PEOPLE

    if text == "auto":
        return None
    is_short = text.isascii() and text.isdigit() and len(text) < 20  # Python reads no number of thousands of digits
    if not is_short or not 1 <= int(text) <= MOST_PEOPLE:
        fix = f"give a whole number up to {MOST_PEOPLE:,}, or auto"
        raise BadInput("--rows", f"{text[:40]!r} is no number of people", fix)
    return int(text)
