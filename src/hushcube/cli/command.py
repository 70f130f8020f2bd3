"""The verbs: what they are, options in named groups, and messages that name what was typed.

Each verb is imported when it is used. What a strategy or a face may be told is listed by `--strategy help` and
`--face help`, from the classes themselves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hushcube import __version__
from hushcube.errors import HushcubeError

if TYPE_CHECKING:
    from hushcube.options import Configured

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
OTHER = "Options"
HELP = "help"  # stands where a strategy or a face is not named but asked about
_COLUMN = 24  # where what words mean begins, on a page about strategies or faces
_VERBS = {
    "advise": "See what several budgets would bring, before anything is decided.",
    "demo": "Plan, release and show the built-in Titanic data.",
    "evaluate": "Compare methods with the exact counts of real data, for its owner: NOT private.",
    "explore": "Look at a release in a browser, with any roll-up.",
    "export": "Write tables of a release as CSV, XLSX, JSON-stat, SDMX-CSV or plain pages.",
    "ledger": "Keep count of what is released: accounts, charges, a record that can be verified.",
    "plan": "Compare strategies and see the error of every table before any data is touched.",
    "recover": "Add a face to a release: non-negative, whole numbers, other norms; costs no budget.",
    "release": "Measure a plan on data, once, and publish the tables.",
    "report": "Write a page about a release that works offline, for people who do not have hushcube.",
    "schema": "Check a schema file, or draft one from data.",
    "serve": "Answer questions of analysts who do not hold the data, over HTTP.",
    "session": "Ask an online cube questions, one by one, from one account.",
    "show": "Print a table of a release, with error bars.",
    "synth": "Write synthetic people whose tables match a release.",
    "token": "Say who may ask a server what: create, list and revoke tokens.",
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


class _Option(click.Option):
    """An option that belongs to a group of the help page."""

    def __init__(self, *args: Any, group: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group


def option(
    name: str, metavar: str | None, says: str, *names: str, group: str = OTHER, **attributes: Any
) -> Callable[[Decorated], Decorated]:
    """An option in a group of the help page; a second name is that of the parameter."""
    return click.option(name, *names, cls=_Option, metavar=metavar, help=says, group=group, **attributes)


class Command(click.Command):
    """A verb: options by group, and errors in the spelling of the command line."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One section for each group, in the order of their first options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        last = OTHER
        for parameter in self.get_params(ctx):
            last = getattr(parameter, "group", last)  # --help joins whatever comes before it
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)) is not None:
                groups.setdefault(last, []).append(record)
        width = max((len(first) for records in groups.values() for first, _ in records), default=0)
        for group, records in groups.items():
            with formatter.section(group):
                padded = [(first.ljust(width), second) for first, second in records]  # groups share their columns
                formatter.write_dl(padded, col_max=width + 2)

    def invoke(self, ctx: click.Context) -> Any:
        """Messages of the library name its parameters; here they become what was typed."""
        try:
            return super().invoke(ctx)
        except HushcubeError as problem:
            from hushcube.cli.failures import as_typed

            problem.args = (as_typed(str(problem), ctx),)
            raise


def verb(name: str) -> Callable[[Callable[..., Any]], Command]:
    """Makes a function a verb."""
    return click.command(name, cls=Command)


def explaining(ctx: click.Context, parameter: click.Parameter, given: Any) -> Any:
    """For `--strategy` and `--face`: the word `help` prints what they take, and ends."""
    words = given if isinstance(given, tuple) else (given,)
    if HELP in words and not ctx.resilient_parsing:
        page = ctx.make_formatter()
        (_strategies if parameter.name == "strategy" else _faces)(page)
        click.echo(page.getvalue().rstrip())
        ctx.exit()
    return given


def _strategies(page: click.HelpFormatter) -> None:
    """What every strategy is, and its options."""
    from hushcube.strategies import REGISTRY
    from hushcube.strategies.adaptive import ADAPTIVE

    _word(page, "auto", "the one with the least predicted error")
    _word(page, "all", "every variant of every one, compared")
    _configured(page, "Strategies", REGISTRY.values())
    adaptive = "For small relative errors, under pure epsilon (auto and all leave them out)"
    _configured(page, adaptive, ADAPTIVE.values())
    page.write_text("Options follow a colon: --strategy sketch:buckets=1000,repetitions=3.")
    page.write_text("Repeat --strategy to compare several: --strategy auto --strategy hierarchy:fan-out=4.")


def _faces(page: click.HelpFormatter) -> None:
    """What every face is, and its options."""
    from hushcube.faces.value import faces

    _configured(page, "Faces", faces().values())
    page.write_text("Options follow a colon: --face nonnegative:norm=l1,method=local.")


def _configured(page: click.HelpFormatter, heading: str, several: Iterable[Configured]) -> None:
    """Things with their options below them."""
    with page.section(heading):
        for one in several:
            _word(page, one.head, one.summary)
            with page.indentation():
                for own in one.options():
                    default = "" if own.default is None else f"  [default: {in_digits(own.default)}]"
                    _word(page, f"{own.word}={own.takes}", own.says + default)


def _word(page: click.HelpFormatter, word: str, says: str) -> None:
    page.write_dl([(f"{word:<{_COLUMN}}", says)])


def in_digits(value: object) -> str:
    """A default as one would type it.

    >>> from fractions import Fraction
    >>> in_digits(Fraction(7, 100)), in_digits("average")
    ('0.07', 'average')
    """
    from fractions import Fraction

    return f"{float(value):g}" if isinstance(value, Fraction) else str(value)
