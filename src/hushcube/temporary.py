"""Folders for what does not fit memory, which is rows: for their owner only, and gone with their process.

A folder is locked while its process lives. Whoever opens data next removes the folders of processes that were killed;
another user's folders, links, and what merely has a similar name are left alone.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from hushcube.durable import aside, explained, sweep
from hushcube.errors import ResourceError
from hushcube.resources import exhausted

_PREFIX: Final = "hushcube-temporary-"


def place() -> Path:
    """Where temporary folders are made: $TMPDIR, which is not replaced by another place if it cannot be used."""
    return Path(os.environ.get("TMPDIR") or tempfile.gettempdir()).absolute()


def temporary_folder() -> AbstractContextManager[Path]:
    """A new folder, which is removed in the end."""
    return aside(place(), _make, prefix=_PREFIX)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(0o700)
    except OSError as problem:
        raise overfull(problem) or explained("TMPDIR", place(), problem, "nothing was read") from None


def overfull(problem: BaseException) -> ResourceError | None:
    """The resource that ran out while something was kept in a temporary folder; None if none did."""
    fix = "make room there, or set TMPDIR to a folder on another disk"
    return exhausted(problem, f"the temporary folder {str(place())!r}", fix)


def remove_leftovers() -> None:
    """Remove the folders of processes that were killed."""
    sweep(place(), _PREFIX)
