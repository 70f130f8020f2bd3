"""What Spark reads, and how it is written.

    spark://HOST:PORT#TABLE            a table of the catalog that spark-defaults.conf or hive-site.xml names
    spark://HOST:PORT#parquet:PATH     Parquet files that the whole cluster and this machine see, or hdfs://, s3a://
    sc://HOST:PORT#TABLE, #parquet:... the same of a Spark Connect server, with its catalog and its files
    parquet files, engine `spark`      read by Spark in this process's own Java
    a data frame of pyspark            of the user's own session

A cluster by itself has no tables: without a catalog of its own, each session starts with an empty one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushcube.errors import DataError
from hushcube.private.boundary import normal, shown
from hushcube.private.engines.duckdb import recognise
from hushcube.private.engines.grouped import GroupedEngine
from hushcube.private.engines.grouped.warehouse import Opened, Warehouse
from hushcube.private.engines.parquet import Parquet
from hushcube.private.engines.source import changed, stamps
from hushcube.private.engines.spark.session import LOCAL, session, spoken
from hushcube.private.engines.spark.table import LocalRows, SparkRows

_PLAIN_PARAMETERS: Final = frozenset(("use_ssl", "user_agent", "grpc_max_message_size"))
_PATTERN: Final = r"parquet:[a-z0-9]+://"
_FIX: Final = (
    "write spark://HOST:PORT#TABLE, sc://HOST:PORT#TABLE, either with #parquet:PATH instead, "
    "or a Parquet path with the engine spark"
)


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
            with spoken(f"Spark has no table {shown(self.table)} that can be read", fix):
                frame = spark.table(".".join(f"`{part.replace('`', '``')}`" for part in self.table.split(".")))
                _ = frame.schema  # Spark Connect looks the table up only now
            yield from _opened(SparkRows(frame))


@dataclass(frozen=True, repr=False)
class SparkFiles(Warehouse):
    """Parquet files, read by Spark on this machine or by a cluster; or a pattern that only Spark can look up."""

    files: tuple[str, ...]
    address: str = LOCAL
    listed: bool = True
    """Whether the files are seen from here; if not, they are a pattern (hdfs://, s3a://, or a path of a server)."""

    @contextmanager
    def open(self) -> Iterator[Opened]:
        """Read the files' schemas."""
        before = stamps(self.files) if self.listed else ()
        with session(self.address) as spark:
            with spoken("the Parquet data cannot be read by Spark", "check the files, or use the default engine"):
                spark.conf.set("spark.sql.caseSensitive", "true")
                if self.listed:
                    spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
                    frame = self._local(spark)
                else:
                    frame = spark.read.option("mergeSchema", "true").parquet(*self.files)
            yield from _opened(LocalRows(frame, self.files) if self.listed else SparkRows(frame))
        if self.listed and before != stamps(self.files):
            raise changed()

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


@dataclass(frozen=True, repr=False)
class SparkFrame(Warehouse):
    """A data frame of the user's own session, which stays theirs."""

    frame: Any

    @contextmanager
    def open(self) -> Iterator[Opened]:
        """The session stays as it was found."""
        yield from _opened(SparkRows(self.frame))


def _opened(rows: SparkRows) -> Iterator[SparkRows]:
    try:
        yield rows
    finally:
        with suppress(DataError):  # where Spark is gone, so is what it kept
            rows.forget()


def recognise_spark(source: object, engine: str | None = None) -> GroupedEngine | None:
    """The engine for an address of Spark, a Spark data frame, or Parquet files where Spark is asked for."""
    if type(source).__name__ == "DataFrame" and type(source).__module__.startswith("pyspark.sql"):
        return GroupedEngine(SparkFrame(source))
    text = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    text = normal(text) if isinstance(text, str) else None
    if text is not None and text.startswith(("spark://", "sc://")):
        return GroupedEngine(_recognise_address(text))
    if engine != "spark":
        return None
    if text is not None and re.match(_PATTERN, text):
        return GroupedEngine(SparkFiles((text.removeprefix("parquet:"),), listed=False))
    found = recognise(source) if text is not None else None
    if not isinstance(found, Parquet):
        raise DataError("data", "Spark reads Parquet files and tables of a cluster", _FIX)
    return GroupedEngine(SparkFiles(found.files))


def _recognise_address(text: str) -> Warehouse:
    address, mark, table = text.partition("#")
    hosts, _, parameters = address.partition("://")[2].partition("/")
    named = {pair.partition("=")[0] for pair in parameters.split(";") if pair}
    if re.search("[@?&=]", hosts) or named - _PLAIN_PARAMETERS:
        fix = "set SPARK_CONNECT_AUTHENTICATE_TOKEN, or put them into Spark's own settings"
        raise DataError("data", "an address holds no credentials or other parameters than use_ssl", fix)
    if not hosts or not mark or not table.removeprefix("parquet:"):
        raise DataError("data", "names a Spark server but no table", _FIX)
    if table.startswith("parquet:"):
        if address.startswith("sc://") or re.match(_PATTERN, table):
            return SparkFiles((table.removeprefix("parquet:"),), address, listed=False)
        found = recognise(table)
        return SparkFiles(found.files if isinstance(found, Parquet) else (), address)
    if not all(table.split(".")):
        raise DataError("data", "names a Spark server but no table", _FIX)
    return SparkTable(address, table)


def _exactly(path: Path) -> str:
    """A path that matches only itself: Hadoop takes brackets, braces and stars for a pattern."""
    return "file://" + re.sub(r"([\[\]{}*?\\,])", r"\\\1", str(path))


def _base(path: Path) -> Path | None:
    """The folder above the first `column=value` of a path; None without one."""
    parents = [parent for parent in path.parents if "=" in parent.name]
    return parents[-1].parent if parents else None
