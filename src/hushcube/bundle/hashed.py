"""A new file that a second thread writes, with its SHA-256: whoever makes the content waits for neither.

What was written is sent to the disk now and then, so that little is left to do when all of it must be there.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

_RUN: Final = 1 << 20  # bytes handed over at once
_BEHIND: Final = 16  # runs that may wait to be written
_UNSENT: Final = 1 << 26  # bytes after which the disk is asked to take what there is


class Hashed:
    """What may be written to: bytes are taken as they come, and never read back."""

    closed = False

    def __init__(self, file: BinaryIO, thread: ThreadPoolExecutor) -> None:
        self._file, self._thread = file, thread
        self._sum = hashlib.sha256()
        self._run: list[bytes] = []
        self._size = self._unsent = 0
        self._waiting: deque[Future[None]] = deque()

    def write(self, data: bytes) -> int:
        """Take some more; what went wrong with earlier bytes is raised here or in the end."""
        self._run.append(bytes(data))  # another kind of buffer might be used again by whoever fills it
        self._size += len(data)
        if self._size >= _RUN:
            self._hand_over()
        while len(self._waiting) > _BEHIND:
            self._waiting.popleft().result()
        return len(data)

    def flush(self) -> None:
        """Nothing is promised before the end."""

    def finish(self) -> str:
        """Write what is left; returns the checksum of all of it."""
        self._hand_over()
        while self._waiting:
            self._waiting.popleft().result()
        self._file.flush()
        return self._sum.hexdigest()

    def _hand_over(self) -> None:
        self._waiting.append(self._thread.submit(self._write, self._run, self._size))
        self._run, self._size = [], 0

    def _write(self, run: list[bytes], size: int) -> None:
        for data in run:
            self._file.write(data)
            self._sum.update(data)
        self._unsent += size
        if self._unsent >= _UNSENT:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._unsent = 0


@contextmanager
def hashed(path: Path, name: str, sums: dict[str, str]) -> Iterator[Hashed]:
    """A new file to write to; in the end its checksum is in `sums`, under its `name`."""
    with path.open("xb") as file, ThreadPoolExecutor(1) as thread:
        try:
            sink = Hashed(file, thread)
            yield sink
            sums[name] = sink.finish()
        except BaseException:
            thread.shutdown(cancel_futures=True)
            raise
