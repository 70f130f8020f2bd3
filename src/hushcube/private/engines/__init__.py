"""Engines count: they turn rows into exact tables of integers. This is the way to the one that a source needs.

A refusal depends on the data, and one row is enough for it. Where every attribute used has a category for missing
values, nothing has to be refused: a line that cannot be read is missing in every attribute, and a value outside the
domain goes to `other:`, or to `missing:` where no other category is declared. Whether that can be done is decided by
the schema alone, before anything is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Final, cast, get_args

from hushcube.durable import remove_leftovers
from hushcube.errors import DataError, SchemaError
from hushcube.model.attribute import ERROR, Attribute
from hushcube.model.coarser import AtLevel, at_level, base_of
from hushcube.model.schema import Schema
from hushcube.private.boundary import guarded, shown
from hushcube.private.engines.contract import BadRows, Engine, ExactCounts, Measures, ReadShare, Wanted, attributes_of

__all__ = ["REMOTE", "BadRows", "Engine", "ExactCounts", "ReadShare", "open_source"]

Recognise = Callable[[object, str | None], Engine | None]
"""The engine for a source, if it is one of its own; the second is the engine that was asked for, if any."""
REMOTE: Final[dict[str, str]] = {
    "postgres": "hushcube.private.engines.postgres:recognise_postgres",
    "spark": "hushcube.private.engines.spark:recognise_spark",
    "ibis": "hushcube.private.engines.ibis:recognise_ibis",
}
"""The engines other than DuckDB: where to find what recognises their sources. A new engine is added here; drivers are
imported only where they are needed."""


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
    opened = _opened(source, query, engine, tolerant=bad_rows == "missing")
    return Tolerant(opened) if bad_rows == "missing" else opened


def _opened(source: object, query: str | None, engine: str | None, *, tolerant: bool) -> Engine:
    names = ("duckdb", *REMOTE)
    if engine is not None and engine not in names:
        fix = f"choose {', '.join(names[:-1])} or {names[-1]}"
        raise DataError("engine", f"{shown(str(engine))} is unknown", fix)
    if engine != "duckdb" and (remote := _remote(source, engine)) is not None:
        if query is not None:
            raise DataError("query", "is run by DuckDB, not by a remote engine", "name a table or view instead")
        return remote
    if engine not in (None, "duckdb"):
        raise DataError("engine", f"{engine} does not read this source", "leave the engine out")
    from hushcube.private.engines.duckdb import DuckDBEngine, recognise

    return DuckDBEngine(recognise(source, query=query, tolerant=tolerant))


def _remote(source: object, engine: str | None) -> Engine | None:
    """The engine of a source that is not DuckDB's, or the one that is named, if it reads the source."""
    for name in REMOTE if engine is None else (engine,):
        module, _, function = REMOTE[name].partition(":")
        recognise = cast("Recognise", getattr(import_module(module), function))
        if (found := recognise(source, engine)) is not None:
            return found
    return None


@dataclass(frozen=True)
class Tolerant:
    """An engine that refuses no row."""

    engine: Engine

    def count(
        self, schema: Schema, wanted: Wanted, *, measures: Measures = (), progress: ReadShare | None = None
    ) -> ExactCounts:
        """Count under the same domains, with a place for everything."""
        used = attributes_of(wanted)
        attributes = tuple(_open(each) if i in used else each for i, each in enumerate(schema.attributes))
        for measure in measures:
            if measure.missing is None:
                raise _undeclared(f"measure {measure.name!r}", "missing: 0")
        if schema.unit is not None and schema.unit.missing == "error":
            raise _undeclared("unit", "unit_missing: own")
        return self.engine.count(replace(schema, attributes=attributes), wanted, measures=measures, progress=progress)


def _open(attribute: Attribute) -> Attribute:
    """The same attribute, whose other values are missing if they are nothing else."""
    base = base_of(attribute)
    if base.missing == ERROR:
        raise _undeclared(f"attribute {base.name!r}", "missing: unknown")
    if base.other != ERROR:
        return attribute
    opened = replace(base, other=base.missing)
    return at_level(opened, base.grouped[attribute.depth - 1].name) if isinstance(attribute, AtLevel) else opened


def _undeclared(where: str, example: str) -> SchemaError:
    problem = "declares no missing value, but bad rows are to count as missing"
    return SchemaError(where, problem, f"declare for example `{example}`, or let bad rows be refused")
