"""Folders that are there whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hushcube import interrupts
from hushcube.errors import HushcubeError

_PARTIAL: Final = ".hushcube-partial-"


@contextmanager
def all_or_nothing(folder: Path) -> Iterator[Path]:
    """A folder to work in, which takes the place of another when the work is done."""
    work = Path(tempfile.mkdtemp(dir=folder.absolute().parent, prefix=_PARTIAL))
    try:
        yield work
        work.chmod(0o755)
        with interrupts.irreversible():
            _exchange(folder, work)
    except BaseException as problem:
        shutil.rmtree(work, ignore_errors=True)
        if isinstance(problem, OSError):
            reason = (problem.strerror or "input/output error").lower()
            raise HushcubeError(f"out: writing failed ({reason}); the release is unchanged. Fix: make room.") from None
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
