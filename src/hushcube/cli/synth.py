"""`hushcube synth`: synthetic people whose tables match a release."""

from pathlib import Path

import click

from hushcube.cli.command import option, verb
from hushcube.cli.options import FACES, HOW, OUTPUT, as_json, taking
from hushcube.cli.output import print_about, progress_bar
from hushcube.errors import BadInput, OutputError
from hushcube.shown import number
from hushcube.text import visible


@verb("synth")
@click.argument("folder", metavar="BUNDLE")
@option("--rows", "N|auto", "How many people; auto (the default): as published.", group=HOW, default="auto")
@taking(*FACES)
@option("--out", "FILE", "The file to write: .parquet or .csv.", group=OUTPUT)
@as_json
def command(folder: str, rows: str, face: str | None, time_limit: float | None, out: str | None, as_json: bool) -> None:
    """Write made-up people whose tables match the release. No data is read, no budget is spent.

    With --rows auto and a face-valid face, these are the very people whose counts were published.

    \b
    hushcube synth published --out people.parquet
    hushcube synth published --rows 1000 --out people.csv
    """
    import hushcube as hc
    from hushcube.bundle.writing import SUFFIXES
    from hushcube.durable import check_file
    from hushcube.faces.value import read_face
    from hushcube.model.words import UNIT_NOUN
    from hushcube.verbs.releasing import synthesize

    if out is None:
        raise BadInput("--out", "is not given", "name a new file, for example `--out people.parquet`")
    check_file(Path(out), "--out")
    if Path(out).suffix not in SUFFIXES:
        raise OutputError("--out", f"{out!r} is not a kind of file that can be written", "end it in .parquet or .csv")
    schema = hc.open(folder).schema
    value = read_face(face or "integral", schema)
    if value.kind != "integral":
        raise BadInput("--face", f"{value.kind} has no people", "leave it out, or ask for integral")
    if rows != "auto":
        value = value.with_options({"rows": rows})
    with progress_bar() as progress:
        people = synthesize(folder, value, out=out, time_limit=time_limit, progress=progress)

    def text() -> None:
        noun = visible(schema.unit_noun)
        real = "none is a real person" if noun == UNIT_NOUN else "none is real"
        click.echo(f"wrote {len(people.codes):,} synthetic {noun} to {out}; they are made up: {real}")
        if (distance := people.report.get("rms_from_rounding")) is not None:
            click.echo(f"their tables are {number(distance)} {noun} a cell from the wanted ones")

    document = {"out": out, "rows": len(people.codes), "report": people.report}
    print_about(people.private, as_json=as_json, document=lambda: document, text=text)
