"""The group of all verbs, each imported when it is used."""

from __future__ import annotations

import os
from importlib import import_module

import click

from hushcube import __version__

_VERBS = {
    "demo": "Plan, release and show the built-in Titanic data.",
    "evaluate": "Compare methods with the exact counts of real data, for its owner: NOT private.",
    "plan": "Compare strategies and see the error of every table before any data is touched.",
    "recover": "Add a face to a release: non-negative, whole numbers, other norms; costs no budget.",
    "release": "Measure a plan on data, once, and publish the tables.",
    "schema": "Check a schema file, or draft one from data.",
    "show": "Print a table of a release, with error bars.",
    "synth": "Write synthetic people whose tables match a release.",
    "verify": "Check a release: checksums, roll-ups, signs, whole numbers, people, public facts.",
}


class _Verbs(click.Group):
    """A group that knows its verbs' names and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        return sorted(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's interface
        if cmd_name not in _VERBS:
            return None
        command: click.Command = import_module(f"hushcube.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's interface
        with formatter.section("Verbs"):
            formatter.write_dl(sorted(_VERBS.items()))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="hushcube")
def cli() -> None:
    """Publish data cubes and contingency tables with differential privacy.

    Declare the schema, the tables you want and the budget; see the error before spending anything; release once.
    Every table adds up, and every cell has an error bar.
    """


def call(arguments: list[str]) -> int:
    """Run a verb; returns the exit code. What it raises is not caught, as click's own `main` would."""
    if "_HUSHCUBE_COMPLETE" in os.environ:
        cli.main(arguments, prog_name="hushcube")  # a shell asks how to complete a command
    try:
        with cli.make_context("hushcube", arguments) as context:
            cli.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0
