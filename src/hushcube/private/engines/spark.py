"""Spark groups the rows, through the DataFrame API alone: no SQL is written, and no name or value is quoted.

Before anything else the columns are renamed by their positions (c0, c1, ...), so that dots, quotes, backticks and
names that differ only by case mean nothing to Spark. Values go in as literals of the API, or, where there are
many, as a small table that is joined. Groups come back through Arrow.

Spark has no transactions over files: all group-bys read the files that were listed when the source was opened,
and a `GroupedEngine` refuses group-bys that see different numbers of rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hushcube.errors import DataError
from hushcube.private.engines.grouped import (
    MISSING,
    OUTSIDE,
    Binned,
    Column,
    GroupedEngine,
    Kind,
    Known,
    Opened,
    Warehouse,
    Whole,
)
from hushcube.private.engines.source import Parquet, recognise, unreadable
from hushcube.private.engines.spark_session import LOCAL, session, spoken

_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("ByteType", "ShortType", "IntegerType", "LongType"), "integer"),
    **dict.fromkeys(("FloatType", "DoubleType", "DecimalType"), "number"),
    **dict.fromkeys(("StringType", "CharType", "VarcharType"), "text"),
}
_JOINED_LABELS: Final = 100
"""More labels than this are joined as a table: as literals, each costs a millisecond."""
_COMPARED_EDGES: Final = 64
"""More edges than this are searched in an array: as compiled comparisons, each costs five milliseconds."""
_BYTEWISE: Final = "UTF8_BINARY"
_PLAIN_PARAMETERS: Final = frozenset(("use_ssl", "user_agent", "grpc_max_message_size"))
_FIX: Final = "write spark://HOST:PORT#TABLE, sc://HOST:PORT#TABLE, or a Parquet path with the engine spark"


class SparkRows(Opened):
    """A data frame, its columns renamed by position."""

    def __init__(self, frame: Any) -> None:
        with spoken("the data cannot be read by Spark", "check the table, your rights, and the types of its columns"):
            fields = frame.schema.fields
            self.names = tuple(field.name for field in fields)
            self.kinds = tuple(_KINDS.get(type(field.dataType).__name__, "other") for field in fields)
            self._collations = [getattr(field.dataType, "collation", _BYTEWISE) for field in fields]
            self._frame = frame.toDF(*(f"c{i}" for i in range(len(fields))))

    def grouped(self, columns: Sequence[Column]) -> pa.Table:
        """Group by expressions of the columns."""
        with spoken("Spark cannot group the data", "check that each column has one type that can be grouped by"):
            table: pa.Table = self._counted(columns).toArrow()
        return table

    def _counted(self, columns: Sequence[Column]) -> Any:
        F = _functions(self._frame)
        frame, keys = self._frame, []
        for i, column in enumerate(columns):
            place = self.names.index(column.name)
            value = F.col(f"c{place}")
            if self._collations[place] != _BYTEWISE:
                value = F.collate(value, _BYTEWISE)
            if isinstance(column, Known) and len(column.labels) > _JOINED_LABELS:
                labels = frame.sparkSession.createDataFrame(pa.table({f"l{i}": pa.array(column.labels, pa.string())}))
                frame = frame.join(F.broadcast(labels), value == F.col(f"l{i}"), "left")
                key = F.when(value.isNull() | F.col(f"l{i}").isNotNull(), value).otherwise(F.lit(column.outside))
            else:
                key = _key(F, column, value, self.kinds[place])
            keys.append(key.alias(f"k{i}"))
        counted = F.count(F.lit(1)).alias("n")
        if not keys:
            return frame.agg(counted)
        return frame.select(*keys).groupBy(*(f"k{i}" for i in range(len(keys)))).agg(counted)


def _key(F: Any, column: Column, value: Any, kind: Kind) -> Any:
    """What a column is grouped by, as its class says."""
    if isinstance(column, Known):
        return F.when(value.isNull() | value.isin(*column.labels), value).otherwise(F.lit(column.outside))
    if not isinstance(column, Binned | Whole):
        return value
    whole = isinstance(column, Whole) and kind == "integer"
    x = value.cast("long" if whole else "double")
    # Spark takes NaN for equal to itself and larger than all numbers; it goes first.
    missing = x.isNull() if whole else x.isNull() | F.isnan(x)
    if column.missing is not None:
        missing = missing | (x == F.lit(column.missing))
    if isinstance(column, Binned):
        low, high = column.edges[0], column.edges[-1]
        few = len(column.edges) <= _COMPARED_EDGES
        place = _bin(F, x, column.edges, 0, len(column.edges) - 1) if few else _search(F, x, column.edges)
        inside = (x >= F.lit(low)) & (x <= F.lit(high))
    else:
        inside = (x >= F.lit(column.low)) & (x <= F.lit(column.high))
        place = x.try_cast("long") - F.lit(column.low)
        if not whole:
            inside = inside & (F.rint(x) == x)
    return F.when(missing, F.lit(MISSING)).when(inside, place).otherwise(F.lit(OUTSIDE)).cast("long")


def _bin(F: Any, x: Any, edges: Sequence[float], first: int, last: int) -> Any:
    """The bin from `first` up to before `last` that x is in, by bisection: a row takes log2 comparisons."""
    if last - first == 1:
        return F.lit(first)
    middle = (first + last) // 2
    lower, upper = _bin(F, x, edges, first, middle), _bin(F, x, edges, middle, last)
    return F.when(x < F.lit(edges[middle]), lower).otherwise(upper)


def _search(F: Any, x: Any, edges: Sequence[float]) -> Any:
    """The same by steps of ..., 4, 2, 1 through an array of all edges but the last; beyond its end nothing is less."""
    known = F.lit(np.array(edges[:-1]))
    steps = F.lit(2 ** np.arange(len(edges).bit_length(), dtype=np.int32)[::-1])
    return F.aggregate(steps, F.lit(0), lambda at, n: F.when(F.get(known, at + n) <= x, at + n).otherwise(at))


def _functions(frame: Any) -> Any:
    """The functions of the frame's own kind of session: one program may have both kinds."""
    if _is_connect(frame):
        import pyspark.sql.connect.functions as remote

        return remote
    import pyspark.sql.functions as classic

    return classic


def _is_connect(frame: object) -> bool:
    return type(frame).__module__.startswith("pyspark.sql.connect")


@dataclass(frozen=True)
class SparkTable(Warehouse):
    """A table of a cluster's catalog."""

    address: str
    table: str

    @contextmanager
    def open(self) -> Iterator[Opened]:
        """Find the table; each part of its name is one name, whatever is in it."""
        fix = "write ADDRESS#TABLE, ADDRESS#SCHEMA.TABLE or ADDRESS#CATALOG.SCHEMA.TABLE, and check your rights"
        with session(self.address) as spark:
            with spoken(f"Spark has no table {self.table!r} that can be read", fix):
                frame = spark.table(".".join(f"`{part.replace('`', '``')}`" for part in self.table.split(".")))
                _ = frame.schema  # Spark Connect looks the table up only now
            yield SparkRows(frame)


@dataclass(frozen=True)
class SparkFiles(Warehouse):
    """Parquet files, read by Spark on this machine; or a pattern in a store that Spark knows (hdfs://, s3a://)."""

    files: tuple[str, ...]

    @contextmanager
    def open(self) -> Iterator[Opened]:
        """Read the files' schemas."""
        with session(LOCAL) as spark:
            with spoken("the Parquet data cannot be read by Spark", "check the files, or use the default engine"):
                spark.conf.set("spark.sql.caseSensitive", "true")
                spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
                if "://" in self.files[0]:
                    frame = spark.read.option("mergeSchema", "true").parquet(*self.files)
                else:
                    frame = self._local(spark)
            yield SparkRows(frame) if "://" in self.files[0] else LocalRows(frame, self.files)

    def _local(self, spark: Any) -> Any:
        paths = [Path(file).absolute() for file in self.files]
        if any(path.name.startswith(("_", ".")) for path in paths):
            fix = "rename the files, or use the default engine"
            raise DataError("data", "Spark passes over files whose names begin with _ or .", fix)
        reader = spark.read
        bases = {_base(path) for path in paths}
        if len(bases) == 1 and (base := bases.pop()) is not None:
            reader = reader.option("basePath", f"file://{base}")
        return reader.parquet(*map(_exactly, paths))


class LocalRows(SparkRows):
    """Local Parquet files, whose own schemas say what Spark does not: missing columns and nanoseconds."""

    def __init__(self, frame: Any, files: Sequence[str]) -> None:
        import pyarrow.parquet as pq

        super().__init__(frame)
        with unreadable(Parquet.problem, Parquet.fix):
            self._schemas = [pq.read_schema(file) for file in files]

    def grouped(self, columns: Sequence[Column]) -> pa.Table:
        """Refuse columns that Spark would take for something else, as DuckDB's reader does."""
        for name in (column.name for column in columns):
            types = [schema.field(name).type for schema in self._schemas if name in schema.names]
            if 0 < len(types) < len(self._schemas):
                raise DataError("data", f"not every file has the column {name!r}", "use files with the same columns")
            if any(pa.types.is_timestamp(each) and each.unit == "ns" for each in types):
                fix = "write it in microseconds, or use the default engine"
                raise DataError("data", f"Spark does not read times in nanoseconds, as in the column {name!r}", fix)
        return super().grouped(columns)


@dataclass(frozen=True, repr=False)
class SparkFrame(Warehouse):
    """A data frame of the user's own session, which stays theirs."""

    frame: Any

    @contextmanager
    def open(self) -> Iterator[Opened]:
        """Nothing to open or close."""
        yield SparkRows(self.frame)


def recognise_spark(source: object, engine: str | None = None) -> GroupedEngine | None:
    """The engine for an address of Spark, a Spark data frame, or Parquet files where Spark is asked for."""
    if type(source).__name__ == "DataFrame" and type(source).__module__.startswith("pyspark.sql"):
        return GroupedEngine(SparkFrame(source))
    text = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if isinstance(text, str) and text.startswith(("spark://", "sc://")):
        return GroupedEngine(_recognise_table(text))
    if engine != "spark":
        return None
    if isinstance(text, str) and re.match(r"parquet:[a-z0-9]+://", text):
        return GroupedEngine(SparkFiles((text.removeprefix("parquet:"),)))
    found = recognise(source) if isinstance(text, str) else None
    if not isinstance(found, Parquet):
        raise DataError("data", "Spark reads Parquet files and tables of a cluster", _FIX)
    return GroupedEngine(SparkFiles(found.files))


def _recognise_table(text: str) -> SparkTable:
    address, mark, table = text.partition("#")
    hosts, _, parameters = address.partition("://")[2].partition("/")
    named = {pair.partition("=")[0] for pair in parameters.split(";") if pair}
    if "@" in hosts or named - _PLAIN_PARAMETERS:
        fix = "set SPARK_CONNECT_AUTHENTICATE_TOKEN, or put them into Spark's own settings"
        raise DataError("data", "an address holds no credentials or other parameters than use_ssl", fix)
    if not hosts or not mark or not all(table.split(".")):
        raise DataError("data", "names a Spark server but no table", _FIX)
    return SparkTable(address, table)


def _exactly(path: Path) -> str:
    """A path that matches only itself: Hadoop takes brackets, braces and stars for a pattern."""
    return "file://" + re.sub(r"([\[\]{}*?\\,])", r"\\\1", str(path))


def _base(path: Path) -> Path | None:
    """The folder above the first `column=value` of a path; None without one."""
    parents = [parent for parent in path.parents if "=" in parent.name]
    return parents[-1].parent if parents else None
