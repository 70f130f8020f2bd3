"""`hushcube schema`: check a schema file, or draft one from data."""

from __future__ import annotations

import math
from pathlib import Path

import click

from hushcube.cli.options import as_json, read_schema
from hushcube.cli.output import console, note, number, print_json
from hushcube.errors import BadInput, DataError, OutputError


@click.group("schema")
def command() -> None:
    """Check a schema file, or draft one from data."""


@command.command("check")
@click.argument("schema_file", metavar="SCHEMA.yaml")
@click.option("--data", metavar="SOURCE", help="Also compare with data (for its owner: offending labels are shown).")
@click.option("--query", metavar="SQL", help="A query whose rows are the data.")
@as_json
def check(schema_file: str, data: str | None, query: str | None, as_json: bool) -> None:
    """Read a schema file and say what it declares; with --data, whether the data fits it."""
    from rich.table import Table

    schema = read_schema(schema_file)
    findings = []
    if data is not None or query is not None:
        from hushcube.private.draft import check_data

        findings = check_data(schema, data, query=query)
    cells = math.prod(schema.sizes)
    if as_json:
        print_json(
            {
                "name": schema.name,
                "attributes": [
                    {
                        "name": a.name,
                        "size": a.size,
                        "kind": a.kind,
                        "ordered": a.is_ordered,
                        "missing": a.missing,
                        "other": a.other,
                    }
                    for a in schema.attributes
                ],
                "cells": cells,
                "findings": [str(finding) for finding in findings],
            }
        )
    else:
        grid = Table(
            title=f"{schema.name}: {len(schema)} attributes, {number(cells)} cells in the full table",
            title_justify="left",
        )
        for heading in ("attribute", "size", "values", "ordered", "missing", "other"):
            grid.add_column(heading, justify="right" if heading == "size" else "left")
        for a in schema.attributes:
            shown = ", ".join(a.labels[:4]) + (", ..." if a.size > 4 else "")
            grid.add_row(a.name, f"{a.size:,}", shown, "yes" if a.is_ordered else "no", a.missing, a.other)
        console().print(grid)
        for finding in findings:
            note(str(finding))
    if findings:
        raise DataError("data", "does not fit the schema", "mend the schema or the data as listed above")


@command.command("draft")
@click.argument("data", metavar="SOURCE", required=False)
@click.option("--query", metavar="SQL", help="A query whose rows are the data.")
@click.option("--out", metavar="FILE", help="Write the draft there instead of printing it.")
@click.option("--name", default="data", show_default=True, help="The schema's name.")
@click.option("--max-values", type=click.IntRange(min=2), default=100, show_default=True, help="Most values to list.")
def draft(data: str | None, query: str | None, out: str | None, name: str, max_values: int) -> None:
    """Read data and draft a schema for it. The draft comes from the data and must be reviewed: domains are public."""
    from hushcube.private.draft import draft_schema

    if data is None and query is None:
        raise BadInput("SOURCE", "is not given", "name the data, for example `hushcube schema draft people.parquet`")
    if out is not None and (Path(out).exists() or not Path(out).absolute().parent.is_dir()):
        raise OutputError(
            "--out",
            "the file exists already, or its folder does not",
            "choose a new file in an existing folder",
        )
    schema, remarks = draft_schema(data, query=query, name=name, max_values=max_values)
    text = "# A draft made from the data. Review every value before use: a schema is public.\n" + schema.to_yaml()
    if out is None:
        click.echo(text, nl=False)
    else:
        try:
            Path(out).write_text(text, encoding="utf-8")
        except OSError:
            raise OutputError(
                "--out", "the file cannot be written", "choose another place, or mend its permissions"
            ) from None
    for remark in remarks:
        note(remark)
