"""Requests to stop (Ctrl-C, SIGTERM, SIGHUP): noted when they come, honoured before every irreversible step.

The exception that a signal raises can be lost: a library that is being imported, or that calls back from C, may swallow
it. The note stays, and stops the program at the next `check`, at the latest before a step that cannot be taken back:

    check()                   stop here if a request came; wherever work makes progress
    with irreversible():      publish, replace: not begun after a request; one that comes now or later waits
    resume()                  more work follows what was published: from here on requests stop it again
    with held():              a short stretch that must not be torn, such as the removal of a folder

A request waits, too, while an exception is being handled, so that no cleaning up is broken off by a second Ctrl-C, and
while a module is being imported: C extensions may swallow an exception then, or abort the process.
Only the command line listens: in other programs nothing is installed, and Ctrl-C is what Python makes of it.
"""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to import than all of this, and it is the program's first moment
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any


class Interrupted(KeyboardInterrupt):
    """A request to stop.

    A kind of its own because Python remembers a plain KeyboardInterrupt that passes through `exec` or `eval`, as used
    where named tuples and data classes are made, and kills itself in the end, whatever the exit code was to be.
    """


_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_noted: list[int] = []
_waiting = False


def listen() -> None:
    """Note every request to stop from now on, to be honoured after `resume`; what is ignored (nohup) stays ignored."""
    hold()
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, note)
    sys.unraisablehook = _unraisable


def ignore() -> None:
    """Everything is done, and the exit code is decided."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def note(number: int, frame: FrameType | None = None) -> None:
    """The handler of a signal that asks the program to stop."""
    _noted.append(number)
    if not _waiting and sys.exception() is None and not _is_import(frame):
        raise Interrupted


def _is_import(frame: FrameType | None) -> bool:
    """Whether a module is being imported where the signal came."""
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


def noted() -> int | None:
    """The first signal that asked the program to stop; None if none did."""
    return _noted[0] if _noted else None


def check() -> None:
    """Stop here if a signal asked for it, unless what was to be done is done."""
    if _noted and not _waiting:
        raise Interrupted


def hold() -> None:
    """Requests wait from now on."""
    global _waiting
    _waiting = True


def resume() -> None:
    """Requests stop the program again, and so does one that came while they waited."""
    global _waiting
    _waiting = False
    check()


@contextmanager
def held() -> Iterator[None]:
    """Requests wait inside."""
    global _waiting
    before, _waiting = _waiting, True
    try:
        yield
    finally:
        _waiting = before


@contextmanager
def irreversible() -> Iterator[None]:
    """A step that cannot be taken back: refused after a request to stop; once it is taken, requests wait."""
    global _waiting
    before, _waiting = _waiting, True
    try:
        if _noted:
            raise Interrupted
        yield
    except BaseException:
        _waiting = before
        raise


def _unraisable(problem: Any) -> None:
    """An exception that Python cannot pass on; that of a signal has left its note."""
    if not (_noted and issubclass(problem.exc_type, KeyboardInterrupt)):
        sys.__unraisablehook__(problem)
