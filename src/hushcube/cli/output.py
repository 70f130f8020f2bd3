"""What people see: tables on standard output, progress and notes on standard error."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import click

from hushcube import interrupts
from hushcube.progress import Progress
from hushcube.text import json_text, visible


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json_text(document))


def print_about(
    private: bool | None,
    *,
    as_json: bool,
    document: Callable[[], dict[str, Any]],
    text: Callable[[], None],
    caveat: str | None = None,
) -> None:
    """Print what a verb has to say about one release, as a document or as text, under the release's stamp.

    The stamp of a seeded release is part of the output itself, so that it stays with a redirected one; where that does
    not go to a terminal, it is repeated on standard error. `private` is None for a release that does not say.
    A `caveat`, what the errors of its tables do not cover, is part of the output too.
    """
    from hushcube.bundle.stamp import NOT_PRIVATE, stamp

    if private is False:
        if as_json or not _is_terminal(sys.stdout):
            note(NOT_PRIVATE)
        if not as_json:
            click.echo(NOT_PRIVATE)
    if as_json:
        print_json({**document(), **({} if caveat is None else {"caveat": caveat}), **stamp(private=private)})
    else:
        text()
        if caveat is not None:
            click.echo(visible(caveat))


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody watches; a stream that was closed before the program began is None."""
    return stream is not None and stream.isatty()


def note(text: str) -> None:
    """A remark on standard error."""
    click.echo(visible(text), err=True)


def console(**options: Any) -> Any:
    """A terminal for tables; wide enough not to fold when the output is not a terminal. Labels are not markup."""
    from rich.console import Console

    if not _is_terminal(sys.stdout):
        options.setdefault("width", 120)
    return Console(highlight=False, markup=False, emoji=False, **options)


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar on standard error that names the stage; silent where standard error is not a terminal.

    Wherever work reports its progress, a request to stop that got lost is honoured.
    """
    if not _is_terminal(sys.stderr):
        yield lambda _stage, _share: interrupts.check()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:>10}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)

        def report(stage: str, share: float) -> None:
            interrupts.check()
            bar.update(task, description=stage, completed=share)

        yield report


def number(value: float) -> str:
    """A number as people write it: about four significant digits, thousands separated.

    >>> number(1336772.26), number(0.01234), number(24.0)
    ('1,336,772', '0.01234', '24')
    """
    if abs(value) > 1e300:  # a Python integer, too large for a float
        return f"about 10^{math.floor(math.log10(value))}"
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e12 else f"{value:.4g}"
    return f"{value:.4g}"
