"""What Postgres is asked to group by, and Arrow columns of what it answers.

A number becomes the nearest double, as DuckDB casts it. `width_bucket` finds a bin by halving; a text is compared
with all labels at once through a hash table of the server.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, LiteralString

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushcube.private.engines.grouped.warehouse import MISSING, OUTSIDE, Binned, Column, Kind, Known, Whole
from hushcube.private.engines.measuring import Ints

if TYPE_CHECKING:
    from psycopg import sql

# Numbers of types in pg_type, which never change.
BOOL, BYTEA, _NUMERIC = 16, 17, 1700
_INTEGERS: Final = {21: pa.int16(), 23: pa.int32(), 20: pa.int64()}
_FLOATS: Final = {700: pa.float32(), 701: pa.float64()}
_TEXTS: Final = frozenset((18, 19, 25, 1042, 1043))
_FIRST_OF_USERS: Final = 16384
_RAW: Final = {BOOL: pa.bool_(), BYTEA: pa.binary(), **_INTEGERS, **_FLOATS}


def kind_of(oid: int) -> Kind:
    """What a type is to an engine."""
    if oid in _INTEGERS:
        return "integer"
    if oid in _FLOATS or oid == _NUMERIC:
        return "number"
    return "other" if oid in _RAW else "text"


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


def key_of(column: Column, oid: int, bound: list[Any]) -> sql.Composable:
    """What to group by; the values in it join those already bound."""
    from psycopg import sql

    name = sql.Identifier(column.name)
    template, values = _template(column, oid)
    places = {what: sql.SQL(f"${len(bound) + i}") for i, what in enumerate(values, 1)}
    bound.extend(values.values())
    return sql.SQL(template).format(name=name, double=double_of(name, oid), **places)


def double_of(name: sql.Identifier, oid: int) -> sql.Composed:
    """The nearest double of a number."""
    from psycopg import sql

    return sql.SQL(_NUMERIC_DOUBLE if oid == _NUMERIC else "{name}::float8").format(name=name)


def person_of(name: sql.Identifier, oid: int, *, loose: bool) -> sql.Composed:
    """An id, equal to others where the column says so; bytes say it of texts, unless the collation is `loose`."""
    from psycopg import sql

    return sql.SQL(TEXT if oid in _TEXTS and not loose else "{name}").format(name=name)


def is_builtin(oid: int) -> bool:
    """Whether `=` is sure to mean what GROUP BY means: an extension's `=` may be outside the search path."""
    return oid < _FIRST_OF_USERS


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


def bin_of(column: Binned, buckets: Ints, missing: NDArray[np.bool_]) -> Ints:
    """The bins of Postgres's buckets: 0 is below the first edge, i is from the i-th edge on."""
    places = buckets - 1
    places[(places < 0) | (places > len(column.edges) - 2)] = OUTSIDE
    places[missing] = MISSING
    return places
