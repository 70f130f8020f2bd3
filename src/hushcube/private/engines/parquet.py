"""Parquet files: DuckDB reads them, or Arrow does where columns are taken as they are stored.

Measured on ten columns of small integers, processor time: DuckDB needs 35 ns to hand over a row, because it makes Arrow
arrays of its own vectors; Arrow's reader needs 19 ns, less than DuckDB's bare scan. Row groups are read in pieces that
several threads can divide among them: they leave Python's lock while they read.

Whatever needs SQL goes through DuckDB: texts, dates, decimals, files whose types differ, and partitioned folders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from hushcube.errors import DataError
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
}
"""Types that Arrow reads as DuckDB hands them over."""
_PIECE: Final = 1 << 19  # rows that one thread reads in a row, at least: opening a file again takes as long as some
_BUFFER: Final = 1 << 20  # bytes of a column that are read ahead: a row group may be larger than memory


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

    def read(self, columns: Sequence[str], rows: int) -> Iterator[Batches] | None:
        """The columns as Arrow has them; None where DuckDB might have something else."""
        if any("=" in part for file in self.files for part in Path(file).parts[:-1]):
            return None  # a folder's name may stand for a column
        if not all(self._is_plain(column) for column in columns):
            return None
        pieces = (piece for i in range(len(self.files)) for piece in self._pieces(i))
        return (self._batches(i, groups, columns, rows) for i, groups in pieces)

    def _is_plain(self, column: str) -> bool:
        """Whether it is one column in every file, of one type that needs no conversion."""
        for schema, content in zip(self.schemas, self.contents, strict=True):
            if len(schema.get_all_field_indices(column)) != 1:
                return False
            if _STORED.get(schema.field(column).type) != self.types[column]:
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

    def _batches(self, file: int, groups: list[int], columns: Sequence[str], rows: int) -> Batches:
        metadata = self.contents[file]
        with pq.ParquetFile(self.files[file], metadata=metadata, buffer_size=_BUFFER, pre_buffer=False) as opened:
            for batch in opened.iter_batches(
                rows, row_groups=groups, columns=[*dict.fromkeys(columns)], use_threads=False
            ):
                yield [batch.column(column) for column in columns]
