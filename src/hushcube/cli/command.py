"""A verb whose options come in named groups, and whose messages name what was typed.

What a strategy or a face may be told is listed by `--strategy help` and `--face help`, from the classes themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hushcube.errors import HushcubeError

if TYPE_CHECKING:
    from hushcube.options import Configured

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
OTHER = "Options"
HELP = "help"
"""Stands where a strategy or a face is not named but asked about."""
_COLUMN = 24
"""Where what words mean begins, on a page about strategies or faces."""


class Option(click.Option):
    """An option that belongs to a group of the help page."""

    def __init__(self, *args: Any, group: str = OTHER, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group


def option(*names: str, group: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
    """An option in a group of the help page."""
    return click.option(*names, cls=Option, group=group, **attributes)


class Command(click.Command):
    """A verb: options by group, and errors in the spelling of the command line."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One section for each group, in the order of their first options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        last = OTHER
        for parameter in self.get_params(ctx):
            if not isinstance(parameter, click.Option):
                continue
            if not set(parameter.opts) & set(ctx.help_option_names):  # --help joins whatever comes before it
                last = getattr(parameter, "group", OTHER)
            if (record := parameter.get_help_record(ctx)) is not None:
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


def verb(name: str, **attributes: Any) -> Callable[[Callable[..., Any]], Command]:
    """Makes a function a verb."""
    return click.command(name, cls=Command, **attributes)


def explaining(ctx: click.Context, parameter: click.Parameter, given: Any) -> Any:
    """For `--strategy` and `--face`: the word `help` prints what they take, and ends."""
    words = given if isinstance(given, tuple) else (given,)
    if HELP in words and not ctx.resilient_parsing:
        click.echo(strategies() if parameter.name == "strategy" else faces())
        ctx.exit()
    return given


def strategies() -> str:
    """What every strategy is, and its options."""
    from hushcube.strategies import ADAPTIVE, REGISTRY

    page = _Page()
    page.words({"auto": "the one with the least predicted error", "all": "every variant of every one, compared"})
    page.configured("Strategies", REGISTRY.values())
    page.configured("For small relative errors, under pure epsilon (auto and all leave them out)", ADAPTIVE.values())
    page.say("Options follow a colon: --strategy sketch:buckets=1000,repetitions=3.")
    page.say("Repeat --strategy to compare several: --strategy auto --strategy hierarchy:fan-out=4.")
    return page.text()


def faces() -> str:
    """What every face is, and its options."""
    from hushcube.faces.value import faces

    page = _Page()
    page.configured("Faces", faces().values())
    page.say("Options follow a colon: --face nonnegative:norm=l1,method=local.")
    return page.text()


class _Page:
    """A page of help about things with options."""

    def __init__(self) -> None:
        context = click.get_current_context()
        self._formatter = context.make_formatter()

    def words(self, words: dict[str, str]) -> None:
        """Words and what they mean."""
        self._formatter.write_dl([(f"{word:<{_COLUMN}}", says) for word, says in words.items()])

    def configured(self, heading: str, several: Iterable[Configured]) -> None:
        """Things with their options below them."""
        with self._formatter.section(heading):
            for one in several:
                self.words({one.head: one.summary})
                with self._formatter.indentation():
                    for own in one.options():
                        default = "" if own.default is None else f"  [default: {in_digits(own.default)}]"
                        self.words({f"{own.word}={own.takes}": own.says + default})

    def say(self, text: str) -> None:
        """A sentence."""
        self._formatter.write_text(text)

    def text(self) -> str:
        """The page."""
        return self._formatter.getvalue().rstrip()


def in_digits(value: object) -> str:
    """A default as one would type it.

    >>> from fractions import Fraction
    >>> in_digits(Fraction(7, 100)), in_digits("average")
    ('0.07', 'average')
    """
    from fractions import Fraction

    return f"{float(value):g}" if isinstance(value, Fraction) else str(value)
