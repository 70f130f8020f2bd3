"""`hushcube export`: tables of a release for spreadsheets, statistical systems and readers."""

from __future__ import annotations

import click

from hushcube.cli.command import option, verb
from hushcube.cli.options import HOW, OUTPUT, WHAT, as_json
from hushcube.cli.output import print_about, progress_bar
from hushcube.errors import BadInput

_FORMAT = "csv, xlsx, json-stat, sdmx-csv or html."
_TABLES = "Tables: 1-way, 'age*sex'; all if left out; repeatable."
_FACE = "A published face: unbiased (the default), consistent, nonnegative or integral."
_OUT = "The new folder; or a file, for xlsx or a single table."


@verb("export")
@click.argument("folder", metavar="BUNDLE")
@option("--tables", "WORDS", _TABLES, group=WHAT, multiple=True)
@option("--face", "KIND", _FACE, group=WHAT, default="unbiased")
@option("--format", "NAME", _FORMAT, "kind", group=HOW, default="csv", show_default=True)
@option("--out", "PATH", _OUT, group=OUTPUT)
@as_json
def command(folder: str, tables: tuple[str, ...], face: str, kind: str, out: str | None, as_json: bool) -> None:
    """Write tables of a release for other programs. No data is read, no budget is spent.

    \b
    hushcube export published --out csv
    hushcube export published --format xlsx --out tables.xlsx
    hushcube export published --tables age*sex --out age-sex.csv
    hushcube export published --format html --face integral --out site
    """
    from hushcube.verbs.exporting import export_tables

    if out is None:
        raise BadInput("--out", "is not given", "name a new folder, for example `--out csv`, or a file")
    with progress_bar() as progress:
        written = export_tables(folder, out, kind, tables=tables or None, face=face, progress=progress)
    cells = sum(written.sizes)

    def text() -> None:
        click.echo(f"wrote {len(written):,} table{'s' * (len(written) != 1)} with {cells:,} cells to {out}")

    document = {"out": out, "format": kind, "face": written.face, "tables": len(written), "cells": cells}
    caveat = written.release.schema.caveat
    print_about(written.release.private, as_json=as_json, document=lambda: document, text=text, caveat=caveat)
