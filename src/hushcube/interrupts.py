"""Requests to stop (Ctrl-C, SIGTERM, SIGHUP): noted when they come, honoured before every irreversible step.

The exception that a signal raises can be lost: a library that is being imported, or that calls back from C, may swallow
it. The note stays, and `check` raises again before anything is published, replaced or spent.
"""

from __future__ import annotations

import signal
from types import FrameType

_noted: list[int] = []


def note(number: int, _frame: FrameType | None = None) -> None:
    """The handler of a signal that asks the program to stop."""
    _noted.append(number)
    raise KeyboardInterrupt


def check() -> None:
    """Stop here if a signal asked for it; called before every step that cannot be taken back."""
    if _noted:
        raise KeyboardInterrupt


def listen() -> None:
    """Note every request to stop from now on."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, note)
