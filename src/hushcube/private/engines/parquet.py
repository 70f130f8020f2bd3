"""Parquet files: columns are read as they are stored where that will do, and by DuckDB where it takes SQL.

Measured on ten columns of small integers, processor time for a row: DuckDB needs 24 ns to hand it over, because it
makes Arrow arrays of its own vectors; Arrow's reader needs 15 ns, about as much as DuckDB's bare scan; dictionaries and
pages that are coded without values being made of them [pages.py] need 5 ns. Row groups are read in pieces that several
threads can divide among them: they leave Python's lock while they read.

What needs SQL goes through DuckDB: dates, decimals, files whose types differ, and partitioned folders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from hushcube.errors import DataError
from hushcube.private.engines.coding import Positions
from hushcube.private.engines.pages import Chunk, Pages
from hushcube.private.engines.source import Batches, Opened, Source, exactly

_STORED: Final = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.uint8(): "utinyint",
    pa.uint16(): "usmallint",
    pa.uint32(): "uinteger",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "varchar",
    pa.large_string(): "varchar",
}
"""Types that Arrow reads as DuckDB hands them over."""
_PIECE: Final = 1 << 19  # rows that one thread reads in a row, at least: opening a file again takes as long as some
_WHOLE: Final = 1 << 27  # bytes of columns in a row group that are read at once, which spares copies
_FEWER: Final = 4  # Arrow's batches have a quarter of the rows: it makes values, which should stay in the cache
_BUFFER: Final = 1 << 20  # bytes of a column that are read ahead, where there are more: they may not fit in memory


@dataclass(frozen=True)
class Parquet(Source):
    """Parquet files with the same columns."""

    files: tuple[str, ...]
    problem = "the Parquet data cannot be read"

    def show(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str] | None) -> Opened:
        """Types are widened over the files; else DuckDB rounds later floats to the first file's integers."""
        listed = f"[{', '.join(map(exactly, self.files))}]"
        relation = connection.sql(f"SELECT * FROM read_parquet({listed}, union_by_name = true)")  # noqa: S608
        schemas = [pq.read_schema(file) for file in self.files]
        for column in columns or ():
            if 0 < sum(column in schema.names for schema in schemas) < len(schemas):
                raise DataError("data", f"not every file has the column {column!r}", "use files with the same columns")
        # Where DuckDB renamed case twins, the files know the names; partition columns follow the files' own.
        exact = schemas[0].names
        found = [pq.read_metadata(file) for file in self.files]
        types = dict(zip(exact, (str(each.id) for each in relation.types), strict=False))
        stored = _Stored(self.files, schemas, found, types)
        names = (*exact, *relation.columns[len(exact) :])
        return Opened(relation, names, sum(each.num_rows for each in found), direct=stored.read)

    def own_files(self) -> Sequence[str | Path]:
        """All of them."""
        return self.files


@dataclass(frozen=True)
class _Stored:
    """What the files hold, and how: `types` are DuckDB's, by name."""

    files: Sequence[str]
    schemas: Sequence[pa.Schema]
    contents: Sequence[pq.FileMetaData]
    types: dict[str, str]

    def read(self, columns: Sequence[str], coders: Sequence[Positions], rows: int) -> Iterator[Batches] | None:
        """The columns as they are stored, the first ones coded; None where DuckDB might have something else."""
        if any("=" in part for file in self.files for part in Path(file).parts[:-1]):
            return None  # a folder's name may stand for a column
        if not all(self._is_plain(column) for column in columns):
            return None
        pieces = (piece for i in range(len(self.files)) for piece in self._pieces(i))
        return (self._batches(i, groups, columns, coders, rows) for i, groups in pieces)

    def _is_plain(self, column: str) -> bool:
        """Whether it is one column in every file, of one type that needs no conversion."""
        for schema, content in zip(self.schemas, self.contents, strict=True):
            if len(schema.get_all_field_indices(column)) != 1:
                return False
            if _STORED.get(_kind(schema, column)) != self.types[column]:
                return False
            paths = [content.schema.column(i).path for i in range(content.num_columns)]
            if sum(path == column or path.startswith(f"{column}.") for path in paths) != 1:
                return False
        return True

    def _pieces(self, file: int) -> Iterator[tuple[int, list[int]]]:
        """Row groups that are read together, of one file."""
        groups: list[int] = []
        rows, content = 0, self.contents[file]
        for group in range(content.num_row_groups):
            groups.append(group)
            rows += content.row_group(group).num_rows
            if rows >= _PIECE:
                yield file, groups
                groups, rows = [], 0
        if groups:
            yield file, groups

    def _batches(
        self, file: int, groups: list[int], columns: Sequence[str], coders: Sequence[Positions], rows: int
    ) -> Batches:
        """By dictionaries and pages where columns have them, and by Arrow."""
        metadata, schema = self.contents[file], self.schemas[file]
        paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
        places = {name: (paths.index(name), _kind(schema, name)) for name in columns}
        sizes = (sum(metadata.row_group(g).column(i).total_compressed_size for i, _ in places.values()) for g in groups)
        at_once = max(sizes, default=0) <= _WHOLE
        options: dict[str, Any] = {"buffer_size": 0 if at_once else _BUFFER, "pre_buffer": False}
        path = self.files[file]
        with pq.ParquetFile(path, metadata=metadata, **options) as opened, Path(path).open("rb") as raw:
            for group in groups:
                pages = _pages(raw, metadata, group, places, columns, coders) if at_once else {}
                others = [name for i, name in enumerate(columns) if i not in pages]
                for many, values in _slices(opened, group, [*dict.fromkeys(others)], rows):
                    own = [pages[i].codes(many) if i in pages else values[name] for i, name in enumerate(columns)]
                    coded = zip(coders, own, strict=False)
                    codes = [code(column) if isinstance(column, pa.Array) else column for code, column in coded]
                    yield [*codes, *own[len(coders) :]]


def _kind(schema: pa.Schema, column: str) -> pa.DataType:
    """The type of a column's values, which may be written as categories."""
    found = schema.field(column).type
    return found.value_type if pa.types.is_dictionary(found) else found


def _pages(
    raw: BinaryIO,
    metadata: pq.FileMetaData,
    group: int,
    places: dict[str, tuple[int, pa.DataType]],
    columns: Sequence[str],
    coders: Sequence[Positions],
) -> dict[int, Pages]:
    """What is coded by dictionary in a row group, by the place among the columns."""
    described, found = metadata.row_group(group), {}
    for i, (name, coder) in enumerate(zip(columns, coders, strict=False)):
        at, kind = places[name]
        chunk = Chunk.of(described.column(at), metadata.schema.column(at), kind)
        content = None if chunk is None else chunk.read(raw)
        pages = None if chunk is None or content is None else Pages.of(chunk, content, coder)
        if pages is not None:
            found[i] = pages
    return found


def _slices(
    opened: pq.ParquetFile, group: int, columns: list[str], rows: int
) -> Iterator[tuple[int, dict[str, pa.Array]]]:
    """How many rows come next, so many at most, and some of their columns by Arrow."""
    if columns:
        some = max(1, rows // _FEWER)
        for batch in opened.iter_batches(some, row_groups=[group], columns=columns, use_threads=False):
            yield batch.num_rows, {name: _plain(batch.column(name)) for name in columns}
        return
    left = opened.metadata.row_group(group).num_rows
    for start in range(0, left, rows):
        yield min(rows, left - start), {}


def _plain(values: pa.Array) -> pa.Array:
    """Values by themselves, texts in UTF-8, which Arrow does not see to."""
    found = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    if pa.types.is_string(found.type) or pa.types.is_large_string(found.type):
        found.validate(full=True)
    return found
