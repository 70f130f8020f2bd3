"""Postgres through psycopg 3: the server groups, and only grouped counts travel.

    postgres://[user@]host[:port]/database#table        postgresql://...#schema.table

Credentials come from the environment only, as for every program of Postgres: PGUSER, PGPASSWORD, PGPASSFILE,
a password file or a service file. Identifiers are quoted by psycopg, values are bound; what is left of the SQL
is written here. One read-only transaction (repeatable read) sees one state of the data; answers are streamed.

Values of attributes are compared byte by byte (COLLATE "C"): a collation may take twins for one text, and so does
citext. People are told apart as their column does it, so that such twins are one person. Types that are neither
numbers, texts nor truth values come as their text (dates in ISO, times in UTC), which is how DuckDB writes them.
Messages of the server quote data, so none of them is passed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hushcube.errors import DataError, MissingDependency, ResourceError
from hushcube.private.boundary import normal, shown
from hushcube.private.engines.grouped import GroupedEngine
from hushcube.private.engines.grouped.warehouse import Opened, Warehouse
from hushcube.private.engines.postgres.table import PostgresRows

if TYPE_CHECKING:
    import psycopg

_SCHEMES: Final = ("postgres://", "postgresql://")
_SECRETS: Final = ("password", "sslpassword", "oauth_client_secret")
_HELP: Final = "write postgres://host:port/database#table or #schema.table"
_DEFAULTS: Final = {
    "application_name": "hushcube",
    "client_encoding": "UTF8",
    "connect_timeout": "10",
    # A peer that vanished in the middle of a query is noticed within a minute.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
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
    text = normal(source) if isinstance(source, str) else ""
    if not text.startswith(_SCHEMES):
        return None
    address, _, table = text.partition("#")
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise MissingDependency("psycopg", "reading from Postgres", "postgres") from None
    try:
        parameters = conninfo_to_dict(address)
    except (ProgrammingError, UnicodeError):  # its message quotes the address, with any password in it
        raise DataError("data", "is not an address of a Postgres table", _HELP) from None
    if any(parameters.get(secret) for secret in _SECRETS):
        fix = "take it out of the address and set PGPASSWORD, or write it to the password file ~/.pgpass"
        raise DataError("data", "the address holds a password, which others can read there", fix)
    if not table or "\0" in table:
        raise DataError("data", "names a Postgres database but no table", _HELP)
    return GroupedEngine(Postgres({**_DEFAULTS, **parameters}, table))


@dataclass(frozen=True)
class Postgres(Warehouse):
    """A table, view or foreign table of a Postgres database."""

    parameters: Mapping[str, Any] = field(repr=False)
    table: str

    @contextmanager
    def open(self) -> Iterator[Opened]:
        """Connect and begin the transaction; what it saw ends with the connection."""
        connection = self._connect()
        try:
            with _explained(connection):
                yield _find(connection, self.table)
        finally:
            connection.close()

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg

        try:
            connection = psycopg.connect(**self.parameters)
        except psycopg.Error as error:
            raise _no_connection(error) from None
        except (OSError, UnicodeError):
            raise _no_connection(None) from None
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        return connection


def _no_connection(error: psycopg.Error | None) -> DataError:
    """Why there is no connection, as far as the driver's state tells it: never the server's words."""
    state = None if error is None else error.pgconn
    if state is not None and (state.needs_password or state.used_password):
        problem = "the Postgres server refuses the user, the password or the database"
        fix = "set PGUSER, PGPASSWORD and PGDATABASE, or write the password to ~/.pgpass"
        return DataError("data", problem, fix)
    fix = "check host, port, database and user in the address or in PGHOST, PGPORT, PGDATABASE and PGUSER"
    return DataError("data", "there is no connection to the Postgres server", f"{fix}, and that the server runs")


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
