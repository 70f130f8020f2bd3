"""The embedded engine: DuckDB reads the rows and finds the texts, and coded rows are counted here.

Coded columns stream out of one scan as Arrow batches; the next batch is read while one is counted. Numbers in Parquet
files need no SQL, and are read without DuckDB, by two threads that also count what they read. Few rows are kept and
counted when asked for; many rows go into covering tables as they pass.

What a user may call the data:

    people.csv, people.csv.gz, csv:anything      delimited text with a header; every field is read as text
    people.parquet, parts/*.parquet, parquet:... one Parquet file, or several with the same columns
    people.duckdb#table, duckdb:file#table       a table or view of a database file, opened read-only
    people.duckdb and a query, or only a query   one SELECT, on the file or on an empty in-memory database
    a pandas or polars frame, an Arrow table, batch or stream, a DuckDB relation
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import duckdb

from hushcube.ahead import ahead, gathered
from hushcube.errors import DataError
from hushcube.model.arrays import Ints
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.boundary import guarded, shown
from hushcube.private.engines.bounding import bounded
from hushcube.private.engines.coding import (
    FLOATS,
    INTEGERS,
    Coder,
    Codes,
    check_sums,
    coder,
    fetched_measure,
    quantised,
)
from hushcube.private.engines.contract import ExactCounts, Measures, ReadShare, Wanted, attributes_of, refuse_data
from hushcube.private.engines.delimited import Delimited, Lines
from hushcube.private.engines.parquet import Parquet
from hushcube.private.engines.source import Batches, Database, Opened, Relation, Source, recognise_frame, unreadable
from hushcube.private.engines.tally import Tally, counts_of

_CSV: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_PARQUET: Final = (".parquet", ".pq")
_DATABASE: Final = (".duckdb", ".ddb", ".db")
_HELP: Final = "give a .csv or .parquet file, FILE.duckdb#TABLE, or say which with csv:, parquet: or duckdb:"

_BATCH_VALUES: Final = 1 << 23
"""Values in a batch, about."""
_STORED_VALUES: Final = 1 << 22
"""The same where several threads read at a time."""


class DuckDBEngine:
    """Counts the tables of one source."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @guarded
    def count(
        self, schema: Schema, wanted: Wanted, *, measures: Measures = (), progress: ReadShare | None = None
    ) -> ExactCounts:
        """Read the rows once and count them, or keep them coded; measures are summed over the same rows."""
        used = attributes_of(wanted)
        attributes = [schema.attributes[i] for i in used]
        columns = [a.source_column for a in attributes] + [m.source_column for m in measures]
        unit, dropped = schema.unit, 0
        with self.source.open([*columns, *([unit.column] if unit else [])]) as data:
            refuse_data(schema, data.names, self.source.own_files())
            bad = data.bad
            if unit is not None:
                data, dropped = bounded(data, unit, columns)
            tally = Tally(schema, used, wanted, measures, data.rows)

            def add(codes: list[Codes], sums: list[tuple[Ints, bool]], rows: int) -> None:
                check_sums(measures, tally.rows + rows)
                tally.add(codes, rows, [integers for integers, _ in sums], [refusal for _, refusal in sums])

            for _ in used_where_read(data, attributes, measures, add):
                if progress and data.rows:
                    progress(min(1.0, tally.rows / data.rows))
        check_sums(measures, tally.rows)  # of the last batches, threads did not see each other's
        counts = counts_of(schema, measures, [tally])
        if progress:
            progress(1.0)
        counts.dropped, counts.bad = dropped, bad
        return counts


def coded(data: Opened, attributes: Sequence[Attribute]) -> Iterator[list[Codes]]:
    """The positions of some attributes, in batches of rows."""
    yield from used_where_read(data, attributes, (), lambda codes, sums, rows: codes)  # noqa: ARG005


Used = TypeVar("Used")
Use = Callable[[list[Codes], list[tuple[Ints, bool]], int], Used]
"""What is done with a batch: positions of attributes, integers of measures and whether some were missing, and how many
rows there are."""


def used_where_read(
    data: Opened, attributes: Sequence[Attribute], measures: Measures, use: Use[Used]
) -> Iterator[Used]:
    """What comes of using the rows, in batches, in any order, each by the thread that has just read it."""
    places = [data.reference(each.source_column, f"attribute {each.name!r}") for each in attributes]
    coders = [coder(each, *place) for each, place in zip(attributes, places, strict=True)]
    places += [data.reference(each.source_column, f"measure {each.name!r}") for each in measures]
    fetches = [each.sql for each in coders] + [fetched_measure(*place) for place in places[len(coders) :]]
    if not fetches:
        yield use([], [], int(data.relation.aggregate("count(*) AS n").fetchall()[0][0]))
        return

    def used(columns: Sequence[Any]) -> Used:
        numbers = zip(columns[len(coders) :], measures, strict=True)
        sums = [quantised(column, measure) for column, measure in numbers]
        return use(list(columns[: len(coders)]), sums, len(columns[0]))

    if (pieces := _stored(data, places, coders)) is not None:
        yield from gathered(map(used, piece) for piece in pieces)
    else:
        yield from map(used, _fetched(data, fetches, coders))


def _fetched(data: Opened, fetches: Sequence[str], coders: Sequence[Coder]) -> Batches:
    """What SQL makes of the columns, in batches, coded."""
    chosen = data.relation.project(", ".join(f"{sql} AS k{i}" for i, sql in enumerate(fetches)))
    for batch in ahead(chosen.to_arrow_reader(_batch_rows(_BATCH_VALUES, fetches)), data.stop):
        codes = [each.positions(column) for each, column in zip(coders, batch.columns, strict=False)]
        yield [*codes, *batch.columns[len(coders) :]]


def _stored(data: Opened, places: Sequence[tuple[str, str]], coders: Sequence[Coder]) -> Iterator[Batches] | None:
    """The columns as they are stored, in pieces; None where SQL has to make something of one of them."""
    numbers = places[len(coders) :]
    if any(each.sql != column for each, (column, _) in zip(coders, places, strict=False)):
        return None
    if not all(duckdb_type in FLOATS | INTEGERS for _, duckdb_type in numbers):
        return None
    columns = [data.names[int(column[1:]) - 1] for column, _ in places]
    return data.direct(columns, [each.positions for each in coders], _batch_rows(_STORED_VALUES, columns))


def _batch_rows(values: int, columns: Sequence[str]) -> int:
    """Rows of a batch: a power of two, so that the kernel's blocks fill it."""
    return int(max(1 << 16, 1 << (values // len(columns)).bit_length() - 1))


def recognise(source: object, *, query: str | None = None, tolerant: bool = False) -> Source:
    """Find out what a source is; files must exist, but are not read.

    A `tolerant` source has a row for every line of a CSV file, and takes each value of a frame by itself.
    """
    if query is not None:
        if source is None or source == ":memory:":
            return Database(None, query=query)
        if not isinstance(source, str | os.PathLike):
            raise DataError("query", "works on a DuckDB file or alone", "leave out the data, or give a .duckdb file")
        return Database(_existing(str(os.fspath(source)).removeprefix("duckdb:")), query=query)
    if isinstance(source, str | os.PathLike):
        return _recognise_path(os.fspath(source), tolerant=tolerant)
    if isinstance(source, duckdb.DuckDBPyRelation):
        return Relation(source)
    with unreadable("the stream cannot be read", "check that it was not read before"):
        frame = recognise_frame(source, tolerant=tolerant)
    if frame is None:
        raise DataError("data", f"an object of type {type(source).__name__} is not a data source", _HELP)
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


def _existing(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise DataError("data", f"there is no file {shown(name)}", "check the path")
    return path
