"""What Postgres is asked to group by and to sum, and Arrow columns of what it answers.

A number becomes the nearest double, as DuckDB casts it. `width_bucket` finds a bin by halving; a text is compared
with all labels at once through a hash table of the server.

Several small integers are grouped by as one, p = (c0 n1 + c1) n2 + c2 with c from 0 up to n - 1: Postgres takes half
the time for it that it takes for six, and as much is saved where they arrive.

What it sums is bit for bit as numpy rounds: `round` of a double is C's rint, halves to even.

    q = clip(round((clip(x, low, high) - center) / resolution))

Postgres refuses a quotient that is too small for a double; what is below a quarter of the resolution rounds to zero
anyway. Sums of up to 32 bits each are 64-bit there, and sums of 64 bits are numeric: both come back as 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, LiteralString

import numpy as np
import pyarrow as pa

from hushcube.model.arrays import Bools, Ints
from hushcube.model.measure import Measure
from hushcube.private.engines.grouped.asking import missing_integer
from hushcube.private.engines.grouped.warehouse import MISSING, OUTSIDE, Binned, Column, ColumnType, Known, Whole

if TYPE_CHECKING:
    from psycopg import sql

# Numbers of types in pg_type, which never change.
BOOL, BYTEA, _NUMERIC = 16, 17, 1700
_INTEGERS: Final = {21: pa.int16(), 23: pa.int32(), 20: pa.int64()}
_FLOATS: Final = {700: pa.float32(), 701: pa.float64()}
_TEXTS: Final = frozenset((18, 19, 25, 1042, 1043))
FIRST_OF_USERS: Final = 16384
"""Below it, `=` is sure to mean what GROUP BY means: an extension's `=` may be outside the search path."""
_RAW: Final = {BOOL: pa.bool_(), BYTEA: pa.binary(), **_INTEGERS, **_FLOATS}
_MOST: Final = 2**62
TEXT: Final = '({name}::text COLLATE "C")'
_KNOWN: Final = f"CASE WHEN {TEXT} = ANY ({{labels}}::text[]) THEN {TEXT} WHEN {TEXT} IS NOT NULL THEN {{outside}} END"
# Postgres refuses to cast a numeric that no double comes near; NaN is above all numbers there.
_NUMERIC_DOUBLE: Final = (
    "CASE WHEN {name} = 'NaN' THEN 'NaN'::float8 WHEN {name} > 1e300 THEN 'inf'::float8 "
    "WHEN {name} < -1e300 THEN '-inf'::float8 WHEN abs({name}) < 1e-300 THEN 0::float8 ELSE {name}::float8 END"
)
# NaN and the number for missing values become null; comparing with a bound null changes nothing.
_DOUBLE: Final = "NULLIF(NULLIF({double}, 'NaN'::float8), {missing}::float8)"
# Null; 0 below the first edge; i from the i-th edge on.
_BINNED: Final = f"width_bucket({_DOUBLE}, {{edges}}::float8[])"
_INTEGER: Final = "NULLIF({name}::int8, {missing}::int8)"
_WHOLE_INTEGER: Final = (
    f"CASE WHEN {_INTEGER} BETWEEN {{low}}::int8 AND {{high}}::int8 THEN {_INTEGER} - {{low}}::int8 "
    f"WHEN {_INTEGER} IS NULL THEN {MISSING} ELSE {OUTSIDE} END"
)
_WHOLE_NUMBER: Final = (
    f"CASE WHEN {_DOUBLE} BETWEEN {{low}}::float8 AND {{high}}::float8 AND {_DOUBLE} = trunc({_DOUBLE}) "
    f"THEN {_DOUBLE}::int8 - {{low}}::int8 WHEN {_DOUBLE} IS NULL THEN {MISSING} ELSE {OUTSIDE} END"
)
# Such texts are numbers to everybody and no double overflows; all others are read where DuckDB is.
_PLAIN: Final = "'^-?[0-9]{{1,15}}(\\.[0-9]{{1,15}})?$'"
_TEXT_NUMBER: Final = f"CASE WHEN {TEXT} ~ {_PLAIN} THEN ({TEXT})::float8 END"
_ODD_TEXT: Final = f"CASE WHEN {TEXT} ~ {_PLAIN} THEN NULL ELSE {TEXT} END"
_NUMBER: Final = "NULLIF({double}, 'NaN'::float8)"
# Bytes that are no printable text are no number; DuckDB writes them as \xAB.
_BYTES: Final = "CASE WHEN encode({name}, 'escape') ~ '^[ -~]*$' THEN encode({name}, 'escape') END"
_OFFSET: Final = "least(greatest({x}, {low}::float8), {high}::float8) - {center}::float8"
_QUANTISED: Final = (
    f"CASE WHEN {{x}} IS NULL THEN {{missing}}::float8 WHEN abs({_OFFSET}) < {{quarter}}::float8 THEN 0 "
    f"ELSE greatest(least(round(({_OFFSET}) / {{resolution}}::float8), {{q_high}}::float8), {{q_low}}::float8) END"
)


def column_type_of(oid: int) -> ColumnType:
    """What a type is to an engine."""
    if oid in _INTEGERS:
        return "integer"
    if oid in _FLOATS or oid == _NUMERIC:
        return "number"
    return "other" if oid in _RAW else "text"


def key_of(column: Column, oid: int, bound: list[Any]) -> sql.Composable:
    """What to group by; the values in it join those already bound."""
    from psycopg import sql

    name = sql.Identifier(column.name)
    template, values = _template(column, oid)
    return sql.SQL(template).format(name=name, double=double_of(name, oid), **_bind(values, bound))


def _bind(values: Mapping[str, Any], bound: list[Any]) -> dict[str, sql.SQL]:
    """The placeholders of named values, which join those already bound."""
    from psycopg import sql

    bound.extend(values.values())
    return {name: sql.SQL(f"${i}") for i, name in enumerate(values, len(bound) - len(values) + 1)}


def double_of(name: sql.Identifier, oid: int) -> sql.Composed:
    """The nearest double of a number."""
    from psycopg import sql

    return sql.SQL(_NUMERIC_DOUBLE if oid == _NUMERIC else "{name}::float8").format(name=name)


def person_of(name: sql.Identifier, oid: int, *, loose: bool) -> sql.Composed:
    """An id, equal to others where the column says so; bytes say it of texts, unless the collation is `loose`."""
    from psycopg import sql

    return sql.SQL(TEXT if oid in _TEXTS and not loose else "{name}").format(name=name)


def _template(column: Column, oid: int) -> tuple[LiteralString, dict[str, Any]]:
    if isinstance(column, Known):
        # No text of Postgres holds a zero character, and none can be sent.
        labels = [label for label in column.labels if "\0" not in label]
        return _KNOWN, {"labels": labels, "outside": column.outside}
    if isinstance(column, Binned):
        # The last edge is moved by one double, so that the last bin is closed.
        edges = [*column.edges[:-1], math.nextafter(column.edges[-1], math.inf)]
        return _BINNED, {"missing": column.missing, "edges": edges}
    if isinstance(column, Whole):
        template = _WHOLE_INTEGER if oid in _INTEGERS else _WHOLE_NUMBER
        return template, {"missing": column.missing, "low": column.low, "high": column.high}
    if oid == _NUMERIC:
        return "{double}", {}
    return "{name}" if oid in _RAW else TEXT, {}


def arrow_of_key(column: Column, oid: int, values: Sequence[Any]) -> pa.Array:
    """The values of a key, as the contract wants them."""
    if isinstance(column, Binned):
        buckets = np.array([0 if value is None else value for value in values], dtype=np.int64)
        return pa.array(bin_of(column, buckets, np.array([value is None for value in values], dtype=bool)))
    if isinstance(column, Whole):
        return pa.array(values, pa.int64())
    if isinstance(column, Known):
        return pa.array(values, pa.string())
    return pa.array(values, pa.float64() if oid == _NUMERIC else _RAW.get(oid, pa.string()))


def bin_of(column: Binned, buckets: Ints, missing: Bools) -> Ints:
    """The bins of Postgres's buckets: 0 is below the first edge, i is from the i-th edge on."""
    places = buckets - 1
    places[(places < 0) | (places > len(column.edges) - 2)] = OUTSIDE
    places[missing] = MISSING
    return places


@dataclass(frozen=True)
class Packed:
    """Keys that are fetched together: several of small integers, or one of any kind."""

    columns: tuple[Column, ...]

    def key(self, oids: Sequence[int], bound: list[Any]) -> sql.Composable:
        """What to group by; the values in it join those already bound."""
        from psycopg import sql

        if len(self.columns) == 1:
            return key_of(self.columns[0], oids[0], bound)
        packed: sql.Composable = sql.SQL("0::int8")
        for column, oid in zip(self.columns, oids, strict=True):
            # Missing and outside are -1 and -2; buckets begin with 0 for what is below, and are null where missing.
            lifted = "coalesce(({}) + 1, 0)" if isinstance(column, Binned) else "({}) + 2"
            code = sql.SQL(lifted).format(key_of(column, oid, bound))
            bound.append(_values(column))
            packed = sql.SQL("({}) * {}::int8 + {}").format(packed, sql.SQL(f"${len(bound)}"), code)
        return packed

    def arrays(self, oids: Sequence[int], values: Sequence[Any]) -> list[pa.Array]:
        """An Arrow array for each key."""
        if len(self.columns) == 1:
            return [arrow_of_key(self.columns[0], oids[0], values)]
        left: Ints = np.array(values, dtype=np.int64)
        found: list[pa.Array] = []
        for column in reversed(self.columns):
            left, code = np.divmod(left, _values(column) or 1)
            found.append(pa.array(bin_of(column, code - 1, code == 0) if isinstance(column, Binned) else code - 2))
        return found[::-1]


def packed(keys: Sequence[Column]) -> list[Packed]:
    """The same keys in the same order, neighbours packed as far as 64 bits hold them."""
    parts: list[list[Column]] = []
    room = 0
    for column in keys:
        values = _values(column)
        if values is None or values > room:
            parts.append([column])
            room = _MOST // values if values is not None else 0
        else:
            parts[-1].append(column)
            room //= values
    return [Packed(tuple(part)) for part in parts]


def _values(column: Column) -> int | None:
    """How many small integers a key may be; None where it is something else."""
    if isinstance(column, Binned):
        return len(column.edges) + 2
    return column.high - column.low + 3 if isinstance(column, Whole) else None


def values_of(place: int, name: str, oid: int) -> list[sql.Composed]:
    """The number of a row as x0, x1, ...; and as t0, t1, ... a text that only DuckDB can tell to be one or none."""
    from psycopg import sql

    column = sql.Identifier(name)
    templates: list[LiteralString] = [_NUMBER]
    if oid == BYTEA:
        templates = ["NULL::float8", _BYTES]
    elif column_type_of(oid) == "text":
        templates = [_TEXT_NUMBER, _ODD_TEXT]
    elif oid == BOOL:
        templates = ["NULL::float8"]
    values = [sql.SQL(template).format(name=column, double=double_of(column, oid)) for template in templates]
    return [sql.SQL(f"{{}} AS {what}{place}").format(value) for what, value in zip("xt", values, strict=False)]


def has_texts(oid: int) -> bool:
    """Whether there may be texts that only DuckDB can tell to be numbers."""
    return oid == BYTEA or column_type_of(oid) == "text"


def sum_of(place: int, measure: Measure, oid: int, bound: list[Any]) -> list[sql.Composable]:
    """The sum and how many values are missing, over x and t of `values_of`; numbers join those already bound."""
    from psycopg import sql

    low, high = map(float, measure.bounds)
    numbers = {"low": low, "high": high, "center": float(measure.center), "resolution": float(measure.resolution)}
    numbers |= {"q_low": float(measure.low), "q_high": float(measure.high)}
    numbers |= {"quarter": numbers["resolution"] / 4, "missing": float(missing_integer(measure))}
    places = _bind(numbers, bound)
    integer = sql.SQL(_QUANTISED).format(x=sql.SQL(f"x{place}"), **places)
    integers = sql.SQL("int4" if measure.largest < 2**31 - 1 else "int8")
    counted, unread = (f" FILTER (WHERE t{place} IS NULL)", f" AND t{place} IS NULL") if has_texts(oid) else ("", "")
    return [
        sql.SQL("coalesce(sum(({})::{}){}, 0)::int8").format(integer, integers, sql.SQL(counted)),
        sql.SQL(f"count(*) FILTER (WHERE x{place} IS NULL{unread})"),
    ]
