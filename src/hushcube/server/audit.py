"""Who asked what, at which price, and what came of it: a line of JSON for every request, and no number of an answer."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hushcube.errors import OutputError

_TAIL: Final = 2**20
"""Bytes of the log that are looked at for its last lines."""


class Audit:
    """A file of mode 0600 to which lines are added; nothing is ever changed in it.

    Whoever moves or removes it, as logrotate does, has it to themselves: the next line begins a new file in its place.
    """

    def __init__(self, place: str | Path) -> None:
        self.place = Path(place)
        self._lock = threading.Lock()
        try:
            self._file = self._opened()
        except OSError as problem:
            reason = os.strerror(problem.errno or 0).lower()
            raise OutputError("audit", f"{str(place)!r} cannot be written ({reason})", "choose another file") from None

    def note(self, **facts: Any) -> None:
        """Add a line. It is written before the answer leaves: what cannot be noted is not answered."""
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds")} | facts
        told = {name: fact for name, fact in line.items() if fact is not None}
        with self._lock:
            if not self._is_in_place():
                moved, self._file = self._file, self._opened()
                os.close(moved)
            os.write(self._file, json.dumps(told).encode() + b"\n")

    def last(self, most: int, accounts: Collection[str]) -> list[dict[str, Any]]:
        """The last lines about some accounts, oldest first."""
        with self._lock:
            size = os.fstat(self._file).st_size
            start = max(0, size - _TAIL)
            lines = os.pread(self._file, size - start, start).splitlines()[1 if start else 0 :]
        found = [json.loads(line) for line in lines]
        return [line for line in found if line.get("account") in accounts][-most:]

    def _opened(self) -> int:
        file = os.open(self.place, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.fchmod(file, 0o600)
        return file

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file), self.place.stat())
        except FileNotFoundError:
            return False

    def __enter__(self) -> Audit:
        return self

    def __exit__(self, *problem: object) -> None:
        os.close(self._file)
