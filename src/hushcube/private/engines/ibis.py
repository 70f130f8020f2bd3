"""Any warehouse that Ibis speaks to: a table expression is grouped where it lives, and groups come back as Arrow.

Ibis writes the SQL, quotes the names and binds or quotes the values. Texts are compared as the warehouse compares
them: where its collation takes `a` and `A` for one, they are one group, so that a byte by byte collation is needed.

Warehouses round halves as they like, so that sums are rounded by comparisons; texts under a measure are grouped by and
read here. The rows of a person that count are those with the smallest SHA-256 of two things: the hash of the key, the
person and the columns used, each written with its length, and the row's number among those of one hash. A warehouse may
see other rows in the next query: everybody's rows are chosen from in every one, in a single reading.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hushcube.errors import DataError
from hushcube.model.measure import Measure
from hushcube.model.privacy import Unit
from hushcube.private.engines.contract import Measures
from hushcube.private.engines.grouped import GroupedEngine, warehouse
from hushcube.private.engines.grouped.asking import missing_integer, read_texts
from hushcube.private.engines.grouped.warehouse import Binned, Column, Columns, ColumnType, Known, Whole
from hushcube.resources import exhausted


class IbisRows(warehouse.Opened):
    """A table expression."""

    def __init__(self, table: Any) -> None:
        with _spoken("the table cannot be read"):
            schema = table.schema()
            self.names = tuple(schema.names)
            self.column_types = tuple(map(_column_type, schema.types))
        self._table = table

    def grouped(self, columns: Columns, sums: Measures = ()) -> pa.Table:
        """Group by expressions of the columns."""
        with _spoken("the warehouse cannot group the table"):
            keys = {f"k{i}": _key(column, *self._typed(column.name)) for i, column in enumerate(columns)}
            numbers, texts = {}, {}
            for i, measure in enumerate(sums):
                value, column_type = self._typed(measure.source_column)
                numbers[f"x{i}"] = _number(value, column_type)
                if column_type == "text":
                    texts[f"t{i}"] = value
            prepared = self._table.select(**keys, **numbers, **texts) if keys or sums else self._table
            totals = {"n": prepared.count()}
            for i, measure in enumerate(sums):
                totals.update(_totals(i, measure, prepared, has_texts=f"t{i}" in texts))
            by = [*keys, *texts]
            counted = prepared.group_by(by).aggregate(**totals) if by else prepared.aggregate(**totals)
            table: pa.Table = counted.to_pyarrow()
            for name in totals:
                table = table.set_column(table.column_names.index(name), name, table.column(name).cast(pa.int64()))
            return read_texts(table.select([*keys, *totals, *texts]), sums)

    def people(self, unit: Unit) -> warehouse.People:
        """Count the rows of each person."""
        with _spoken("the warehouse cannot count the rows of people"):
            return count_people(self._table, self._table[unit.column], unit.max_rows)

    def bounded(self, unit: Unit, columns: Sequence[str], key: bytes) -> IbisRows:
        """An expression in place of the table."""
        with _spoken("the warehouse cannot choose rows of people: it may lack SHA-256 or window functions"):
            return IbisRows(chosen(self._table, unit, columns, key))

    def _typed(self, name: str) -> tuple[Any, ColumnType]:
        return self._table[name], self.column_types[self.names.index(name)]


def _column_type(dtype: Any) -> ColumnType:
    """64-bit unsigned integers do not fit the contract's integers; as numbers they do."""
    if dtype.is_integer():
        return "number" if dtype.is_unsigned_integer() and dtype.nbytes == 8 else "integer"
    if dtype.is_floating() or dtype.is_decimal():
        return "number"
    return "text" if dtype.is_string() else "other"


def _key(column: Column, value: Any, column_type: ColumnType) -> Any:
    """What a column is grouped by, as its class says."""
    import ibis

    if isinstance(column, Known):
        return (value.isnull() | value.isin(column.labels)).ifelse(value, column.outside)
    if not isinstance(column, Binned | Whole):
        return value
    whole = isinstance(column, Whole) and column_type == "integer"
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
    return ibis.cases((missing, warehouse.MISSING), (inside, place), else_=warehouse.OUTSIDE).cast("int64")


def _bin(x: Any, edges: Sequence[float], first: int, last: int) -> Any:
    """The bin from `first` up to before `last` that x is in, by bisection: SQL nests no deeper than log2 of them."""
    import ibis

    if last - first == 1:
        return ibis.literal(first, "int64")
    middle = (first + last) // 2
    return (x < edges[middle]).ifelse(_bin(x, edges, first, middle), _bin(x, edges, middle, last))


def _number(value: Any, column_type: ColumnType) -> Any:
    """A double, null where there is no number; texts are read elsewhere."""
    import ibis

    if column_type not in ("integer", "number"):
        return ibis.null("float64")
    x = value.cast("float64")
    return value.isnan().ifelse(ibis.null("float64"), x) if value.type().is_floating() else x


def _totals(place: int, measure: Measure, table: Any, *, has_texts: bool) -> dict[str, Any]:
    """The sum of the integers of column x0, x1, ..., and how many values are missing."""
    import ibis

    x = table[f"x{place}"]
    public = (*measure.bounds, measure.center, measure.resolution)
    low, high, center, step = (ibis.literal(float(number), "float64") for number in public)
    offset = (x < low).ifelse(low, (x > high).ifelse(high, x)) - center
    # Some warehouses refuse quotients that are too small for a double.
    scaled = (offset.abs() < float(measure.resolution) / 4).ifelse(ibis.literal(0.0, "float64"), offset / step)
    q = _half_to_even(scaled)
    q = (q < measure.low).ifelse(measure.low, (q > measure.high).ifelse(measure.high, q)).cast("int64")
    missing = x.isnull() & table[f"t{place}"].isnull() if has_texts else x.isnull()
    integer = missing.ifelse(missing_integer(measure), 0 if has_texts else q)
    return {
        f"s{place}": integer.cast("int64").sum().fill_null(0).cast("int64"),
        f"m{place}": missing.ifelse(1, 0).sum().fill_null(0).cast("int64"),
    }


def _half_to_even(x: Any) -> Any:
    """The nearest integer, as C's rint; below zero x - floor(x) may round to a half, where the floor is odd, too."""
    whole = x.floor().cast("float64")
    rest = x - whole
    odd = whole - 2.0 * (whole / 2.0).floor() == 1.0
    return whole + ((rest > 0.5) | ((rest == 0.5) & odd)).ifelse(1.0, 0.0)


@contextmanager
def _spoken(problem: str) -> Iterator[None]:
    """Drivers raise what they like, and quote data: none of it is passed on."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about calls between Ibis and a driver, which are not ours
            yield
    except Exception as error:
        fix = "check the connection and your rights, and that each column has one type that can be grouped by"
        raise exhausted(error) or DataError("data", problem, fix) from None


@dataclass(frozen=True, repr=False)
class IbisTable(warehouse.Warehouse):
    """A table expression of the user's own connection, which stays theirs."""

    table: Any

    @contextmanager
    def open(self) -> Iterator[IbisRows]:
        """Nothing to open or close."""
        yield IbisRows(self.table)


def recognise_ibis(source: object, engine: str | None = None) -> GroupedEngine | None:  # noqa: ARG001 - as all do
    """The engine for an Ibis table expression; None for anything else."""
    if type(source).__module__.partition(".")[0] != "ibis":
        return None
    if not any(base.__name__ == "Table" for base in type(source).__mro__):
        raise DataError("data", "this Ibis expression is not a table", "give a table, or a selection of columns")
    return GroupedEngine(IbisTable(source))


def count_people(table: Any, person: Any, most: int) -> warehouse.People:
    """Rows in all, without an id, and remaining."""
    import ibis

    each = table.select(p=person).group_by("p").aggregate(n=ibis._.count())
    nobody = each.p.isnull()
    kept = (nobody | (each.n <= most)).ifelse(each.n, most)
    totals = each.aggregate(rows=each.n.sum(), missing=nobody.ifelse(each.n, 0).sum(), kept=kept.sum())
    (found,) = totals.to_pyarrow().to_pylist()
    return warehouse.People(*(int(found[name] or 0) for name in ("rows", "missing", "kept")))


def chosen(table: Any, unit: Unit, columns: Sequence[str], key: bytes) -> Any:
    """The rows that count: people are told apart as their column does it, and their rows by what is written of them.

    Rows that are written alike are numbered in the order of their values.
    """
    import ibis

    inner = [f"c{i}" for i in range(len(columns))]
    rows = table.select(p=table[unit.column], **{c: table[name] for c, name in zip(inner, columns, strict=True)})
    text = ibis.literal(key.hex())
    for name in ("p", *inner):
        text = text + _written(rows[name])
    hashed = rows.mutate(d=text.hexdigest("sha256"))
    alike = ibis.window(group_by=["p", "d"], order_by=inner or ["p"])
    numbered = hashed.mutate(i=ibis.row_number().over(alike))
    chance = (numbered.d + numbered.i.cast("string")).hexdigest("sha256")
    ranks = ibis.window(group_by=["p"], order_by=["h"])
    ranked = numbered.mutate(h=chance).mutate(r=ibis.row_number().over(ranks))
    few = ranked.r < unit.max_rows
    kept = ranked.filter(few | ranked.p.isnull() if unit.missing == "own" else few)
    return kept.select(**({name: kept[c] for c, name in zip(inner, columns, strict=True)} or {"p": kept.p}))


def _written(value: Any) -> Any:
    """A value with its length, so that no two rows read alike; a null has none."""
    text = value.cast("string")
    return (text.length().cast("string") + ":" + text).fill_null("-")
