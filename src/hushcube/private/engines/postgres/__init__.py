"""Postgres through psycopg 3: the server groups, and only grouped counts travel.

    postgres://[user@]host[:port]/database#table        postgresql://...#schema.table

Credentials come from the environment only [postgres_address.py]. Identifiers are quoted by psycopg, values are bound;
what is left of the SQL is written here. One read-only transaction (repeatable read) sees one state of the data;
answers are streamed.

Values of attributes are compared byte by byte (COLLATE "C"): a collation may take twins for one text, and so does
citext. People are told apart as their column does it, so that such twins are one person. Types that are neither
numbers, texts nor truth values come as their text (dates in ISO, times in UTC), which is how DuckDB writes them.
Messages of the server quote data, so none of them is passed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hushcube.errors import DataError, ResourceError
from hushcube.postgres_address import PostgresAddress
from hushcube.private.boundary import shown
from hushcube.private.engines.grouped import GroupedEngine
from hushcube.private.engines.grouped.warehouse import Opened, Warehouse
from hushcube.private.engines.postgres.table import PostgresRows

if TYPE_CHECKING:
    import psycopg

_HELP: Final = "write postgres://host:port/database#table or #schema.table"
_LACKING: Final = {"53100": "disk", "53200": "memory", "53400": "configured limit"}
"""What a server ran out of, by its code."""
_SESSION: Final = {
    "DateStyle": "ISO, MDY",
    "TimeZone": "UTC",
    "IntervalStyle": "postgres",
    # As texts, different doubles and bytes are different.
    "extra_float_digits": "1",
    "bytea_output": "hex",
}


def recognise_postgres(source: object, engine: str | None = None) -> GroupedEngine | None:  # noqa: ARG001 - as all do
    """The engine of `postgres://...#table`; None where the source is something else. Nothing is connected yet."""
    text = source if isinstance(source, str) else ""
    found = PostgresAddress.read(text, what=DataError, where="data", purpose="reading from Postgres", fix=_HELP)
    if found is None:
        return None
    if not found.name or "\0" in found.name:
        raise DataError("data", "names a Postgres database but no table", _HELP)
    return GroupedEngine(Postgres(found))


@dataclass(frozen=True)
class Postgres(Warehouse):
    """A table, view or foreign table of a Postgres database."""

    address: PostgresAddress

    @contextmanager
    def open(self) -> Iterator[Opened]:
        """Connect and begin the transaction; what it saw ends with the connection."""
        connection = self._connect()
        try:
            with _explained(connection):
                yield _find(connection, self.address.name)
        finally:
            connection.close()

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg

        connection = self.address.connect(DataError, "data")
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        return connection


@contextmanager
def _explained(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Turn what psycopg and Arrow raise into an error without any data in it."""
    import psycopg

    try:
        yield
    except psycopg.errors.InsufficientPrivilege:
        raise _not_readable() from None
    except psycopg.errors.QueryCanceled:
        fix = "allow more time (statement_timeout), or ask for fewer attributes"
        raise DataError("data", "the Postgres server stopped the query", fix) from None
    except (psycopg.Error, OSError, UnicodeError, pa.ArrowException) as error:
        if (lacking := _LACKING.get(getattr(error, "sqlstate", None) or "")) is not None:
            lacking = f"the {lacking} of the Postgres server"
            raise ResourceError(lacking, "is not enough", "ask its owner for more") from None
        problem, fix = "the Postgres table cannot be counted", "check that SELECT works on all of it, with this user"
        if connection.closed:
            problem, fix = "the connection to the Postgres server was lost", "try again when the server is back"
        raise DataError("data", problem, f"{fix}; nothing was released") from None


def _not_readable() -> DataError:
    return DataError("data", "this user may not read the Postgres table", "grant SELECT on it to the user")


def _find(connection: psycopg.Connection[Any], table: str) -> Opened:
    """The table with exactly this name, with or without its schema; the search path decides between several."""
    from psycopg import sql

    found = connection.execute(
        """SELECT c.oid, s.nspname, c.relname, pg_table_is_visible(c.oid),
             c.relkind IN ('r', 'p', 'm') AND NOT c.relrowsecurity AND (c.relkind = 'p' OR NOT c.relhassubclass)
             AND NOT EXISTS (SELECT FROM pg_partition_tree(c.oid) AS t JOIN pg_catalog.pg_class AS f ON f.oid = t.relid
                             WHERE f.relkind = 'f')
           FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS s ON s.oid = c.relnamespace
           WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND %s::text IN (c.relname, s.nspname || '.' || c.relname)
             AND s.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')""",
        [table],
    ).fetchall()
    if len(found) > 1 and sum(row[3] for row in found) == 1:
        found = [row for row in found if row[3]]
    if len(found) != 1:
        what = "no table or view" if not found else "several tables or views"
        raise DataError("data", f"the Postgres database has {what} {shown(table)}", _HELP)
    number, schema, name, _, steady = found[0]
    for setting, value in _SESSION.items():
        connection.execute("SELECT set_config(%s, %s, true)", [setting, value])
    named = connection.execute(
        """SELECT attname, has_column_privilege(attrelid, attnum, 'SELECT'), c.collisdeterministic IS FALSE
           FROM pg_catalog.pg_attribute LEFT JOIN pg_catalog.pg_collation AS c ON c.oid = attcollation
           WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum""",
        [number],
    ).fetchall()
    names = tuple(str(column) for column, readable, _ in named if readable)
    loose = frozenset(str(column) for column, _, differs in named if differs)
    if named and not names:
        raise _not_readable()
    relation = sql.Identifier(schema, name)
    types: tuple[int, ...] = ()
    if names:  # the description of a result sees through domains
        listed = sql.SQL(", ").join(map(sql.Identifier, names))
        described = connection.execute(sql.SQL("SELECT {} FROM {} LIMIT 0").format(listed, relation)).description
        types = tuple(column.type_code for column in described or ())
    return PostgresRows(connection, relation, names, types, loose=loose, steady=steady)
