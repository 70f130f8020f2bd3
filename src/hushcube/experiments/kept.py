"""Runs that are kept in a file, so that an experiment that was stopped goes on where it was. NOT private.

    {"kept": "runs of hushcube evaluate", "private": false, "about": {"seed": 7, ...}}       what all have in common
    {"setting": "6b86b2...", "run": 0, "errors": {"mean": [...], ...}}                       one line for each run

Only runs on the same data and tables, with the same sanity bound and seed, go into one file; settings and runs may be
added. A line that was being written when the machine went down is cut off.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from hushcube import interrupts
from hushcube.durable import check_file, explained
from hushcube.errors import BadInput
from hushcube.experiments.errors import RunErrors

_KIND: Final = "runs of hushcube evaluate"
_NEW: Final = "name a new file, or leave it out"


class Kept:
    """Runs that are known, and the file that those which follow are added to."""

    def __init__(self, path: Path, file: BinaryIO, about: Mapping[str, Any]) -> None:
        self.path, self._file = path, file
        self._known: dict[tuple[str, int], RunErrors] = {}
        head, lines, whole = _read(path)
        if head is None:
            self._append({"kept": _KIND, "private": False, "about": about})
            return
        if other := [name for name in about if head.get(name) != about[name]]:
            problem = f"the runs in {str(path)!r} belong to another experiment, with another {other[0]}"
            raise BadInput("keep", problem, _NEW)
        self._known = {(line["setting"], line["run"]): RunErrors.from_dict(line["errors"]) for line in lines}
        file.truncate(whole)

    def get(self, setting: str, run: int) -> RunErrors | None:
        """What a run came to, if that is known."""
        return self._known.get((setting, run))

    def add(self, setting: str, run: int, errors: RunErrors) -> None:
        """Keep what a run came to."""
        self._append({"setting": setting, "run": run, "errors": errors.to_dict()})

    def _append(self, line: Mapping[str, Any]) -> None:
        with interrupts.held(), _explaining(self.path):
            self._file.write(json.dumps(line).encode() + b"\n")
            self._file.flush()


@contextmanager
def keeping(path: Path | None, about: Mapping[str, Any]) -> Iterator[Kept | None]:
    """The runs of a file, if one is named: made if it is not there, for its owner only, and locked meanwhile.

    `about` is what all its runs have in common; a file whose runs are about something else is refused.
    """
    if path is None:
        yield None
        return
    with _explaining(path):
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput("keep", f"another process keeps its runs in {str(path)!r}", _NEW) from None
        yield Kept(path, file, about)


def check_keep(path: Path) -> None:
    """Refuse a file that holds something else, or that cannot be made, before any work is done for it."""
    with suppress(OSError):  # of which the next check says more
        if path.is_file():
            _read(path)
            return
    check_file(path, "keep")


def _read(path: Path) -> tuple[dict[str, Any] | None, list[dict[str, Any]], int]:
    """What runs are about, the runs, and how long all whole lines are; None for an empty file."""
    with _explaining(path):
        text = path.read_bytes()
    if not text:
        return None, [], 0
    whole = text.rfind(b"\n") + 1
    try:
        head, *lines = map(json.loads, text[:whole].splitlines())
        if head["kept"] == _KIND and all({"setting", "run", "errors"} == line.keys() for line in lines):
            return dict(head["about"]), lines, whole
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise BadInput("keep", f"{str(path)!r} is not a file of runs", _NEW)


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise explained("keep", path, problem, "runs that were kept before are still there") from None
