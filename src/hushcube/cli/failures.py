"""What went wrong, in a line on standard error, and the exit code that says of which kind it is."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from hushcube import interrupts
from hushcube.errors import BadInput, HushcubeError
from hushcube.resources import exhausted, unusable
from hushcube.text import visible

if TYPE_CHECKING:
    from hushcube.options import Configured


def explain(problem: BaseException) -> int:
    """Report a failure, and what had been done for good before it; returns the exit code.

    Whatever fails because of a request to stop is an interruption.
    """
    if isinstance(problem, SystemExit):
        raise problem
    done: list[str] = getattr(problem, "__notes__", [])
    if interrupts.noted() is not None or isinstance(problem, KeyboardInterrupt):
        _say(f"interrupted: {done[0] if done else 'nothing was published'}")
        return 128 + (interrupts.noted() or signal.SIGINT)
    if isinstance(problem, click.ClickException):
        shown = io.StringIO()
        problem.show(file=shown)
        click.echo("\n".join(map(visible, shown.getvalue().splitlines())), err=True)
        return 2
    message, code = _output(problem) if isinstance(problem, OSError) and _is_output(problem) else _described(problem)
    for line in (message, *done):
        _say(line)
    return code


def _described(problem: BaseException) -> tuple[str, int]:
    """The message and the exit code; what nobody expected is described by its kind, since its text may hold data."""
    if isinstance(problem, HushcubeError):
        return str(problem), 2 if isinstance(problem, BadInput) else 1
    if (known := exhausted(problem) or unusable(problem)) is not None:
        return _described(known)
    if isinstance(problem, OSError) and problem.errno is not None:
        name = "a file or folder" if problem.filename is None else repr(os.fsdecode(problem.filename))
        reason = os.strerror(problem.errno).lower()
        return f"{name} cannot be read or written ({reason}). Fix: look at the disk, then try again.", 1
    if os.environ.get("HUSHCUBE_DEBUG"):
        raise problem
    return f"unexpected {type(problem).__name__}. Fix: run again with HUSHCUBE_DEBUG=1 and report it.", 1


def _is_output(problem: OSError) -> bool:
    """Whether it is standard output that cannot be written: click or rich raised it, which touch nothing else."""
    frames = [frame for frame, _ in traceback.walk_tb(problem.__traceback__)]
    return bool(frames) and frames[-1].f_globals.get("__name__", "").partition(".")[0] in ("click", "rich")


def _output(problem: OSError) -> tuple[str, int]:
    """Standard output that cannot be written; a reader that went away needs no message."""
    sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - Python itself flushes it once more in the end
    if isinstance(problem, BrokenPipeError):
        return "", 1
    reason = os.strerror(problem.errno or errno.EIO).lower()
    return f"standard output cannot be written ({reason}). Fix: send it elsewhere.", 1


def _say(line: str) -> None:
    with suppress(OSError):  # a terminal that hung up reads nothing
        if line:
            click.echo(f"hushcube: {visible(line)}", err=True)


def as_typed(message: str, context: click.Context) -> str:
    """A message of the library, whose names of parameters become what is typed: `--budgets`, `hierarchy:fan-out`.

    Names are what stands before the first colon, and what stands alone, or before an equals sign, between backticks.
    """
    spelled = [p.opts[0] for p in context.command.params if isinstance(p, click.Option)]
    own = {word.removeprefix("--").replace("-", "_"): word for word in spelled}
    chosen = list(_chosen(context))

    def places(name: str) -> Iterator[str]:
        """Where it was typed, and then where it could be."""
        word = name.replace("_", "-")
        yield from (f"{named_by} {one.head}:{word}" for text, named_by, one in chosen if f"{word}=" in text)
        yield from (own[each] for each in own if each == name)
        options = ((named_by, one, option) for _, named_by, one in chosen for option in one.options())
        yield from (f"{named_by} {one.head}:{word}" for named_by, one, option in options if option.name == name)

    def quoted(found: re.Match[str]) -> str:
        name, value = found.groups(default="")
        if name in own:
            return f"`{own[name]}{value.replace('=', ' ', 1)}`"
        return f"`{name.replace('_', '-')}{value}`" if "_" in name else found.group()

    field, colon, rest = message.partition(":")
    if colon and field.isidentifier():
        field = next(places(field), field)
    return re.sub(r"`([a-z_]+)(=[^`]*)?`", quoted, field + colon + rest)


def _chosen(context: click.Context) -> Iterator[tuple[str, str, Configured]]:
    """The strategies and faces that were typed, with the options of the command that name them."""
    from hushcube.faces.value import faces
    from hushcube.strategies import ALL

    for parameter, option in (
        ("strategy", "--strategy"),
        ("methods", "--method"),
        ("face", "--face"),
        ("faces", "--face"),
    ):
        given = context.params.get(parameter)
        for word in given if isinstance(given, tuple) else [given] if given else []:
            known: dict[str, Configured] = {**faces()} if option == "--face" else {**ALL}
            if (configured := known.get(word.partition(":")[0].strip())) is not None:
                yield word, option, configured
