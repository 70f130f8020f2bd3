"""One change of a published release at a time, and none that a dead process left half done.

A file in the release's folder is locked while the release is changed. It names the process that changes it, and the
folders that the change makes and supersedes. The operating system ends the lock with the process, whatever ends that; a
file that exists but is not locked shows the next one what to put in order.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from hushcube import interrupts
from hushcube.bundle.manifest import face_folders, is_face_folder, read_manifest
from hushcube.bundle.reading import folder_inside
from hushcube.durable import sync_folder
from hushcube.errors import BundleError

LOCK: Final = ".hushcube-lock"
_PATIENCE: Final = 600.0
"""Seconds to wait for another process, which changes a release in a fraction of one, or a very large one in minutes."""
_PAUSE: Final = 0.02
_WRITTEN: Final = ("tables/*.parquet", "people.parquet", "PRIVACY.md")


class Change:
    """A change of a release under way."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self._folder = folder
        self._descriptor = descriptor
        self._makes: str | None = None
        self._supersedes: str | None = None

    def announce(self, makes: str, supersedes: str | None) -> None:
        """Record the folders that the release is about to gain and lose, before the first of them is made."""
        self._makes, self._supersedes = makes, supersedes
        self._write({"makes": makes, "supersedes": supersedes})

    def settle_last(self) -> None:
        """Remove what a dead process left, and name this one as the holder of the lock."""
        record = _read(self._descriptor)
        for place in (record.get("makes"), record.get("supersedes")):
            if is_face_folder(place):
                _remove_unlisted(self._folder, place)
        self._write({})

    def settle(self, *, done: bool) -> None:
        """Remove what the release does not list, and the lock; what may still be needed stays for the next change."""
        if self._makes is not None:
            _remove_unlisted(self._folder, self._makes)
        if self._supersedes is not None and done:
            _remove_unlisted(self._folder, self._supersedes)
        elif self._supersedes is not None and self._supersedes not in _listed(self._folder):
            return
        (self._folder / LOCK).unlink(missing_ok=True)

    def _write(self, record: dict[str, Any]) -> None:
        holder = {"process": os.getpid(), "host": socket.gethostname(), "since": f"{datetime.now():%Y-%m-%d %H:%M:%S}"}
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps({**holder, **record}).encode(), 0)
        os.fsync(self._descriptor)
        sync_folder(self._folder)


@contextmanager
def changing(folder: Path) -> Iterator[Change]:
    """The right to change a release; waits a while for another process that has it, and refuses after that."""
    change, done = None, False
    patience = time.monotonic() + _PATIENCE
    try:
        while change is None:
            with interrupts.held():
                change = _try(folder)
            if change is None:
                if time.monotonic() > patience:
                    raise BundleError(repr(str(folder)[:200]), f"is being changed by {_holder(folder)}", "try later")
                time.sleep(_PAUSE)
        change.settle_last()
        yield change
        done = True
    finally:
        if change is not None:
            with interrupts.held():
                with suppress(OSError, BundleError):
                    change.settle(done=done)
                with suppress(OSError):
                    os.close(change._descriptor)


def _try(folder: Path) -> Change | None:
    """The lock, unless another process has it or has just given it back with the file."""
    path = folder / LOCK
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.lstat()):
            return Change(folder, os.dup(descriptor))
    except (BlockingIOError, FileNotFoundError):
        pass
    finally:
        with suppress(OSError):
            os.close(descriptor)
    return None


def _holder(folder: Path) -> str:
    """Who changes a release, as far as the lock says."""
    record: dict[str, Any] = {}
    with suppress(OSError):
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW)
        record = _read(descriptor)
        os.close(descriptor)
    told = [record.get(name) for name in ("process", "host", "since")]
    return "process {!r} on {!r} since {!r}".format(*told) if all(told) else "another process"


def _read(descriptor: int) -> dict[str, Any]:
    try:
        record = json.loads(os.pread(descriptor, 10_000, 0))
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _listed(folder: Path) -> frozenset[str]:
    return frozenset(face_folders(read_manifest(folder)).values())


def _remove_unlisted(folder: Path, place: str) -> None:
    """Remove what the program wrote for a face that the release does not list; other files there stay."""
    if place in _listed(folder):
        return
    where = folder / place
    if os.path.lexists(where):
        where = folder_inside(folder, place)  # not through a link that leaves the release
    for pattern in _WRITTEN:
        for path in where.glob(pattern):
            path.unlink()
    for emptied in (where / "tables", where, where.parent):
        with suppress(OSError):
            emptied.rmdir()
