"""What the machine ran out of or refuses, read off exceptions: their texts are looked at, never passed on.

A full disk or too little memory says nothing about the data, but many libraries report it as if a file were damaged.
"""

import errno
import os
from typing import Final

from hushcube.errors import BadInput, ResourceError

FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
REFUSED: Final = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR),
    *(errno.ENOTEMPTY, errno.ELOOP, errno.ENAMETOOLONG),
)
"""What the owner of a file or folder can fix."""
_FILES: Final = (errno.EMFILE, errno.ENFILE)
_DISK: Final = (*(os.strerror(number) for number in FULL), "max_temp_directory_size")
_MEMORY: Final = (os.strerror(errno.ENOMEM), "OutOfMemory", "bad_alloc", "failed to map segment", "start new thread")
_SPEAKING: Final = {"IOException", "OutOfMemoryException", "RuntimeError", "ImportError", "OSError"}
"""Kinds of exceptions, DuckDB's among them, whose texts are about the system; others may quote data."""


def exhausted(
    problem: BaseException,
    disk: str | None = None,
    fix: str = "make room, or use another disk",
    *,
    text: str | None = None,
) -> ResourceError | None:
    """The resource whose end an exception reports; None where it is about another thing.

    `disk` names what was being written, where the exception does not, and `fix` what helps if it is full; `text` is to
    be looked at in place of the exception's own.
    """
    number = problem.errno if isinstance(problem, OSError) else None
    kind = type(problem).__name__
    told = f"{kind} {text}" if text is not None else f"{kind} {problem}" if kind in _SPEAKING else ""
    if number in FULL or any(words in told for words in _DISK):
        name = problem.filename if isinstance(problem, OSError) else None
        place = disk or ("the disk" if name is None else f"the disk of {os.fsdecode(name)!r}")
        return ResourceError(place, "is full", fix)
    if isinstance(problem, MemoryError) or number == errno.ENOMEM or any(words in told for words in _MEMORY):
        return ResourceError("memory", "is not enough", "ask for smaller tables, or use a larger machine")
    if number in _FILES:
        return ResourceError("open files", "are too many for the system", "close others, or raise `ulimit -n`")
    return None


def unusable(problem: BaseException) -> BadInput | None:
    """The file or folder that the system refuses; None where an exception is about another thing."""
    if not isinstance(problem, OSError) or problem.errno not in REFUSED or problem.filename is None:
        return None
    reason = os.strerror(problem.errno).lower()
    fix = "check the path and its permissions"
    return BadInput(repr(os.fsdecode(problem.filename)), f"cannot be used ({reason})", fix)
