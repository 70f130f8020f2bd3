"""The rows of a Postgres table, or those of them that count: grouped and summed by one statement each.

Several group-bys of chosen rows are one statement with GROUPING SETS, so that rows are chosen once. Those of a whole
table are a statement each, since the server works on these in parallel: the same time, measured.

Of a person, at most so many rows count:

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

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from hushcube.model.privacy import Unit
from hushcube.private.engines.contract import Measures, no_equality, position
from hushcube.private.engines.grouped.asking import read_texts
from hushcube.private.engines.grouped.warehouse import Columns, Opened, People
from hushcube.private.engines.postgres import expressions
from hushcube.private.engines.postgres.expressions import Packed, has_texts

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

_FETCHED: Final = 1 << 16  # groups that are Python's objects at a time: they take ten times the room of Arrow's
_CHUNK: Final = 1 << 12  # groups that the driver takes from the connection at once
_MOST_SETS: Final = 31  # keys that Postgres's GROUPING tells apart
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


class PostgresRows(Opened):
    """A table, or a statement whose values are bound already; names and types are those of its columns.

    The collations of `loose` columns take different texts for equal.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        rows: sql.Composable,
        names: tuple[str, ...],
        types: tuple[int, ...],
        bound: Sequence[Any] = (),
        *,
        loose: frozenset[str] = frozenset(),
        steady: bool = False,
    ) -> None:
        self.names = names
        self.column_types = tuple(map(expressions.column_type_of, types))
        self.steady = steady
        self._connection = connection
        self._rows = rows
        self._types = types
        self._bound = tuple(bound)
        self._loose = loose

    def grouped(self, columns: Columns, sums: Measures = ()) -> pa.Table:
        """All groups at once."""
        return pa.concat_tables(table for _, table in self._answers([columns], sums))

    def several(self, groups: Sequence[Columns], sums: Measures = ()) -> Iterator[tuple[int, pa.Table]]:
        """Chosen rows are grouped by one statement; a plain one, since the server runs cursors without parallelism."""
        if self._bound and len({column for columns in groups for column in columns}) <= _MOST_SETS:
            yield from self._answers(groups, sums)
            return
        for place, columns in enumerate(groups):
            for _, table in self._answers([columns], sums):
                yield place, table

    def people(self, unit: Unit) -> People:
        """One statement, over numbers of rows."""
        import psycopg
        from psycopg import sql

        query = sql.SQL(PEOPLE).format(person=self._person(unit), rows=self._rows)
        with psycopg.RawCursor(self._connection) as cursor:
            try:
                found = cursor.execute(query, [unit.max_rows], binary=True).fetchall()
            except psycopg.errors.UndefinedFunction:
                raise no_equality(unit) from None
        return People(*map(int, found[0]))

    def bounded(self, unit: Unit, columns: Sequence[str], key: bytes) -> PostgresRows:
        """A statement in place of the table."""
        from psycopg import sql

        listed = self.steady and self._type(unit.column) < expressions.FIRST_OF_USERS
        chosen = bounded_rows(self._rows, self._person(unit), columns, listed=listed, own=unit.missing == "own")
        types = tuple(self._type(name) for name in columns)
        rows = sql.SQL("({}) AS chosen").format(chosen)
        return PostgresRows(self._connection, rows, tuple(columns), types, (key.hex(), unit.max_rows))

    def _person(self, unit: Unit) -> sql.Composed:
        from psycopg import sql

        place = position(self.names, unit.column, f"unit {unit.column!r}")
        name = sql.Identifier(unit.column)
        return expressions.person_of(name, self._types[place], loose=unit.column in self._loose)

    def _type(self, name: str) -> int:
        return self._types[self.names.index(name)]

    def _answers(self, groups: Sequence[Columns], sums: Measures) -> Iterator[tuple[int, pa.Table]]:
        """At least one part for each group-by, maybe an empty one."""
        keys = list(dict.fromkeys(column for columns in groups for column in columns))
        parts = expressions.packed(keys) if len(groups) == 1 else [Packed((key,)) for key in keys]
        oids = [self._type(measure.source_column) for measure in sums]
        texts = [f"t{i}" for i, oid in enumerate(oids) if has_texts(oid)]
        totals = ["n", *(f"{what}{i}" for i in range(len(sums)) for what in "sm")]
        others = {**dict.fromkeys(totals, pa.int64()), **dict.fromkeys(texts, pa.string())}
        others.update({"mask": pa.int64()} if len(groups) > 1 else {})
        # Of each set: which keys are not in it, the last key in the lowest bit.
        masks = [sum(1 << len(keys) - 1 - i for i, key in enumerate(keys) if key not in columns) for columns in groups]
        places = [[keys.index(column) for column in columns] for columns in groups]
        for rows in self._fetched(*self._query(parts, groups, sums, oids)):
            table = self._arrow(parts, others, rows)
            for place, mask in enumerate(masks):
                own = table.filter(pc.equal(table.column("mask"), mask)) if len(groups) > 1 else table
                own = own.select([*(f"k{i}" for i in places[place]), *totals, *texts])
                names = [f"k{i}" for i in range(len(places[place]))]
                yield place, read_texts(own.rename_columns([*names, *totals, *texts]), sums)

    def _arrow(
        self, parts: Sequence[Packed], others: Mapping[str, pa.DataType], rows: Sequence[tuple[Any, ...]]
    ) -> pa.Table:
        """Some rows of an answer: keys k0, k1, ... and then other columns."""
        fetched = list(zip(*rows, strict=True)) or [()] * (len(parts) + len(others))
        arrays: list[pa.Array] = []
        for part, values in zip(parts, fetched, strict=False):
            arrays.extend(part.arrays(self._types_of(part), values))
        names = [*(f"k{i}" for i in range(len(arrays))), *others]
        arrays.extend(pa.array(*each) for each in zip(fetched[len(parts) :], others.values(), strict=True))
        return pa.table(arrays, names)

    def _types_of(self, part: Packed) -> list[int]:
        return [self._type(column.name) for column in part.columns]

    def _fetched(self, query: sql.Composed, bound: Sequence[Any]) -> Iterator[list[tuple[Any, ...]]]:
        """Rows as they arrive; first none, so that an empty answer has its columns, too."""
        import psycopg

        yield []
        size = _CHUNK if psycopg.capabilities.has_stream_chunked() else 1
        # Raw: else a `%` in a column's name would be taken for a placeholder.
        with psycopg.RawCursor(self._connection) as cursor:
            stream = cursor.stream(query, bound, binary=True, size=size)
            while rows := list(islice(stream, _FETCHED)):
                yield rows

    def _query(
        self, parts: Sequence[Packed], groups: Sequence[Columns], sums: Measures, oids: Sequence[int]
    ) -> tuple[sql.Composed, list[Any]]:
        """Keys, numbers and texts of each row first, then groups of them."""
        from psycopg import sql

        bound = list(self._bound)
        names = [sql.SQL(f"k{i}") for i in range(len(parts))]
        keys = [part.key(self._types_of(part), bound) for part in parts]
        inner = [sql.SQL("{} AS {}").format(key, name) for key, name in zip(keys, names, strict=True)]
        texts = [sql.SQL(f"t{i}") for i, oid in enumerate(oids) if has_texts(oid)]
        totals: list[sql.Composable] = [sql.SQL("count(*)")]
        for i, (measure, oid) in enumerate(zip(sums, oids, strict=True)):
            inner.extend(expressions.values_of(i, measure.source_column, oid))
            totals.extend(expressions.sum_of(i, measure, oid, bound))
        listed = sql.SQL(", ")
        by = listed.join([*names, *texts])
        mask: list[sql.Composable] = []
        if len(groups) > 1:
            # Attributes may share a column: then two group-bys may be one.
            within = (tuple(i for i, part in enumerate(parts) if part.columns[0] in columns) for columns in groups)
            distinct = dict.fromkeys(within)
            sets = [listed.join([*(names[i] for i in chosen), *texts]) for chosen in distinct]
            by = sql.SQL("GROUPING SETS ({})").format(listed.join(sql.SQL("({})").format(each) for each in sets))
            mask = [sql.SQL("grouping({})::int8").format(listed.join(names))]
        query = sql.SQL("SELECT {} FROM (SELECT {} FROM {}) AS one").format(
            listed.join([*names, *totals, *texts, *mask]), listed.join(inner), self._rows
        )
        return (query + sql.SQL(" GROUP BY {}").format(by) if names or texts else query), bound


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
