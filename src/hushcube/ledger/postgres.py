"""A ledger in a Postgres database, for teams: postgresql://[user@]host[:port]/database#schema

Its tables are in a schema of their own, `hushcube_ledger` unless the address names another. Every writer first locks
the row of the head, so that writers follow each other and each sees what the one before committed; readers see one
state (repeatable read). A commit waits for the server's disk (synchronous_commit), whatever the server's default is.
Credentials come from the environment only.  [postgres_address.py]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from hushcube.errors import LedgerError, LedgerUnavailable, NoLedger
from hushcube.ledger.chain import Entry
from hushcube.ledger.store import (
    AGAIN,
    FORMAT,
    KEPT,
    UNCHANGED,
    WAIT,
    Row,
    Store,
    begin,
    tables,
    undivided,
    unknown_format,
)
from hushcube.postgres_address import PostgresAddress

if TYPE_CHECKING:
    import psycopg

_SCHEMA: Final = "hushcube_ledger"
_FIX: Final = "write postgresql://host:port/database or postgresql://host:port/database#schema"
_SETTINGS: Final = {
    "synchronous_commit": "on",
    "lock_timeout": f"{WAIT}s",
    # Whoever vanished while holding the head does not hold it for long.
    "idle_in_transaction_session_timeout": f"{WAIT // 2}s",
}
_LOCK: Final = "SELECT count FROM head FOR UPDATE"
_REFUSE: Final = (
    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'a ledger is append-only'; END $$"
)
_FULL: Final = ("53100", "53200", "53400")  # what a server ran out of: disk, memory, a configured limit


def read_ledger_address(place: str) -> PostgresAddress | None:
    """The address of a ledger; None where the place is a file."""
    return PostgresAddress.read(place, what=LedgerError, where="ledger", purpose="a ledger in Postgres", fix=_FIX)


class PostgresStore(Store["psycopg.Connection[Any]"]):
    """A schema of a database."""

    def __init__(self, address: PostgresAddress) -> None:
        host, port, database = (address.parameters.get(name) or "" for name in ("host", "port", "dbname"))
        self._address, self._schema = address, address.name or _SCHEMA
        super().__init__(f"postgresql://{host}{port and f':{port}'}/{database}#{self._schema}")
        try:
            with self.reading() as sql:
                self._check(sql)
        except BaseException:
            self.close()
            raise

    def _check(self, sql: PostgresStatements) -> None:
        """Refuse a schema that holds no ledger of this format."""
        if not sql.rows("SELECT 1 FROM pg_catalog.pg_class WHERE oid = to_regclass('head')"):
            raise NoLedger(self.place)
        ((version,),) = sql.rows("SELECT format FROM head")
        if version != FORMAT:
            raise unknown_format(self.place, version)

    @classmethod
    def create(cls, address: PostgresAddress, first: Entry) -> PostgresStore:
        """Make the schema of a ledger with its first entry, in one transaction."""
        from psycopg import sql

        name = sql.Identifier(address.name or _SCHEMA)
        with _connection(address) as connection, _explained(connection):
            found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [address.name or _SCHEMA])
            if found.fetchone():
                problem = f"the database has a schema {address.name or _SCHEMA!r} already"
                raise LedgerError("ledger", problem, "open it, or name another schema after the # of the address")
            connection.execute("BEGIN")
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
            connection.execute(sql.SQL("SET LOCAL search_path TO {}").format(name))
            for statement in (*tables(integer="BIGINT"), _REFUSE, *_refusals()):
                connection.execute(statement)
            begin(PostgresStatements(connection), first)
            _commit(connection)
        return cls(address)

    @contextmanager
    def writing(self) -> Iterator[PostgresStatements]:
        """Lock the head, work, commit; requests to stop wait until it is decided."""
        with (
            undivided(),
            self._begun("BEGIN ISOLATION LEVEL READ COMMITTED", "SELECT count FROM head FOR UPDATE") as sql,
        ):
            yield sql

    @contextmanager
    def reading(self) -> Iterator[PostgresStatements]:
        """One state of the database."""
        with self._begun("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as sql:
            yield sql

    @contextmanager
    def _begun(self, *first: str) -> Iterator[PostgresStatements]:
        with self._connected() as connection:
            connection = self._begin(connection, first)
            with _explained(connection):
                try:
                    yield PostgresStatements(connection)
                    _commit(connection)
                except BaseException:
                    _roll_back(connection)
                    raise

    def _begin(self, connection: psycopg.Connection[Any], first: tuple[str, ...]) -> psycopg.Connection[Any]:
        """Begin; a connection that was lost meanwhile is replaced once, since nothing has been done yet."""
        import psycopg

        for is_last in (False, True):
            try:
                for statement in first:
                    connection.execute(statement)
                break
            except psycopg.Error as problem:
                if is_last or not connection.closed:
                    _roll_back(connection)
                    raise _described(connection, problem) from None
                self._connection = connection = self._connect()
        return connection

    def _connect(self) -> psycopg.Connection[Any]:
        from psycopg import sql

        connection = self._address.connect(LedgerUnavailable, "ledger")
        try:
            connection.autocommit = True
            with _explained(connection):
                for setting, value in _SETTINGS.items():
                    connection.execute("SELECT set_config(%s, %s, false)", [setting, value])
                connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(self._schema)))
        except BaseException:
            connection.close()
            raise
        return connection

    def _disconnect(self, connection: psycopg.Connection[Any]) -> None:
        connection.close()


class PostgresStatements:
    """SQL of one transaction."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: Any) -> list[Row]:
        """What a query finds."""
        return self._run(statement, values).fetchall()

    def change(self, statement: str, *values: Any) -> int:
        """How many rows a statement changed."""
        return self._run(statement, values).rowcount

    def field(self, column: str, name: str) -> str:
        """The text that a column of JSON has under a name."""
        return f"({column}::json ->> '{name}')"

    def _run(self, statement: str, values: tuple[Any, ...]) -> psycopg.Cursor[Any]:
        own = statement.replace("?", "%s")
        return self._connection.execute(own, values)


@contextmanager
def _connection(address: PostgresAddress) -> Iterator[psycopg.Connection[Any]]:
    connection = address.connect(LedgerUnavailable, "ledger")
    connection.autocommit = True
    try:
        yield connection
    finally:
        connection.close()


def _refusals() -> Iterator[str]:
    """Triggers that refuse to change or remove what happened."""
    for table, refused in KEPT.items():
        for what in refused:
            yield f"CREATE TRIGGER no_{what.lower()} BEFORE {what} ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()"
        yield f"CREATE TRIGGER no_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refuse()"


def _commit(connection: psycopg.Connection[Any]) -> None:
    """Commit; a transaction that had failed would only be undone, which the server does not call an error."""
    if connection.execute("COMMIT").statusmessage != "COMMIT":
        raise LedgerError("ledger", f"the Postgres server undid the transaction; {UNCHANGED}", "try again")


def _roll_back(connection: psycopg.Connection[Any]) -> None:
    import psycopg

    with suppress(psycopg.Error):  # a connection that was lost has undone it
        connection.execute("ROLLBACK")


@contextmanager
def _explained(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """What psycopg raises, as an error that says what to do."""
    import psycopg

    try:
        yield
    except psycopg.Error as problem:
        raise _described(connection, problem) from None


def _described(connection: psycopg.Connection[Any], problem: psycopg.Error) -> LedgerError:
    from psycopg import errors

    if isinstance(problem, errors.LockNotAvailable):
        told = f"another process has held the ledger for more than {WAIT} seconds; {UNCHANGED}"
        return LedgerUnavailable("ledger", told, "wait for it or end it, then try again")
    if isinstance(problem, errors.InsufficientPrivilege):
        told = f"this user may not read or write the ledger; {UNCHANGED}"
        return LedgerError("ledger", told, "grant the user what docs/ledger.md lists")
    if isinstance(problem, errors.ReadOnlySqlTransaction):
        told = f"the Postgres server is read-only; {UNCHANGED}"
        return LedgerUnavailable("ledger", told, "name the server that can be written")
    if problem.sqlstate in _FULL:
        return LedgerUnavailable("ledger", f"the Postgres server is full; {UNCHANGED}", "ask its owner for more room")
    if connection.closed:
        told = "the connection to the Postgres server was lost, and it is not known whether anything was charged"
        return LedgerUnavailable("ledger", told, AGAIN)
    told = f"the Postgres server refuses a change ({problem.sqlstate}); {UNCHANGED}"
    return LedgerError("ledger", told, "run `hushcube ledger verify`: another program may have changed the tables")
