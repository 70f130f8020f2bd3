"""How DuckDB gets to see the data: a connection, and the sources that it reads.

Columns are found by their exact names and handed to DuckDB by their positions: DuckDB itself takes `Age` and
`age` for one name, and renames the second. Messages of DuckDB quote data, so none of them is passed on.

What does not fit in memory DuckDB writes to disk. Left to itself it would write rows into the working folder, for
everybody to read; here it gets a folder that only the owner of the process can enter, and that is removed in the end.
A full disk or too little memory is reported as that, since it says nothing about the data.
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
import numpy as np
import pyarrow as pa

from hushcube.durable import overfull, temporary_folder
from hushcube.errors import DataError
from hushcube.private.boundary import PASSING, reported, shown
from hushcube.private.engines.coding import Positions, literal, quote
from hushcube.private.engines.contract import needed, position
from hushcube.private.engines.digests import digest_of_files, digest_of_table

MEMORY: Final = 2 << 30
"""Bytes that DuckDB may use for rows of files and frames: sorts and groups beyond that go to disk, at no great cost."""
_SETTINGS: Final = {
    # Nothing is fetched from the network behind the owner's back, and the order of rows means nothing here.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "preserve_insertion_order": "false",
}
Kinds = tuple[type[Exception], ...]
_RAISED: Final[Kinds] = (duckdb.Error, pa.ArrowException, OSError, UnicodeError, csv.Error, EOFError)


@contextmanager
def connected(database: str, *, limited: bool, read_only: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that spills into a folder of its own; `limited` unless queries are run that may need more memory."""
    with temporary_folder() as folder:
        settings: dict[str, Any] = {**_SETTINGS, "temp_directory": str(folder)}
        try:
            with duckdb.connect(database, read_only=read_only, config=settings) as connection:
                if limited:
                    usual = "parse_formatted_bytes(current_setting('memory_limit'))"
                    least = connection.execute(f"SELECT least({usual}, {MEMORY})").fetchall()[0][0]
                    connection.execute(f"SET memory_limit = '{int(least)}B'")
                yield connection
        except (duckdb.Error, OSError, MemoryError) as problem:  # what the machine lacks is not wrong with the data
            if (lacking := overfull(problem)) is not None:
                raise lacking from None
            raise


Batches = Iterator[list[Any]]
"""Columns of some rows: the codes of attributes, then values of measures, as Arrow arrays."""
Direct = Callable[[Sequence[str], Sequence[Positions], int], Iterator[Batches] | None]
"""Some columns by exact names, the first of which are coded: pieces of the data, in batches of so many rows at most.

None where SQL is needed."""


def _nothing(columns: Sequence[str], coders: Sequence[Positions], rows: int) -> None:
    """Data that only DuckDB can read."""


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
    direct: Direct = _nothing
    """What reads columns as they are stored, where they need no SQL; DuckDB is passed by."""
    bad: int = 0
    """Rows that could not be read: they are there, without any value. For the owner of the data only."""

    def reference(self, column: str, field: str) -> tuple[str, str]:
        """A column in SQL, by its position, and its type; the name must match exactly and once."""
        place = position(self.names, column, field)
        return f"#{place + 1}", str(self.relation.types[place].id)


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

    def contents(self) -> Sequence[str | Path]:
        """The files that hold what is read; none where that is not known, or is not in files."""
        return self.own_files()

    def digest(self) -> str | None:
        """The SHA-256 of what is read, as of the files; None where reading it again may give something else."""
        files = self.contents()
        with unreadable(self.problem, self.fix, files=files):
            return digest_of_files(files) if files else None

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
    problem: str, fix: str, field: str = "data", *, kinds: Kinds = _RAISED, files: Sequence[str | Path] = ()
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
class Database(Source):
    """A DuckDB database, with the name of a table or a query; read-only, or in memory without a file."""

    path: Path | None
    table: str | None = None
    query: str | None = field(default=None, repr=False)
    problem = "the database cannot be read"
    fix = "it must be a DuckDB file that nobody has open for writing, this program included, and the query must run"

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

    def contents(self) -> Sequence[str | Path]:
        """The database, for a table in it; a query may read any file."""
        if self.path is None or self.query is not None:
            return ()
        log = Path(f"{self.path}.wal")  # of a writer that was killed
        return (self.path, log) if log.exists() else (self.path,)

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
            fix = "write FILE#TABLE or FILE#SCHEMA.TABLE"
            raise DataError("data", f"the database has {what} {shown(self.table or '')}", fix)
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


@dataclass(frozen=True, repr=False)
class Frame(Source):
    """A table in memory; only the columns needed are turned into Arrow, which most frames share without a copy."""

    frame: Any
    library: str
    tolerant: bool = False
    """Whether columns of Python's objects, and of categories that may be such, are read value by value, as texts."""
    problem = "the data frame cannot be turned into an Arrow table"
    fix = 'give each column one type: numbers, texts, truth values or dates; or release with `bad_rows="missing"`'

    def show(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str] | None) -> Opened:
        """Columns named by position, since their own names may be one name to DuckDB."""
        with unreadable(self.problem, self.fix, kinds=(Exception,)):
            names = self._names()
            kept = needed(names, columns)
            table = self._arrow(names, kept).rename_columns([f"c{i}" for i in range(len(kept))])
        return Opened(connection.from_arrow(table), tuple(names[i] for i in kept), table.num_rows)

    def digest(self) -> str | None:
        """That of its Arrow form, in one piece; a lazy frame has none."""
        if hasattr(self.frame, "collect"):
            return None
        with unreadable(self.problem, self.fix, kinds=(Exception,)):
            names = self._names()
            return digest_of_table(self._arrow(names, range(len(names))).rename_columns(names))

    def _names(self) -> list[str]:
        if self.library == "polars":
            return list(self.frame.collect_schema().names())
        return [str(name) for name in (self.frame.columns if self.library == "pandas" else self.frame.schema.names)]

    def _arrow(self, names: Sequence[str], kept: Sequence[int]) -> pa.Table:
        if self.library == "arrow":
            return self.frame.select(list(kept))
        if self.library == "pandas":
            columns = [self.frame.iloc[:, i] for i in kept]
        else:
            chosen = self.frame.select([names[i] for i in kept])
            columns = (chosen.collect() if hasattr(chosen, "collect") else chosen).get_columns()
        return pa.table([self._array(column) for column in columns], names=[str(i) for i in kept])

    def _array(self, column: Any) -> pa.Array:
        """A column; what stands beside an object must not decide how it is read, where bad values are tolerated."""
        if self.tolerant and str(column.dtype) in ("object", "Object", "category"):
            return pa.array([text_of(value) for value in column], pa.string())
        return column.to_arrow() if self.library == "polars" else pa.array(column, from_pandas=True)


def text_of(value: Any) -> str | None:
    """One object as a text, as a CSV file would have it; None where it is missing, or cannot be written.

    >>> [text_of(value) for value in ("x", 1, 2.0, 0.5, True, float("nan"), b"\\xff", "\\ud800", [1])]
    ['x', '1', '2', '0.5', 'true', None, None, None, '[1]']
    """
    try:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or value != value:  # NaN and the like
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float) and value.is_integer():
            return str(int(value))
        text = value.decode() if isinstance(value, bytes) else str(value)
        text.encode()
    except Exception:  # whatever an object of the data raises
        return None
    return text or None


def recognise_frame(source: object, *, tolerant: bool = False) -> Frame | None:
    """The frame that a user's object is; a stream is read here, once, since it cannot be read again.

    Arrow, pandas and polars are recognised without importing what the user did not import.
    """
    library = type(source).__module__.partition(".")[0]
    if (library, type(source).__name__) in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("polars", "LazyFrame")):
        return Frame(source, library, tolerant)
    if isinstance(source, pa.Table):
        return Frame(source, "arrow")
    if isinstance(source, pa.RecordBatch):
        return Frame(pa.Table.from_batches([source]), "arrow")
    if hasattr(source, "__arrow_c_stream__"):
        return Frame(pa.RecordBatchReader.from_stream(source).read_all(), "arrow")
    return None


def exactly(path: str | Path) -> str:
    """A path as an SQL text that matches only itself: DuckDB takes `a[b].csv` for a pattern and would read `ab.csv`."""
    return literal(glob.escape(str(path)))
