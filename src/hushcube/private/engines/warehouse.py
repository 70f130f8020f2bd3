"""What a warehouse must do: group a table by a few columns, and say how many rows each group has.

The four kinds of columns are all that an adapter implements; what they mean is the same for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa

Kind = Literal["integer", "number", "text", "other"]
"""What a warehouse says of a column: 64-bit or shorter integers; floats and decimals; texts, compared byte by
byte, and whatever the adapter hands over as text; anything else (truth values, dates, ...)."""

MISSING: Final = -1
OUTSIDE: Final = -2


@dataclass(frozen=True)
class Column:
    """Group by the value itself: an Arrow column of the natural type, with nulls; NaN may stay NaN.

    Any Arrow type that DuckDB reads will do: integers, float32 and float64 (as they are: 0.1 as a 32-bit float
    is found by the label 0.1), decimals, bool, date32, timestamps, string.
    """

    name: str


@dataclass(frozen=True)
class Binned(Column):
    """Group by the bin of an "integer" or "number" column x: an int64 column without nulls.

        MISSING where x is null or NaN, or double(x) = missing
        i       where edges[i] <= double(x) < edges[i + 1]; the last bin takes x = edges[-1] as well
        OUTSIDE elsewhere, and for infinities

    double(x) is the nearest 64-bit float, as DuckDB casts.
    """

    edges: tuple[float, ...]
    missing: float | None = None


@dataclass(frozen=True)
class Whole(Column):
    """Group by integers of an "integer" or "number" column x: an int64 column without nulls.

        MISSING where x is null or NaN, or x = missing
        x - low where x is an integer with low <= x <= high
        OUTSIDE elsewhere, and for infinities

    "integer" columns are compared as integers (`missing` is then an int), "number" columns as double(x); there
    both ends lie within 2^53.
    """

    low: int
    high: int
    missing: float | None = None


@dataclass(frozen=True)
class Known(Column):
    """Group by the texts of a "text" column that are among `labels`, byte by byte: a string column.

    null where x is null, x where x is one of the labels, and the text `outside` (which is no label) elsewhere.
    """

    labels: tuple[str, ...]
    outside: str


class Opened(ABC):
    """A table of a warehouse, opened: all its answers come from one state of the data."""

    names: tuple[str, ...]
    """The exact names of the columns, in the order of the table."""
    kinds: tuple[Kind, ...]
    """What each of them is."""

    @abstractmethod
    def grouped(self, columns: Sequence[Column]) -> pa.Table:
        """Columns k0, k1, ... as each `Column` says, and `n`, int64: one row for each group that is not empty.

        The same group may come more than once. Without columns: one row with the number of rows.
        """


class Warehouse(ABC):
    """Something that groups; it can be opened more than once.

    `open` and what it yields raise DataError or MissingDependency only, `from None`, with no text of the server.
    """

    @abstractmethod
    def open(self) -> AbstractContextManager[Opened]:
        """Connect, find the table, and keep one state of it until the end."""
