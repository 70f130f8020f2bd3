"""Folders that are there whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hushcube import interrupts
from hushcube.errors import HushcubeError, OutputError

_PARTIAL: Final = ".hushcube-partial-"


def check_output(folder: Path) -> None:
    """Refuse a folder that exists or cannot be made, before anything is spent."""
    try:
        folder.lstat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError):
        raise OutputError("out", "is not a name that a folder can have", "choose another name or place") from None
    else:
        raise OutputError("out", "the folder exists already", "choose a new one; releases are never overwritten")
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise OutputError("out", "its parent is not a folder", "create the parent folder first")
    try:
        with tempfile.TemporaryDirectory(dir=parent, prefix=_PARTIAL):
            pass
    except OSError:
        raise OutputError(
            "out", "the parent folder cannot be written", "choose another place, or mend its permissions"
        ) from None


@contextmanager
def all_or_nothing(folder: Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder to work in, which takes its place when the work is done; with `replace`, the place of another."""
    work = Path(tempfile.mkdtemp(dir=folder.absolute().parent, prefix=_PARTIAL))
    try:
        yield work
        work.chmod(0o755)
        with interrupts.irreversible():
            if replace:
                _exchange(folder, work)
            else:
                work.rename(folder)
    except BaseException as problem:
        shutil.rmtree(work, ignore_errors=True)
        if isinstance(problem, OSError):
            reason = (problem.strerror or "input/output error").lower()
            left = "the release is unchanged" if replace else "nothing was published"
            raise HushcubeError(f"out: writing failed ({reason}); {left}. Fix: make room, then try again.") from None
        raise


def _exchange(folder: Path, work: Path) -> None:
    """Put a finished folder in the place of another, which comes back if that fails."""
    old = work.with_name(work.name + "-old")
    folder.rename(old)
    try:
        work.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
