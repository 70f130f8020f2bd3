"""Addresses of Postgres, for data and for ledgers: postgresql://[user@]host[:port]/database#name

Credentials come from the environment only, as for every program of Postgres: PGUSER, PGPASSWORD, PGPASSFILE,
a password file or a service file. What the driver or the server says is never repeated: it quotes addresses and data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from hushcube.errors import BadInput, MissingDependency

if TYPE_CHECKING:
    import psycopg

_SCHEMES: Final = ("postgres://", "postgresql://")
_SECRETS: Final = ("password", "sslpassword", "oauth_client_secret")
_DEFAULTS: Final = {
    "application_name": "hushcube",
    "client_encoding": "UTF8",
    "connect_timeout": "10",
    # A peer that vanished in the middle of a query is noticed within a minute.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}


@dataclass(frozen=True)
class PostgresAddress:
    """Where a server is, and the name of something in its database, which may be empty."""

    parameters: Mapping[str, Any] = field(repr=False)
    name: str

    @classmethod
    def read(cls, text: str, *, what: type[BadInput], where: str, purpose: str, fix: str) -> PostgresAddress | None:
        """The parts of an address; None where the text is none. Errors are `what`, about the field `where`."""
        scheme, mark, rest = text.partition("://")
        text = scheme.lower() + mark + rest
        if not text.startswith(_SCHEMES):
            return None
        address, _, name = text.partition("#")
        try:
            from psycopg import ProgrammingError
            from psycopg.conninfo import conninfo_to_dict
        except ImportError:
            raise MissingDependency("psycopg", purpose, "postgres") from None
        try:
            parameters = conninfo_to_dict(address)
        except (ProgrammingError, UnicodeError):  # its message quotes the address, with any password in it
            raise what(where, "is not an address of Postgres", fix) from None
        if any(parameters.get(secret) for secret in _SECRETS):
            instead = "take it out of the address and set PGPASSWORD, or write it to the password file ~/.pgpass"
            raise what(where, "the address holds a password, which others can read there", instead)
        return cls({**_DEFAULTS, **parameters}, name)

    def connect(self, what: type[BadInput], where: str) -> psycopg.Connection[Any]:
        """A connection to the server."""
        import psycopg

        try:
            return psycopg.connect(**self.parameters)
        except psycopg.Error as error:
            raise _no_connection(error, what, where) from None
        except (OSError, UnicodeError):
            raise _no_connection(None, what, where) from None


def _no_connection(error: psycopg.Error | None, what: type[BadInput], where: str) -> BadInput:
    """Why there is no connection, as far as the driver's state tells it: never the server's words."""
    state = None if error is None else error.pgconn
    if state is not None and (state.needs_password or state.used_password):
        problem = "the Postgres server refuses the user, the password or the database"
        return what(where, problem, "set PGUSER, PGPASSWORD and PGDATABASE, or write the password to ~/.pgpass")
    fix = "check host, port, database and user in the address or in PGHOST, PGPORT, PGDATABASE and PGUSER"
    return what(where, "there is no connection to the Postgres server", f"{fix}, and that the server runs")
