"""Any warehouse that Ibis speaks to: a table expression is grouped where it lives, and groups come back as Arrow.

Ibis writes the SQL, quotes the names and binds or quotes the values. Texts are compared as the warehouse compares
them: where its collation takes `a` and `A` for one, they are one group, so that a byte by byte collation is needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

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


class IbisRows(Opened):
    """A table expression."""

    def __init__(self, table: Any) -> None:
        with _spoken("the table cannot be read"):
            schema = table.schema()
            self.names = tuple(schema.names)
            self.kinds = tuple(map(_kind, schema.types))
        self._table = table

    def grouped(self, columns: Sequence[Column]) -> pa.Table:
        """Group by expressions of the columns."""
        with _spoken("the warehouse cannot group the table"):
            keys = {
                f"k{i}": _key(column, self._table[column.name], self.kinds[self.names.index(column.name)])
                for i, column in enumerate(columns)
            }
            if not keys:
                counted = self._table.aggregate(n=self._table.count())
            else:
                chosen = self._table.select(**keys)
                counted = chosen.group_by(list(keys)).aggregate(n=chosen.count())
            table: pa.Table = counted.to_pyarrow()
            return table.set_column(len(keys), "n", table.column("n").cast(pa.int64()))


def _kind(dtype: Any) -> Kind:
    """64-bit unsigned integers do not fit the contract's integers; as numbers they do."""
    if dtype.is_integer():
        return "number" if dtype.is_unsigned_integer() and dtype.nbytes == 8 else "integer"
    if dtype.is_floating() or dtype.is_decimal():
        return "number"
    return "text" if dtype.is_string() else "other"


def _key(column: Column, value: Any, kind: Kind) -> Any:
    """What a column is grouped by, as its class says."""
    import ibis

    if isinstance(column, Known):
        known = value.isnull() | value.isin(column.labels)
        return known.ifelse(value, column.outside)
    if not isinstance(column, Binned | Whole):
        return value
    whole = isinstance(column, Whole) and kind == "integer"
    x = value.cast("int64" if whole else "float64")
    missing = value.isnull()
    if value.type().is_floating():
        missing |= value.isnan()
    if column.missing is not None:
        missing |= x == column.missing
    if isinstance(column, Binned):
        inside = (x >= column.edges[0]) & (x <= column.edges[-1])
        place = _bin(x, column.edges, 0, len(column.edges) - 1)
    else:
        inside = (x >= column.low) & (x <= column.high)
        if not whole:
            inside &= x == x.floor()
        place = inside.ifelse(x, column.low).cast("int64") - column.low  # what is far outside fits no integer
    return ibis.cases((missing, MISSING), (inside, place), else_=OUTSIDE).cast("int64")


def _bin(x: Any, edges: Sequence[float], first: int, last: int) -> Any:
    """The bin from `first` up to before `last` that x is in, by bisection: SQL nests no deeper than log2 of them."""
    import ibis

    if last - first == 1:
        return ibis.literal(first, "int64")
    middle = (first + last) // 2
    return (x < edges[middle]).ifelse(_bin(x, edges, first, middle), _bin(x, edges, middle, last))


@contextmanager
def _spoken(problem: str) -> Iterator[None]:
    """Drivers raise what they like, and quote data: none of it is passed on."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about calls between Ibis and a driver, which are not ours
            yield
    except Exception:
        fix = "check the connection and your rights, and that each column has one type that can be grouped by"
        raise DataError("data", problem, fix) from None


@dataclass(frozen=True, repr=False)
class IbisTable(Warehouse):
    """A table expression of the user's own connection, which stays theirs."""

    table: Any

    @contextmanager
    def open(self) -> Iterator[Opened]:
        """Nothing to open or close."""
        yield IbisRows(self.table)


def recognise_ibis(source: object) -> GroupedEngine | None:
    """The engine for an Ibis table expression; None for anything else."""
    if type(source).__module__.partition(".")[0] != "ibis":
        return None
    if not any(base.__name__ == "Table" for base in type(source).__mro__):
        raise DataError("data", "this Ibis expression is no table", "give a table, or a selection of columns")
    return GroupedEngine(IbisTable(source))
