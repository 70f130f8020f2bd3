"""Tables in memory: Arrow, pandas and polars, recognised without importing what the user did not import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from hushcube.private.engines.fit import needed
from hushcube.private.engines.source import Opened, Source, unreadable


@dataclass(frozen=True, repr=False)
class Frame(Source):
    """A frame; only the columns needed are turned into Arrow, which most frames share without a copy."""

    frame: Any
    library: str
    tolerant: bool = False
    """Whether columns of Python's objects, and of categories that may be such, are read value by value, as texts."""
    problem = "the data frame cannot be turned into an Arrow table"
    fix = 'give each column one type: numbers, texts, truth values or dates; or release with `bad_rows="missing"`'

    def show(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str] | None) -> Opened:
        """Columns named by position, since their own names may be one name to DuckDB."""
        with unreadable(self.problem, self.fix, kinds=(Exception,)):
            names, table = self._chosen(columns)
        return Opened(connection.from_arrow(table), names, table.num_rows)

    def _chosen(self, columns: Sequence[str] | None) -> tuple[tuple[str, ...], pa.Table]:
        names = self._names()
        kept = needed(names, columns)
        table = self._arrow(kept).rename_columns([f"c{i}" for i in range(len(kept))])
        return tuple(names[i] for i in kept), table

    def _names(self) -> list[str]:
        if self.library == "polars":
            return list(self.frame.collect_schema().names())
        return [str(name) for name in (self.frame.columns if self.library == "pandas" else self.frame.schema.names)]

    def _arrow(self, kept: Sequence[int]) -> pa.Table:
        if self.library == "pandas":
            chosen = self.frame.iloc[:, list(kept)]
            arrays = [self._array(chosen.iloc[:, i]) for i in range(len(kept))]
            return pa.table(arrays, names=[str(i) for i in range(len(kept))])
        if self.library == "polars":
            chosen = self.frame.select([self._names()[i] for i in kept])
            read = chosen.collect() if hasattr(chosen, "collect") else chosen
            arrays = [self._array(column) for column in read.get_columns()]
            return pa.table(arrays, names=[str(i) for i in range(len(kept))])
        return self.frame.select(list(kept))

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
    """The frame that a user's object is; a stream is read here, once, since it cannot be read again."""
    module = type(source).__module__.partition(".")[0]
    name = type(source).__name__
    if module == "pandas" and name == "DataFrame":
        return Frame(source, "pandas", tolerant)
    if module == "polars" and name in ("DataFrame", "LazyFrame"):
        return Frame(source, "polars", tolerant)
    if isinstance(source, pa.Table):
        return Frame(source, "arrow")
    if isinstance(source, pa.RecordBatch):
        return Frame(pa.Table.from_batches([source]), "arrow")
    if hasattr(source, "__arrow_c_stream__"):
        return Frame(pa.RecordBatchReader.from_stream(source).read_all(), "arrow")
    return None
