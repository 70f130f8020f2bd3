"""Reading a release that anyone may have made: only regular files inside its folder, and never without a limit.

A pipe or a device in the place of a file would block or never end, and a link could lead anywhere. Links within the
folder are followed; the folder itself may be reached through one. Every failure is a BundleError that names the file.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from hushcube.errors import BundleError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

LONGEST_TEXT: Final = 2**30  # bytes of a text that is read whole; plans of a million tables have a tenth of it
LONGEST_FILE: Final = 2**36  # bytes of a file whose size the manifest does not say, as in earlier formats
LONGEST_RUN: Final = 2**20  # rows that are decoded at once: row groups are never written longer
_CAREFUL: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def damaged(part: str, problem: str) -> BundleError:
    """What is wrong with a part of a release."""
    return BundleError(part, problem, "get the release again from its publisher")


def inside(folder: Path, name: str, *, is_folder: bool = False) -> Path:
    """A regular file or a folder of the release, by its name in the manifest; where it really is."""
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise damaged("manifest.json", "names a file outside the release")
    try:
        root = folder.resolve(strict=True)
        path = (root / pure).resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        raise damaged(name, "is missing") from None
    except (OSError, ValueError, RuntimeError):  # such as a loop of links, or a name that no file can have
        raise damaged(name, "cannot be read") from None
    if not path.is_relative_to(root):
        raise damaged(name, "is a link that leaves the release")
    if not (path.is_dir() if is_folder else path.is_file()):
        raise damaged(name, "is not a folder" if is_folder else "is not a regular file")
    return path


@contextmanager
def open_file(folder: Path, name: str) -> Iterator[io.BufferedReader]:
    """A regular file of the release, open for reading."""
    path = inside(folder, name)
    try:
        with open(path, "rb", opener=lambda place, flags: os.open(place, flags | _CAREFUL)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise damaged(name, "is not a regular file")
            yield file
    except OSError:
        raise damaged(name, "cannot be read") from None


def read_text(folder: Path, name: str) -> str:
    """A text of the release."""
    with open_file(folder, name) as file:
        size = os.fstat(file.fileno()).st_size
        if size > LONGEST_TEXT:
            raise damaged(name, f"has {size:,} bytes, more than any text of a release")
        content = file.read(size + 1)
    try:
        return content.decode("utf-8")
    except ValueError:
        raise damaged(name, "is not UTF-8 text") from None


def checksum(folder: Path, name: str) -> str:
    """The SHA-256 of a file of the release."""
    with open_file(folder, name) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_file(folder: Path, name: str, expected: object, size: object = None) -> None:
    """Refuse a file that is not what the manifest says; one of another size is not read."""
    found = inside(folder, name).stat().st_size
    if type(size) is int and found != size:
        raise damaged(name, "was changed after the release (another size)")
    if type(size) is not int and found > LONGEST_FILE:
        raise damaged(name, f"has {found:,} bytes, more than any file of a release")
    if checksum(folder, name) != expected:
        raise damaged(name, "was changed after the release (another checksum)")


@contextmanager
def parquet(folder: Path, name: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file of the release; whatever goes wrong while it is read is a BundleError."""
    import pyarrow.parquet as pq

    path = inside(folder, name)
    with unreadable(name), pq.ParquetFile(path) as file:
        yield file


@contextmanager
def unreadable(name: str) -> Iterator[None]:
    """Whatever goes wrong while a Parquet file is decoded is the file's damage, but for a lack of memory."""
    import pyarrow as pa

    try:
        yield
    except (BundleError, MemoryError):
        raise
    except (OSError, ValueError, LookupError, TypeError, OverflowError, AttributeError, pa.ArrowException):
        raise damaged(name, "cannot be read, or holds another table") from None


class Pack:
    """A Parquet file of which runs of rows are read: only the row groups that hold them are decoded."""

    def __init__(self, file: pq.ParquetFile) -> None:
        rows = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
        if max(rows, default=0) > LONGEST_RUN:
            raise ValueError("a row group is longer than any of a release")
        self._file, self._starts = file, list(accumulate(rows, initial=0))
        self.length = self._starts[-1]

    def rows(self, start: int, number: int, columns: list[str] | None = None) -> pa.Table:
        """A run of rows that begins within the file, or as much of it as there is."""
        first, end = bisect_right(self._starts, start) - 1, bisect_left(self._starts, start + number)
        groups = list(range(first, min(end, len(self._starts) - 1)))
        return self._file.read_row_groups(groups, columns=columns).slice(start - self._starts[first], number)
