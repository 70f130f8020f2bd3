"""Whose rows they are, in Postgres: how many there are, and at most so many of each person.

    d = sha256(key, person, columns used)       written as a row of Postgres, whose text is unambiguous
    i = 1, 2, ... among the person's rows with the same d
    kept: the rows with the smallest sha256(d, i) of each person

One sort by person and d serves both numbers. No temporary table is written: the transaction is read-only, as it must
be on a standby. Where the table is steady, only the people with too many rows are sorted; measured on a million rows
that takes a third of the time if they are few, and no longer if they are many. A view may draw at random and a foreign
table may change, so that they are read once, and everybody is sorted. So it is where a type is an extension's, such as
citext: GROUP BY and windows always find its equality, a comparison need not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from psycopg import sql

PEOPLE: Final = """
SELECT coalesce(sum(n), 0)::int8, coalesce(sum(n) FILTER (WHERE p IS NULL), 0)::int8,
       coalesce(sum(CASE WHEN p IS NULL THEN n ELSE least(n, $1::int8) END), 0)::int8
FROM (SELECT {person} AS p, count(*) AS n FROM {rows} GROUP BY 1) AS people
"""
_HASHED: Final = """
SELECT p{inner}, sha256(convert_to(ROW($1::text, p{inner})::text, getdatabaseencoding())) AS d FROM {among}
"""
_NUMBERED: Final = """
SELECT p{inner}, d, row_number() OVER (PARTITION BY p, d) AS i, count(*) OVER (PARTITION BY p) AS n
FROM ({hashed}) AS hashed
"""
_RANKED: Final = """
SELECT p{inner}, row_number() OVER (
    PARTITION BY p ORDER BY CASE WHEN n > $2::int8 AND p IS NOT NULL THEN sha256(d || int8send(i)) END
) AS r
FROM ({numbered}) AS numbered
"""
_ONE_SCAN: Final = """
WITH source AS (SELECT {person} AS p{renamed} FROM {rows})
SELECT {outer} FROM ({ranked}) AS ranked WHERE r <= $2::int8{nobody}
"""
_LISTED: Final = """
WITH source AS NOT MATERIALIZED (SELECT {person} AS p{renamed} FROM {rows}),
     many AS MATERIALIZED (SELECT p FROM source WHERE p IS NOT NULL GROUP BY p HAVING count(*) > $2::int8)
SELECT {outer} FROM ({ranked}) AS ranked WHERE r <= $2::int8
UNION ALL
SELECT {outer} FROM source WHERE NOT EXISTS (SELECT FROM many WHERE many.p = source.p)
"""


def bounded_rows(
    rows: sql.Composable, person: sql.Composable, columns: Sequence[str], *, listed: bool, own: bool
) -> sql.Composed:
    """The rows that count, with these columns; the key is $1 (a text), the number of rows $2.

    Either people with too many rows are `listed` first, or all are sorted; rows of nobody are people of their `own`, or
    else one person.
    """
    from psycopg import sql

    # Positions instead of names: a column may be called p.
    inner = sql.SQL("").join(sql.SQL(f", c{i}") for i in range(len(columns)))
    pairs = [(sql.Identifier(name), sql.SQL(f"c{i}")) for i, name in enumerate(columns)]
    renamed = sql.SQL("").join(sql.SQL(", {} AS {}").format(name, place) for name, place in pairs)
    outer = sql.SQL(", ").join(sql.SQL("{} AS {}").format(place, name) for name, place in pairs)
    among = sql.SQL("source JOIN many USING (p)" if listed else "source")
    hashed = sql.SQL(_HASHED).format(inner=inner, among=among)
    numbered = sql.SQL(_NUMBERED).format(inner=inner, hashed=hashed)
    ranked = sql.SQL(_RANKED).format(inner=inner, numbered=numbered)
    template = sql.SQL(_LISTED if listed else _ONE_SCAN)
    nobody = sql.SQL(" OR p IS NULL" if own else "")
    return template.format(person=person, renamed=renamed, rows=rows, outer=outer, ranked=ranked, nobody=nobody)
