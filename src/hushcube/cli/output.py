"""What people see: tables on standard output, progress and notes on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import click

from hushcube import interrupts
from hushcube.progress import Progress
from hushcube.shown import Grid, Page, Remark, console, is_terminal
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
    from hushcube.bundle.statement import NOT_PRIVATE, stamp

    if private is False:
        if as_json or not is_terminal(sys.stdout):
            note(NOT_PRIVATE)
        if not as_json:
            click.echo(NOT_PRIVATE)
    if as_json:
        print_json({**document(), **({} if caveat is None else {"caveat": caveat}), **stamp(private=private)})
    else:
        text()
        if caveat is not None:
            click.echo(visible(caveat))


def print_csv(text: str, private: bool | None, caveat: str | None) -> None:
    """CSV on standard output, and what must be said of it on standard error: the stamp has a column of its own.

    Labels may hold what steers a terminal: that is written out, here as elsewhere.
    """
    from hushcube.bundle.statement import NOT_PRIVATE

    for told in ([NOT_PRIVATE] if private is False else []) + ([] if caveat is None else [caveat]):
        note(told)
    click.echo("\n".join(map(visible, text.split("\n"))), nl=False)


def note(text: str) -> None:
    """A remark on standard error."""
    click.echo(visible(text), err=True)


def print_page(page: Page, *, to: Any = None) -> None:
    """A page on standard output, or another console; its remarks on standard error."""
    for part in page.parts:
        if isinstance(part, Remark):
            note(part)
        elif isinstance(part, Grid):
            (to or console(stderr=part.is_remark)).print(part.rich())
        else:
            (click.echo if to is None else to.print)(visible(part))


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A bar on standard error that names the stage; silent where standard error is not a terminal.

    Wherever work reports its progress, a request to stop that got lost is honoured.
    """
    if not is_terminal(sys.stderr):
        yield lambda _stage, _share: interrupts.check()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
    from rich.text import Text

    class Elapsed(ProgressColumn):
        """Since the beginning. Rich's own column stands still once a stage is done, though others follow."""

        def render(self, task: Task) -> Text:
            return Text(str(timedelta(seconds=int(task.elapsed or 0))), style="progress.elapsed")

    columns = (TextColumn("{task.description:>10}"), BarColumn(), TaskProgressColumn(), Elapsed())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)

        def report(stage: str, share: float) -> None:
            interrupts.check()
            bar.update(task, description=stage, completed=share)

        yield report
