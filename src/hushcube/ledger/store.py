"""What a database must do for a ledger, and the tables that are in it.

Entries are the truth, and only ever added. Accounts and charges are kept beside them for two reasons: the database
itself refuses what exceeds a total, by a CHECK that no program can forget, and what is left is known without reading
everything. `verify` recomputes both from the entries.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Generic, Protocol, TypeVar

from hushcube import interrupts
from hushcube.errors import LedgerError
from hushcube.ledger.chain import Entry

Connection = TypeVar("Connection")

FORMAT: Final = 1
WAIT: Final = 60
"""Seconds to wait for others who write."""
UNCHANGED: Final = "the ledger is as it was"
AGAIN: Final = "run the same command again with the same key: it does not charge twice"

TABLES: Final = (
    """CREATE TABLE head (
         one {integer} PRIMARY KEY CHECK (one = 1),
         format {integer} NOT NULL,
         count {integer} NOT NULL CHECK (count >= 1),
         hash TEXT NOT NULL
       ){strict}""",
    """CREATE TABLE entries (
         number {integer} PRIMARY KEY CHECK (number >= 1),
         time TEXT NOT NULL,
         kind TEXT NOT NULL CHECK (kind IN ('ledger', 'account', 'charge', 'begin', 'publish', 'abandon', 'lock')),
         account TEXT NOT NULL,
         body TEXT NOT NULL,
         previous TEXT NOT NULL UNIQUE,
         hash TEXT NOT NULL UNIQUE
       ){strict}""",
    """CREATE TABLE accounts (
         name TEXT PRIMARY KEY,
         entry {integer} NOT NULL UNIQUE REFERENCES entries (number),
         total {integer} NOT NULL CHECK (total >= 1),
         own {integer} NOT NULL CHECK (own >= 0),
         parts {integer} NOT NULL CHECK (parts >= 0),
         locked {integer} NOT NULL CHECK (locked IN (0, 1)),
         source TEXT,
         parent TEXT REFERENCES accounts (name),
         part TEXT,
         UNIQUE (parent, part),
         CHECK (own + parts <= total),
         CHECK ((parent IS NULL) = (part IS NULL))
       ){strict}""",
    """CREATE TABLE charges (
         key TEXT PRIMARY KEY,
         account TEXT NOT NULL REFERENCES accounts (name),
         intent {integer} NOT NULL UNIQUE REFERENCES entries (number),
         begun {integer} UNIQUE REFERENCES entries (number),
         outcome {integer} UNIQUE REFERENCES entries (number),
         amount {integer} NOT NULL CHECK (amount >= 1),
         spent {integer} NOT NULL CHECK (spent >= 1 AND spent <= amount),
         state TEXT NOT NULL CHECK (state IN ('unfinished', 'published', 'abandoned')),
         CHECK ((outcome IS NULL) = (state = 'unfinished'))
       ){strict}""",
    "CREATE INDEX charges_of ON charges (account)",
    "CREATE INDEX entries_of ON entries (account)",
)
KEPT: Final = {"head": ("DELETE",), "entries": ("UPDATE", "DELETE"), "accounts": ("DELETE",), "charges": ("DELETE",)}
"""What is refused on each table: nothing that happened is changed or removed."""

Row = tuple[Any, ...]


class Statements(Protocol):
    """A transaction in which SQL is run, with `?` for values."""

    def rows(self, statement: str, *values: Any) -> list[Row]:
        """What a query finds."""

    def change(self, statement: str, *values: Any) -> int:
        """How many rows a statement changed."""

    def field(self, column: str, name: str) -> str:
        """In this database's words: the text that a column of JSON has under a name."""


class Store(ABC, Generic[Connection]):
    """A database that holds a ledger. It may be used by several threads; each process has a connection of its own."""

    place: str
    """Where it is, as it may be shown."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._process = os.getpid()
        self._inherited: list[Connection | None] = []

    @abstractmethod
    def writing(self) -> AbstractContextManager[Statements]:
        """A transaction that no other writer overlaps; durable when it ends without an exception, else undone."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Statements]:
        """A transaction that sees one state."""

    @abstractmethod
    def _connect(self) -> Connection:
        """A new connection."""

    @abstractmethod
    def _disconnect(self, connection: Connection) -> None:
        """Close a connection."""

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """The connection of this process, for one thread at a time; none survives a fork."""
        if self._process != os.getpid():
            self._inherited.append(self._connection)  # never closed here: it is the parent's
            self._connection, self._process, self._lock = None, os.getpid(), threading.RLock()
        with self._lock:
            if self._connection is None:
                self._connection = self._connect()
            yield self._connection

    def close(self) -> None:
        """Let go of it; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._disconnect(self._connection)
            self._connection = None


@contextmanager
def undivided() -> Iterator[None]:
    """Requests to stop wait; they come to the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with interrupts.held():
        yield


def unknown_format(place: str, version: int) -> LedgerError:
    """Why a ledger of another version is not opened."""
    problem = f"{place!r} has format {version}, which this version of hushcube does not know"
    return LedgerError("ledger", problem, "use the version of hushcube that wrote it, or a newer one")


def tables(*, integer: str, strict: str = "") -> Sequence[str]:
    """The statements that make the tables of a new ledger, in a database's own words."""
    return [statement.format(integer=integer, strict=strict) for statement in TABLES]


def begin(sql: Statements, first: Entry) -> None:
    """Write the first entry into new tables."""
    sql.change("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", *first.row)
    sql.change("INSERT INTO head VALUES (1, ?, ?, ?)", FORMAT, first.number, first.hash)
