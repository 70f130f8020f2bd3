"""Tables in memory: Arrow, pandas and polars, recognised without importing what the user did not import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from hushcube.private.engines.source import Opened, Source, unreadable


@dataclass(frozen=True, repr=False)
class Frame(Source):
    """A frame; only the columns needed are turned into Arrow, which most frames share without a copy."""

    frame: Any
    library: str
    problem = "the data frame cannot be turned into an Arrow table"
    fix = "give each column one type: numbers, texts, truth values or dates"

    def show(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str] | None) -> Opened:
        """Columns named by position, since their own names may be one name to DuckDB."""
        with unreadable(self.problem, self.fix, kinds=(Exception,)):
            names, table = self._chosen(columns)
        return Opened(connection.from_arrow(table), names, table.num_rows)

    def _chosen(self, columns: Sequence[str] | None) -> tuple[tuple[str, ...], pa.Table]:
        names = self._names()
        needed = None if columns is None else {column.casefold() for column in columns}
        kept = [i for i, name in enumerate(names) if needed is None or name.casefold() in needed]
        if not kept:  # DuckDB has no tables without columns, but rows may still be counted
            kept = list(range(min(1, len(names))))
        table = self._arrow(kept).rename_columns([f"c{i}" for i in range(len(kept))])
        return tuple(names[i] for i in kept), table

    def _names(self) -> list[str]:
        if self.library == "polars":
            return list(self.frame.collect_schema().names())
        return [str(name) for name in (self.frame.columns if self.library == "pandas" else self.frame.schema.names)]

    def _arrow(self, kept: Sequence[int]) -> pa.Table:
        if self.library == "pandas":
            chosen = self.frame.iloc[:, list(kept)]
            arrays = [pa.array(chosen.iloc[:, i], from_pandas=True) for i in range(len(kept))]
            return pa.table(arrays, names=[str(i) for i in range(len(kept))])
        if self.library == "polars":
            chosen = self.frame.select([self._names()[i] for i in kept])
            return (chosen.collect() if hasattr(chosen, "collect") else chosen).to_arrow()
        return self.frame.select(list(kept))


def recognise_frame(source: object) -> Frame | None:
    """The frame that a user's object is; a stream is read here, once, since it cannot be read again."""
    module = type(source).__module__.partition(".")[0]
    name = type(source).__name__
    if module == "pandas" and name == "DataFrame":
        return Frame(source, "pandas")
    if module == "polars" and name in ("DataFrame", "LazyFrame"):
        return Frame(source, "polars")
    if isinstance(source, pa.Table):
        return Frame(source, "arrow")
    if isinstance(source, pa.RecordBatch):
        return Frame(pa.Table.from_batches([source]), "arrow")
    if hasattr(source, "__arrow_c_stream__"):
        return Frame(pa.RecordBatchReader.from_stream(source).read_all(), "arrow")
    return None
