"""What went wrong, in a line on standard error, and the exit code that says of which kind it is."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

import click

from hushcube import interrupts
from hushcube.errors import BadInput, HushcubeError


def explain(problem: BaseException) -> int:
    """Report a failure; returns the exit code. Whatever fails because of a request to stop is an interruption."""
    if interrupts.noted() is not None or isinstance(problem, KeyboardInterrupt | click.exceptions.Abort):
        return _fail("interrupted: nothing was published", 128 + (interrupts.noted() or signal.SIGINT))
    if isinstance(problem, SystemExit):
        raise problem
    if isinstance(problem, click.ClickException):
        problem.show()
        return 2
    if isinstance(problem, BadInput):
        return _fail(str(problem), 2)
    if isinstance(problem, HushcubeError):
        return _fail(str(problem), 1)
    if isinstance(problem, BrokenPipeError):
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - the reader went away; so do we, quietly
        return 1
    if isinstance(problem, MemoryError):
        return _fail("there is not enough memory. Fix: ask for smaller marginals, or use a larger machine.", 1)
    if os.environ.get("HUSHCUBE_DEBUG"):
        raise problem
    # a message could hold a value from the data, so only the kind of error is shown
    return _fail(f"unexpected {type(problem).__name__}. Fix: run again with HUSHCUBE_DEBUG=1 and report it.", 1)


def _fail(message: str, code: int) -> int:
    with suppress(OSError):  # a terminal that hung up reads nothing
        click.echo(f"hushcube: {message}", err=True)
    return code
