"""What Postgres is asked to sum, bit for bit as numpy rounds: `round` of a double is C's rint, halves to even.

    q = clip(round((clip(x, low, high) - center) / resolution))

Postgres refuses a quotient that is too small for a double; what is below a quarter of the resolution rounds to zero
anyway. Sums of up to 32 bits each are 64-bit there, and sums of 64 bits are numeric: both come back as 64 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hushcube.private.engines.grouped.texts import missing_integer
from hushcube.private.engines.grouped.warehouse import Summed
from hushcube.private.engines.postgres.keys import BOOL, BYTEA, TEXT, double_of, kind_of

if TYPE_CHECKING:
    from psycopg import sql

# Such texts are numbers to everybody and no double overflows; all others are read where DuckDB is.
_PLAIN: Final = "'^-?[0-9]{{1,15}}(\\.[0-9]{{1,15}})?$'"
_TEXT_NUMBER: Final = f"CASE WHEN {TEXT} ~ {_PLAIN} THEN ({TEXT})::float8 END"
_ODD_TEXT: Final = f"CASE WHEN {TEXT} ~ {_PLAIN} THEN NULL ELSE {TEXT} END"
_NUMBER: Final = "NULLIF({double}, 'NaN'::float8)"
# Bytes that are no printable text are no number; DuckDB writes them as \xAB.
_BYTES: Final = "CASE WHEN encode({name}, 'escape') ~ '^[ -~]*$' THEN encode({name}, 'escape') END"
_OFFSET: Final = "least(greatest({x}, {low}::float8), {high}::float8) - {center}::float8"
_INTEGER: Final = (
    f"CASE WHEN {{x}} IS NULL THEN {{missing}}::float8 WHEN abs({_OFFSET}) < {{quarter}}::float8 THEN 0 "
    f"ELSE greatest(least(round(({_OFFSET}) / {{resolution}}::float8), {{q_high}}::float8), {{q_low}}::float8) END"
)


def values_of(place: int, name: str, oid: int) -> list[sql.Composed]:
    """The number of a row as x0, x1, ...; and as t0, t1, ... a text that only DuckDB can tell to be one or none."""
    from psycopg import sql

    column = sql.Identifier(name)
    number: sql.Composable = sql.SQL("NULL::float8")
    odd: sql.Composable | None = None
    if oid == BYTEA:
        odd = sql.SQL(_BYTES).format(name=column)
    elif kind_of(oid) == "text":
        odd = sql.SQL(_ODD_TEXT).format(name=column)
        number = sql.SQL(_TEXT_NUMBER).format(name=column)
    elif oid != BOOL:
        number = sql.SQL(_NUMBER).format(double=double_of(column, oid))
    named = {f"x{place}": number, **({} if odd is None else {f"t{place}": odd})}
    return [sql.SQL("{} AS {}").format(value, sql.Identifier(name)) for name, value in named.items()]


def has_texts(oid: int) -> bool:
    """Whether there may be texts that only DuckDB can tell to be numbers."""
    return oid == BYTEA or kind_of(oid) == "text"


def sum_of(place: int, summed: Summed, oid: int, bound: list[Any]) -> list[sql.Composed]:
    """The sum and how many values are missing, over x and t of `values_of`; numbers join those already bound."""
    from psycopg import sql

    measure = summed.measure
    low, high = map(float, measure.bounds)
    numbers = {
        "low": low,
        "high": high,
        "center": float(measure.center),
        "resolution": float(measure.resolution),
        "quarter": float(measure.resolution) / 4,
        "q_low": float(measure.low),
        "q_high": float(measure.high),
        "missing": float(missing_integer(summed)),
    }
    places = {what: sql.SQL(f"${len(bound) + i}") for i, what in enumerate(numbers, 1)}
    bound.extend(numbers.values())
    integer = sql.SQL(_INTEGER).format(x=sql.Identifier(f"x{place}"), **places)
    kind = sql.SQL("int4" if measure.largest < 2**31 - 1 else "int8")
    counted = sql.SQL(f" FILTER (WHERE t{place} IS NULL)" if has_texts(oid) else "")
    absent = [sql.SQL(f"x{place} IS NULL"), *([sql.SQL(f"t{place} IS NULL")] if has_texts(oid) else [])]
    return [
        sql.SQL("coalesce(sum(({})::{}){}, 0)::int8").format(integer, kind, counted),
        sql.SQL("count(*) FILTER (WHERE {})").format(sql.SQL(" AND ").join(absent)),
    ]
