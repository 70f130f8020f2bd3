"""Digests of data, by which an account of a ledger can be bound to it: of files, and of tables in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa


def digest_of_files(files: Sequence[str | Path]) -> str:
    """The SHA-256 of a file; of several, that of their own ones in the order of the names, one a line."""
    sums = []
    for file in sorted(map(str, files)):
        with open(file, "rb") as opened:  # noqa: PTH123 - a path may be any text
            sums.append(hashlib.file_digest(opened, "sha256").hexdigest())
    return sums[0] if len(sums) == 1 else hashlib.sha256("".join(f"{each}\n" for each in sums).encode()).hexdigest()


def digest_of_table(table: pa.Table) -> str:
    """The SHA-256 of a table as an Arrow stream, in one piece however it is divided, and without remarks."""
    sink = _Hashing()
    with pa.ipc.new_stream(sink, table.schema.remove_metadata()) as stream:
        stream.write_table(table.replace_schema_metadata(None).combine_chunks())
    return sink.digest


class _Hashing:
    """A file to which everything is written that is to be digested."""

    closed = False

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def write(self, content: Any) -> int:
        """Take in some bytes."""
        self._hash.update(content)
        return len(content)

    def flush(self) -> None:
        """Nothing is held back."""

    @property
    def digest(self) -> str:
        """The SHA-256 of all that was written."""
        return self._hash.hexdigest()
