"""`hushcube schema`: check a schema file, or draft one from data."""

from __future__ import annotations

import math

import click

from hushcube.cli.options import as_json, new_file, write_file
from hushcube.cli.output import console, note, number, print_json
from hushcube.errors import BadInput, DataError
from hushcube.text import visible

_LARGEST_JSON = 10**300
"""Readers of JSON hold numbers in floats; a full table beyond that is null."""


@click.group("schema")
def command() -> None:
    """Check a schema file, or draft one from data."""


@command.command("check")
@click.argument("schema_file", metavar="SCHEMA.yaml")
@click.option(
    "--data",
    metavar="SOURCE",
    help="Also compare with data (for its owner: offending labels and exact numbers of rows are shown).",
)
@click.option("--query", metavar="SQL", help="A query whose rows are the data.")
@as_json
def check(schema_file: str, data: str | None, query: str | None, as_json: bool) -> None:
    """Read a schema file and say what it declares; with --data, whether the data fits it."""
    from dataclasses import asdict

    from rich.table import Table

    from hushcube.model.schema import Schema

    schema = Schema.read(schema_file)
    findings, bounds = [], []
    if data is not None or query is not None:
        from hushcube.private.contributions import compare_bounds
        from hushcube.private.draft import check_data

        findings = check_data(schema, data, query=query)
        bounds = compare_bounds(schema, data, query=query)
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
                        "levels": {level.name: len(level.labels) for level in a.grouped},
                        "missing": a.missing,
                        "other": a.other,
                    }
                    for a in schema.attributes
                ],
                "cells": cells if cells < _LARGEST_JSON else None,
                "findings": [asdict(finding) for finding in findings],
                **({"bounds": [asdict(bound) for bound in bounds]} if bounds else {}),
            }
        )
    else:
        grid = Table(
            title=f"{visible(schema.name)}: {len(schema)} attributes, {number(cells)} cells in the full table",
            title_justify="left",
        )
        for heading in ("attribute", "size", "values", "levels", "ordered", "missing", "other"):
            grid.add_column(heading, justify="right" if heading == "size" else "left")
        for a in schema.attributes:
            shown = ", ".join(map(visible, a.labels[:4])) + (", ..." if a.size > 4 else "")
            policies = visible(a.missing), visible(a.other)
            levels = ", ".join(f"{visible(level.name)} ({len(level.labels):,})" for level in a.grouped)
            grid.add_row(visible(a.name), f"{a.size:,}", shown, levels, "yes" if a.is_ordered else "no", *policies)
        console().print(grid)
        if bounds and schema.unit is not None:
            note("Rows that count under several bounds (exact, for the owner of the data only):")
            shares = Table()
            for heading in ("max_rows", "counted", "left out", "share"):
                shares.add_column(heading, justify="right")
            for bound in bounds:
                declared = " (declared)" if bound.max_rows == schema.unit.max_rows else ""
                numbers = f"{bound.counted:,}", f"{bound.left_out:,}", bound.share
                shares.add_row(f"{bound.max_rows:,}{declared}", *numbers)
            console(stderr=True).print(shares)
        for finding in findings:
            examples = f" ({', '.join(map(visible, finding.examples))})" if finding.examples else ""
            note(f"{finding.message}{examples}. Fix: {finding.fix}.")
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
    target = None if out is None else new_file(out)
    schema, remarks = draft_schema(data, query=query, name=name, max_values=max_values)
    text = "# A draft made from the data. Review every value before use: a schema is public.\n" + schema.to_yaml()
    if target is None:
        click.echo(text, nl=False)
    else:
        write_file(text, target)
    for remark in remarks:
        note(remark)
