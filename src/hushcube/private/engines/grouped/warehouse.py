"""What a warehouse must do: group a table by a few columns, say how many rows each group has, and sum bounded integers.

The four kinds of columns, the sums and the choice of rows are all that an adapter implements; what they mean is the
same for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import pyarrow as pa

from hushcube.model.privacy import Unit
from hushcube.private.engines.contract import Measures

ColumnType = Literal["integer", "number", "text", "other"]
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


Columns = Sequence[Column]


@dataclass(frozen=True)
class People:
    """How many rows there are, how many of them have no id, and how many remain of people with too many.

    A row without an id is a person of its own.
    """

    rows: int
    missing: int
    kept: int


class Opened(ABC):
    """A table of a warehouse, opened: all its answers come from one state of the data."""

    names: tuple[str, ...]
    """The exact names of the columns, in the order of the table."""
    column_types: tuple[ColumnType, ...]
    """What each of them is."""
    steady: bool = False
    """Whether every answer is sure to see the same rows: else nobody can be trusted to have few rows next time."""
    keeps_choice: bool = False
    """Whether rows that were chosen are kept, so that a further answer does not choose them again."""
    smaller: Mapping[int, float] = MappingProxyType({})
    """What a reading with at most so many groups costs, as a share of one with as many as are ever asked for."""

    @abstractmethod
    def grouped(self, columns: Columns, sums: Measures = ()) -> pa.Table:
        """Columns k0, k1, ... as each `Column` says, and `n`, int64: one row for each group that is not empty.

        Then for each of the sums s0, m0, s1, m1, ..., int64: the sum, and how many rows had a missing value. The same
        group may come more than once. Without columns: one row for all rows.

        What is summed is the integer q of each row, bit for bit what `coding.quantised` makes of double(x):

            q = clip(rint((clip(x, low, high) - center) / resolution), q_low, q_high)   in 64-bit floats, halves to even

        A row whose value is null, NaN, or a text that DuckDB takes for no number adds the q of `measure.missing`, or 0
        where missing values are refused. Infinities are clipped like large numbers.
        """

    def several(self, groups: Sequence[Columns], sums: Measures = ()) -> Iterator[tuple[int, pa.Table]]:
        """Answers to several group-bys, each in one or more parts: which it is of, and some of its groups.

        Parts may come while others are still underway, so that all groups need never be held at once.
        """
        for place, columns in enumerate(groups):
            yield place, self.grouped(columns, sums)

    @abstractmethod
    def people(self, unit: Unit) -> People:
        """Count the rows of each person: all with ids that their column calls equal; ids stay where they are."""

    @abstractmethod
    def bounded(self, unit: Unit, columns: Sequence[str], key: bytes) -> Opened:
        """The same table with at most `unit.max_rows` rows of each person, chosen uniformly at random by the key.

        Later answers use `columns` only. The choice is a function of the key and of each person's own rows, so that it
        is the same in every answer, and nobody else's: equal rows of a person are numbered, and of the hashes of key,
        id, columns and number the smallest are kept. Ids are equal where their column says so, whatever their bytes
        (0.0 and -0.0, or what a collation takes for one text). Rows without an id all stay where the unit says that
        each is a person of its own; else they are one person.
        """


class Warehouse(ABC):
    """Something that groups; it can be opened more than once.

    `open` and what it yields raise DataError or MissingDependency only, `from None`, with no text of the server.
    """

    @abstractmethod
    def open(self) -> AbstractContextManager[Opened]:
        """Connect, find the table, and keep one state of it until the end."""
