"""What the machine ran out of, read off the exceptions of libraries: their texts are looked at, never passed on.

A full disk or too little memory says nothing about the data, but many libraries report it as if a file were damaged.
"""

from __future__ import annotations

import errno
import os
from typing import Final

from hushcube.errors import ResourceError

FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FILES: Final = (errno.EMFILE, errno.ENFILE)
_DISK: Final = (*(os.strerror(number) for number in FULL), "max_temp_directory_size")
_MEMORY: Final = (os.strerror(errno.ENOMEM), "OutOfMemory", "bad_alloc", "failed to map segment", "start new thread")
_SPEAKING: Final = {"IOException", "OutOfMemoryException", "RuntimeError", "ImportError", "OSError"}
"""Kinds of exceptions, DuckDB's among them, whose texts are about the system; others may quote data."""


def exhausted(problem: BaseException, disk: str | None = None, *, text: str | None = None) -> ResourceError | None:
    """The resource whose end an exception reports; None where it is about another thing.

    `disk` names what was being written, where the exception does not; `text` is to be looked at in place of its own.
    """
    number = problem.errno if isinstance(problem, OSError) else None
    kind = type(problem).__name__
    told = text if text is not None else f"{kind} {problem}" if kind in _SPEAKING else ""
    if number in FULL or any(words in told for words in _DISK):
        name = problem.filename if isinstance(problem, OSError) else None
        place = disk or ("the disk" if name is None else f"the disk of {os.fsdecode(name)!r}")
        return ResourceError(place, "is full", "make room, or use another disk")
    if isinstance(problem, MemoryError) or number == errno.ENOMEM or any(words in told for words in _MEMORY):
        return ResourceError("memory", "is not enough", "ask for smaller tables, or use a larger machine")
    if number in _FILES:
        return ResourceError("open files", "are too many for the system", "close others, or raise `ulimit -n`")
    return None
