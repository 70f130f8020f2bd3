"""`hushcube schema`: check a schema file, or draft one from data."""

from pathlib import Path

import click

from hushcube.cli.command import option
from hushcube.cli.options import as_json
from hushcube.cli.output import note, print_json, print_page
from hushcube.errors import BadInput, DataError

_DATA = "Also compare with data (for its owner: offending labels and exact numbers of rows are shown)."


@click.group("schema")
def command() -> None:
    """Check a schema file, or draft one from data."""


@command.command("check")
@click.argument("schema_file", metavar="SCHEMA.yaml")
@option("--data", "SOURCE", _DATA)
@option("--query", "SQL", "A query whose rows are the data.")
@as_json
def check(schema_file: str, data: str | None, query: str | None, as_json: bool) -> None:
    """Read a schema file and say what it declares; with --data, whether the data fits it."""
    from hushcube.verbs.schemas import check_schema

    checked = check_schema(schema_file, data, query=query)
    if as_json:
        print_json(checked.to_dict())
    else:
        print_page(checked.page())
    if not checked.fits:
        raise DataError("data", "does not fit the schema", "fix the schema or the data as listed above")


@command.command("draft")
@click.argument("data", metavar="SOURCE", required=False)
@option("--query", "SQL", "A query whose rows are the data.")
@option("--out", "FILE", "Write the draft there instead of printing it.")
@option("--name", None, "The schema's name.", default="data", show_default=True)
@option("--max-values", None, "Most values to list.", type=click.IntRange(min=2), default=100, show_default=True)
def draft_command(data: str | None, query: str | None, out: str | None, name: str, max_values: int) -> None:
    """Read data and draft a schema for it. The draft comes from the data and must be reviewed: domains are public."""
    from hushcube.durable import check_file
    from hushcube.verbs.schemas import draft_schema

    if data is None and query is None:
        raise BadInput("SOURCE", "is not given", "name the data, for example `hushcube schema draft people.parquet`")
    if out is not None:
        check_file(Path(out), "--out")
    draft = draft_schema(data, query=query, name=name, max_values=max_values, out=out)
    if out is None:
        click.echo(draft.text, nl=False)
    for remark in draft.remarks:
        note(remark)
