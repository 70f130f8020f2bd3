"""Engines count: they turn rows into exact tables of non-negative integers, and do nothing else.

This is the contract. What an engine returns is exact, hence secret: it never leaves `hushcube.private`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import DataError
from hushcube.model.measure import Measure
from hushcube.model.schema import Schema
from hushcube.private.boundary import guarded
from hushcube.private.engines.addresses import normal, shown
from hushcube.temporary import remove_leftovers

__all__ = ["BadRows", "Engine", "ExactCounts", "Progress", "open_source"]

Progress = Callable[[float], None]
"""Called now and then with the fraction of the rows that has been read."""


BadRows = Literal["refuse", "missing"]
"""What to do about rows that cannot be read or do not fit the schema."""


class ExactCounts(ABC):
    """The exact tables of one data set; counted already, or counted when asked for."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows were counted."""

    dropped: int = 0
    """How many rows were left out because a person had more than counts; for the owner of the data only."""
    bad: int = 0
    """How many rows could not be read and count as missing in every attribute; for the owner of the data only."""
    sums: Mapping[str, ExactCounts] = MappingProxyType({})
    """Of each measure asked for: tables of the sums of its integers over the same rows."""

    @abstractmethod
    def tables(self, marginals: NDArray[np.int32]) -> NDArray[np.int64]:
        """The tables of (m, k) marginals of one shape, as (m, *shape); k = 0 gives (m, 1), the total."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: exact, not shown>"


class Engine(Protocol):
    """Whatever can count."""

    def count(
        self,
        schema: Schema,
        wanted: Sequence[NDArray[np.int32]],
        *,
        measures: Sequence[Measure] = (),
        progress: Progress | None = None,
    ) -> ExactCounts:
        """Read the rows once; `wanted` holds all marginals to be asked for, an (m, k) array for each k."""
        ...


@guarded
def open_source(
    source: object, *, query: str | None = None, engine: str | None = None, bad_rows: BadRows = "refuse"
) -> Engine:
    """The engine for what a user calls the data: a path, a table of a database, a query or a data frame.

    DuckDB reads files and frames, unless `engine` is `spark`; the addresses of Postgres and Spark, and tables of Ibis,
    name their own engines. Nothing is read yet except what is needed to recognise the source; rows that a process left
    behind that was killed are removed. Rows that cannot be read or do not fit are refused, or count as missing.
    """
    remove_leftovers()
    if bad_rows not in get_args(BadRows):
        raise DataError("bad_rows", f"{shown(str(bad_rows))} is unknown", "choose refuse or missing")
    if bad_rows == "missing":
        from hushcube.private.engines.tolerant import Tolerant

        return Tolerant(_opened(source, query, engine, tolerant=True))
    return _opened(source, query, engine, tolerant=False)


def _opened(source: object, query: str | None, engine: str | None, *, tolerant: bool) -> Engine:
    if engine not in (None, "duckdb", "spark"):
        raise DataError("engine", f"{shown(str(engine))} is unknown", "choose duckdb or spark")
    if engine != "duckdb" and (remote := _remote(source, engine)) is not None:
        if query is not None:
            raise DataError("query", "is run by DuckDB, not by a remote engine", "name a table or view instead")
        return remote
    if engine == "spark":
        raise DataError("engine", "Spark reads Parquet files and tables of its own", "leave the engine out")
    from hushcube.private.engines.duckdb import DuckDBEngine
    from hushcube.private.engines.source import recognise

    return DuckDBEngine(recognise(source, query=query, tolerant=tolerant))


def _remote(source: object, engine: str | None) -> Engine | None:
    """The engine of a source that is not DuckDB's; drivers are imported only where they are needed."""
    from hushcube.private.engines.ibis.engine import recognise_ibis
    from hushcube.private.engines.postgres.engine import recognise_postgres
    from hushcube.private.engines.spark.engine import recognise_spark

    if isinstance(source, str) and (found := recognise_postgres(normal(source))) is not None:
        return found
    return recognise_spark(source, engine) or recognise_ibis(source)
