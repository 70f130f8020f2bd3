"""What a user may call the data, and how DuckDB gets to see it.

    people.csv, people.csv.gz, csv:anything      delimited text with a header; every field is read as text
    people.parquet, parts/*.parquet, parquet:... one Parquet file, or several with the same columns
    people.duckdb#table, duckdb:file#table       a table or view of a database file, opened read-only
    people.duckdb and a query, or only a query   one SELECT, on the file or on an empty in-memory database
    a pandas or polars frame, an Arrow table, batch or stream, a DuckDB relation

Columns are found by their exact names and handed to DuckDB by their positions: DuckDB itself takes `Age` and
`age` for one name, and renames the second. Messages of DuckDB quote data, so none of them is passed on.
"""

from __future__ import annotations

import csv
import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from hushcube.errors import DataError
from hushcube.private.boundary import PASSING, reported
from hushcube.private.engines.addresses import shown
from hushcube.private.engines.coding import literal, quote
from hushcube.private.engines.connection import connected
from hushcube.private.engines.names import position

_CSV: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_PARQUET: Final = (".parquet", ".pq")
_DATABASE: Final = (".duckdb", ".ddb", ".db")
_RAISED: Final = (duckdb.Error, pa.ArrowException, OSError, UnicodeError, csv.Error, EOFError)
_HELP: Final = "give a .csv or .parquet file, FILE.duckdb#TABLE, or say which with csv:, parquet: or duckdb:"


@dataclass(frozen=True, repr=False)
class Opened:
    """A relation and the exact names of its columns, by position; `rows` where that is known for nothing.

    It is steady if reading it again gives the same rows: views and queries need not, since they may draw at random.
    It has no repr of its own because that of a relation shows rows.
    """

    relation: duckdb.DuckDBPyRelation
    names: tuple[str, ...]
    rows: int | None = None
    steady: bool = True
    stop: Callable[[], None] = lambda: None
    """Break off what is being read, from another thread."""
    bad: int = 0
    """Rows that could not be read: they are there, without any value. For the owner of the data only."""

    def position(self, column: str, field: str) -> int:
        """Where a column stands; the name must match exactly and once."""
        return position(self.names, column, field)


class Source(ABC):
    """Something that can be opened, more than once."""

    @contextmanager
    def open(self, columns: Sequence[str] | None = None) -> Iterator[Opened]:
        """Open it for reading; only `columns` need be there, where given."""
        files = self.own_files()
        with unreadable(self.problem, self.fix, files=files):
            before = stamps(files)
            with connected(":memory:", limited=True) as connection:
                yield replace(self.show(connection, columns), stop=connection.interrupt)
            after = stamps(files)
        if before != after:  # which rows of a person count was decided by an earlier scan
            raise changed()

    def own_files(self) -> Sequence[str | Path]:
        """The files that the user named, which must not change meanwhile."""
        return ()

    problem = "cannot be read"
    fix = "check that the file is whole and of the kind its name says"

    @abstractmethod
    def show(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str] | None) -> Opened:
        """The relation, on this connection."""


def changed() -> DataError:
    """Files that were written to meanwhile."""
    return DataError("data", "changed while it was read", "try again, or read a copy")


def stamps(files: Sequence[str | Path]) -> tuple[tuple[int, ...], ...]:
    """What tells that files changed; one that may not be read is refused by its name, which DuckDB would not give."""
    found = []
    for file in files:
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK)  # a folder can be opened so, too; Spark reads these
        found.append(os.fstat(opened))
        os.close(opened)
    return tuple((one.st_mtime_ns, one.st_size, one.st_ino) for one in found)


@contextmanager
def unreadable(
    problem: str,
    fix: str,
    field: str = "data",
    *,
    kinds: tuple[type[Exception], ...] = _RAISED,
    files: Sequence[str | Path] = (),
) -> Iterator[None]:
    """Turn what DuckDB, Arrow and the file system raise, or other kinds, into an error without any data in it.

    The error may name `files`, since the user did.
    """
    try:
        yield
    except PASSING:
        raise
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except kinds as error:
        raise reported(error, files) or DataError(field, problem, fix) from None


@dataclass(frozen=True)
class Parquet(Source):
    """Parquet files with the same columns."""

    files: tuple[str, ...]
    problem = "the Parquet data cannot be read"

    def show(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str] | None) -> Opened:
        """Types are widened over the files; else DuckDB rounds later floats to the first file's integers."""
        import pyarrow.parquet as pq

        listed = f"[{', '.join(map(exactly, self.files))}]"
        relation = connection.sql(f"SELECT * FROM read_parquet({listed}, union_by_name = true)")  # noqa: S608
        schemas = [pq.read_schema(file).names for file in self.files]
        for column in columns or ():
            if 0 < sum(column in names for names in schemas) < len(schemas):
                raise DataError("data", f"not every file has the column {column!r}", "use files with the same columns")
        # Where DuckDB renamed case twins, the files know the names; partition columns follow the files' own.
        exact = schemas[0]
        rows = sum(pq.read_metadata(file).num_rows for file in self.files)
        return Opened(relation, (*exact, *relation.columns[len(exact) :]), rows)

    def own_files(self) -> Sequence[str | Path]:
        """All of them."""
        return self.files


@dataclass(frozen=True)
class Database(Source):
    """A DuckDB database, with the name of a table or a query; read-only, or in memory without a file."""

    path: Path | None
    table: str | None = None
    query: str | None = field(default=None, repr=False)
    problem = "the database cannot be read"
    fix = (
        "it must be a DuckDB file that nobody else has open for writing, this program included, and the query must run"
    )

    @contextmanager
    def open(self, columns: Sequence[str] | None = None) -> Iterator[Opened]:
        """Open the file itself: it must exist, so that no other kind of address can be meant."""
        database = ":memory:" if self.path is None else str(self.path)
        limited, read_only = self.query is None, self.path is not None
        files = [] if self.path is None else [self.path]
        with unreadable(self.problem, self.fix, files=files):
            stamps(files)
            with connected(database, limited=limited, read_only=read_only) as connection:
                yield replace(self.show(connection, columns), stop=connection.interrupt)

    def show(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str] | None) -> Opened:  # noqa: ARG002
        """The table, or the query's result."""
        relation, steady = (self._select(connection), False) if self.query is not None else self._table(connection)
        return Opened(relation, tuple(relation.columns), steady=steady)

    def _select(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        fix = "give one SELECT that DuckDB can run"
        with unreadable("the SQL cannot be run", fix, "query"):
            statements = connection.extract_statements(self.query or "")
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise DataError("query", "is not one SELECT", fix)
            return connection.sql(statements[0].query)

    def _table(self, connection: duckdb.DuckDBPyConnection) -> tuple[duckdb.DuckDBPyRelation, bool]:
        """A table or view, and whether it is a table."""
        found = connection.execute(
            """SELECT schema_name, name, steady FROM (
                   SELECT database_name, schema_name, table_name AS name, true AS steady FROM duckdb_tables() UNION ALL
                   SELECT database_name, schema_name, view_name, false FROM duckdb_views() WHERE NOT internal
               ) WHERE database_name = current_database() AND $1 IN (name, schema_name || '.' || name)""",
            [self.table],
        ).fetchall()
        if len(found) != 1:
            what = "no table or view" if not found else "several tables or views"
            raise DataError(
                "data", f"the database has {what} {shown(self.table or '')}", "write FILE#TABLE or FILE#SCHEMA.TABLE"
            )
        schema, name, steady = found[0]
        return connection.sql(f"SELECT * FROM {quote(schema)}.{quote(name)}"), bool(steady)  # noqa: S608


@dataclass(frozen=True, repr=False)
class Relation(Source):
    """A relation of the user's own DuckDB connection, which stays theirs."""

    relation: duckdb.DuckDBPyRelation
    problem = "the DuckDB relation cannot be read"
    fix = "check that its connection is open and that it can be fetched"

    @contextmanager
    def open(self, columns: Sequence[str] | None = None) -> Iterator[Opened]:  # noqa: ARG002
        """Nothing to open or close."""
        with unreadable(self.problem, self.fix):
            yield Opened(self.relation, tuple(self.relation.columns), steady=False)

    def show(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str] | None) -> Opened:
        """Not needed: the relation has a connection."""
        raise NotImplementedError


def exactly(path: str | Path) -> str:
    """A path as an SQL text that matches only itself: DuckDB takes `a[b].csv` for a pattern and would read `ab.csv`."""
    return literal(glob.escape(str(path)))


def recognise(source: object, *, query: str | None = None, tolerant: bool = False) -> Source:
    """Find out what a source is; files must exist, but are not read.

    A `tolerant` source has a row for every line of a CSV file, and takes each value of a frame by itself.
    """
    if query is not None:
        path = None if source is None or source == ":memory:" else _query_file(source)
        return Database(path, query=query)
    if isinstance(source, str | os.PathLike):
        return _recognise_path(os.fspath(source), tolerant=tolerant)
    if isinstance(source, duckdb.DuckDBPyRelation):
        return Relation(source)
    from hushcube.private.engines.frames import recognise_frame

    with unreadable("the stream cannot be read", "check that it was not read before"):
        frame = recognise_frame(source, tolerant=tolerant)
    if frame is None:
        raise DataError("data", f"an object of type {type(source).__name__} is no data source", _HELP)
    return frame


def _recognise_path(text: Any, *, tolerant: bool) -> Source:
    if not isinstance(text, str) or not text or "\0" in text:
        raise DataError("data", "is not a path", _HELP)
    prefix, colon, rest = text.partition(":")
    kind = prefix if colon and prefix in ("csv", "parquet", "duckdb") else ""
    name = rest if kind else text
    file, mark, table = name.rpartition("#")
    lower = name.lower()
    if kind == "csv" or (not kind and lower.endswith(_CSV)):
        from hushcube.private.engines.delimited import Delimited, Lines

        return (Lines if tolerant else Delimited)(_existing(name))
    if kind == "parquet" or (not kind and lower.endswith(_PARQUET)):
        files = (name,) if Path(name).is_file() else tuple(sorted(glob.glob(name, recursive=True)))  # noqa: PTH207
        if not files:
            raise DataError("data", f"there is no file {shown(name)}", "check the path; quote a pattern in the shell")
        return Parquet(files)
    if mark and table and (kind == "duckdb" or file.lower().endswith(_DATABASE)):
        return Database(_existing(file), table=table)
    if kind == "duckdb" or lower.endswith(_DATABASE):
        raise DataError("data", "names a database but no table", "write FILE.duckdb#TABLE, or give a query")
    raise DataError("data", f"it is not clear what {shown(text)} is", _HELP)


def _query_file(source: object) -> Path:
    if not isinstance(source, str | os.PathLike):
        raise DataError("query", "works on a DuckDB file or alone", "leave out the data, or give a .duckdb file")
    return _existing(str(os.fspath(source)).removeprefix("duckdb:"))


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise DataError("data", f"there is no file {shown(name)}", "check the path")
    return path
