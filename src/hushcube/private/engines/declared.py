"""Engines that hold the data to what an account of a ledger declares of it: its digest, and its part of a partition.

A digest is taken before anything is charged, and files that change between then and the end of the count are refused.
A part is checked on what is counted: where the schema has the attribute by which data is divided, every row must have
the part's value. Both refusals depend on the data, like every other one; they are for its owner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushcube.errors import DataError
from hushcube.model.schema import Schema
from hushcube.private.boundary import guarded
from hushcube.private.engines import Tolerant
from hushcube.private.engines.contract import Engine, ExactCounts, Measures, ReadShare, Wanted
from hushcube.private.engines.duckdb import DuckDBEngine
from hushcube.private.engines.source import Source, changed, stamps


@guarded
def digested(engine: Engine) -> tuple[str, Engine]:
    """The digest of what an engine reads, and an engine that counts nothing else."""
    inner = engine.engine if isinstance(engine, Tolerant) else engine
    source = inner.source if isinstance(inner, DuckDBEngine) else None
    seen = () if source is None else stamps(source.contents())
    digest = None if source is None else source.digest()
    if source is None or digest is None:
        fix = "release files or a frame in memory, or use an account that is bound to a source alone"
        raise DataError("data", "the account is bound to a digest, and this kind of data has none", fix)
    return digest, _Unchanged(engine, source, seen)


@dataclass(frozen=True, repr=False)
class _Unchanged:
    """An engine that counts files only as they were."""

    engine: Engine
    source: Source
    seen: tuple[tuple[int, ...], ...]

    def count(
        self, schema: Schema, wanted: Wanted, *, measures: Measures = (), progress: ReadShare | None = None
    ) -> ExactCounts:
        counts = self.engine.count(schema, wanted, measures=measures, progress=progress)
        if stamps(self.source.contents()) != self.seen:
            raise changed()
        return counts


@dataclass(frozen=True, repr=False)
class OnePart:
    """An engine whose rows must all have one code of an attribute."""

    engine: Engine
    attribute: str
    code: str

    def count(
        self, schema: Schema, wanted: Wanted, *, measures: Measures = (), progress: ReadShare | None = None
    ) -> ExactCounts:
        """Count one table more, which has one cell that may be above zero."""
        place = schema.position(self.attribute)
        own = np.array([[place]], np.int32)
        counts = self.engine.count(schema, [*wanted, own], measures=measures, progress=progress)
        table = counts.tables(own)[0]
        if table.sum() != table[schema.attributes[place].coded.index(self.code)]:
            problem = f"holds rows whose {self.attribute!r} is not that of the part"
            raise DataError("data", problem, "give the rows of this part alone, for example by a query or a view")
        return counts
