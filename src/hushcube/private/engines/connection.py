"""A connection to DuckDB: what it may use of memory, disk and network.

What does not fit in memory DuckDB writes to disk. Left to itself it would write rows into the working folder, for
everybody to read; here it gets a folder that only the owner of the process can enter, and that is removed in the end.
A full disk or too little memory is reported as that, since it says nothing about the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import duckdb

from hushcube.temporary import overfull, temporary_folder

MEMORY: Final = 2 << 30
"""Bytes that DuckDB may use for rows of files and frames: sorts and groups beyond that go to disk, at no great cost."""
_SETTINGS: Final = {
    # Nothing is fetched from the network behind the owner's back, and the order of rows means nothing here.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "preserve_insertion_order": "false",
}


@contextmanager
def connected(database: str, *, limited: bool, read_only: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that spills into a folder of its own; `limited` unless queries are run that may need more memory."""
    with temporary_folder() as folder, _machine():
        settings: dict[str, Any] = {**_SETTINGS, "temp_directory": str(folder)}
        with duckdb.connect(database, read_only=read_only, config=settings) as connection:
            if limited:
                usual = "parse_formatted_bytes(current_setting('memory_limit'))"
                least = connection.execute(f"SELECT least({usual}, {MEMORY})").fetchall()[0][0]
                connection.execute(f"SET memory_limit = '{int(least)}B'")
            yield connection


@contextmanager
def _machine() -> Iterator[None]:
    """Tell apart what the machine lacks from what is wrong with the data."""
    try:
        yield
    except (duckdb.Error, OSError, MemoryError) as problem:
        if (lacking := overfull(problem)) is not None:
            raise lacking from None
        raise
