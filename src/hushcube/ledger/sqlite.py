"""A ledger in one file: SQLite with a write-ahead log that is forced to the disk at every commit.

Writers begin with BEGIN IMMEDIATE, so that only one of them is between its first look and its commit. The file is its
owner's alone (mode 0600), and so are the log and the index beside it, which SQLite makes like it. A ledger is made
aside and renamed: it is there whole or not at all. SQLite needs locks that work: not on network file systems.

Where the file or its folder cannot be written it is read, and nothing is made beside it:

    write   both can be written
    follow  there is a log: it is read with the index that others have made
    still   there is no log: the file is all there is; what changes while it is read is noticed afterwards
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from hushcube.durable import check_file, new_file
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

_OURS: Final = 0x48434C47
"""`HCLG`: what the header of the file says it is, beside the number of the format."""
_SETTINGS: Final = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA recursive_triggers = ON",  # REPLACE runs what refuses to delete
)


class _Way(Enum):
    """How a file is opened, in the words of SQLite's addresses."""

    WRITE = "mode=rw"
    FOLLOW = "mode=ro&readonly_shm=1"
    STILL = "mode=ro&immutable=1"


class SqliteStore(Store[sqlite3.Connection]):
    """A file."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path.absolute()
        self._file: os.stat_result | None = None
        self._way = _Way.WRITE
        with self._current():
            pass

    @classmethod
    def create(cls, path: Path, first: Entry) -> SqliteStore:
        """Make the file of a ledger with its first entry."""
        check_file(path, "ledger", "ledger", "ledgers")
        with new_file(path, "ledger") as file:
            file.chmod(0o600)
            with _explained(str(path)):
                connection = sqlite3.connect(file, isolation_level=None)
                try:
                    for statement in (
                        "PRAGMA journal_mode = MEMORY",  # all of it must be in the file that is renamed, not in a log
                        f"PRAGMA application_id = {_OURS}",
                        f"PRAGMA user_version = {FORMAT}",
                        "BEGIN IMMEDIATE",
                        *tables(integer="INTEGER", strict=" STRICT"),
                        *_refusals(),
                    ):
                        connection.execute(statement)
                    begin(SqliteStatements(connection), first)
                    connection.execute("COMMIT")
                    connection.execute("PRAGMA journal_mode = WAL")
                finally:
                    connection.close()
        return cls(path)

    @contextmanager
    def writing(self) -> Iterator[SqliteStatements]:
        """BEGIN IMMEDIATE ... COMMIT; requests to stop wait until it is decided."""
        with undivided(), _explained(self.place), self._current() as connection:
            if self._way is not _Way.WRITE:
                raise _not_written(self.place)
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._check_place()
                yield SqliteStatements(connection)
                connection.execute("COMMIT")
            except BaseException:
                _roll_back(connection)
                raise

    @contextmanager
    def reading(self) -> Iterator[SqliteStatements]:
        """One state of the file."""
        with _explained(self.place), self._current() as connection:
            self._check_place()
            connection.execute("BEGIN")
            try:
                yield SqliteStatements(connection)
            finally:
                _roll_back(connection)
                self._check_still()

    @contextmanager
    def _current(self) -> Iterator[sqlite3.Connection]:
        """The connection; one that cannot write is for one look, as it would not learn what changes."""
        with self._connected() as connection:
            try:
                yield connection
            finally:
                if self._way is not _Way.WRITE:
                    self.close()

    def _connect(self) -> sqlite3.Connection:
        self._file = _checked(self.path, self.place)
        self._way = _way_to(self.path, self.place)
        return _open(self.path, self.place, self._way)

    def _disconnect(self, connection: sqlite3.Connection) -> None:
        connection.close()

    def _check_place(self) -> None:
        """Refuse to write to a file that was removed or replaced: nobody would ever read it."""
        with suppress(OSError):
            if self._file is not None and os.path.samestat(self._file, self.path.lstat()):
                return
        problem = f"{self.place!r} was removed or replaced while it was open; {UNCHANGED}"
        raise LedgerError("ledger", problem, "bring back the file with the latest entries, and open it again")

    def _check_still(self) -> None:
        """Refuse what was read without locks while somebody wrote: it may be of two states."""
        if self._way is not _Way.STILL or self._file is None:
            return
        with suppress(FileNotFoundError):  # what was removed is still whole for whoever has opened it
            now = self.path.lstat()
            if (now.st_mtime_ns, now.st_size) != (self._file.st_mtime_ns, self._file.st_size):
                raise LedgerUnavailable("ledger", f"{self.place!r} was changed while it was read", "read it again")


class SqliteStatements:
    """SQL of one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: str, *values: Any) -> list[Row]:
        """What a query finds."""
        return self._connection.execute(statement, values).fetchall()

    def change(self, statement: str, *values: Any) -> int:
        """How many rows a statement changed."""
        return self._connection.execute(statement, values).rowcount

    def field(self, column: str, name: str) -> str:
        """The text that a column of JSON has under a name."""
        return f"json_extract({column}, '$.{name}')"


def _way_to(path: Path, place: str) -> _Way:
    """How the file can be opened here."""
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return _Way.WRITE
    if not os.access(path, os.R_OK):
        raise LedgerUnavailable("ledger", f"{place!r} cannot be read", "ask its owner for the permission")
    log, index = (path.with_name(f"{path.name}-{what}") for what in ("wal", "shm"))
    if not _size(log):
        return _Way.STILL
    if not index.exists():
        told = f"the latest entries of {place!r} are in its log {log.name!r}, which only a writer can open"
        raise LedgerUnavailable("ledger", told, "copy both files to a folder that you can write, and name the copy")
    return _Way.FOLLOW


def _size(path: Path) -> int:
    """Bytes of a file, none where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _open(path: Path, place: str, way: _Way) -> sqlite3.Connection:
    """A connection to a file that is a ledger of this format."""
    with _explained(place):
        address = f"file:{quote(str(path))}?{way.value}"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=WAIT)
        try:
            for setting in _SETTINGS:
                connection.execute(setting)
            (ours,), (version,) = (
                connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
            )
            if ours != _OURS:
                raise _no_ledger(place)
            if version != FORMAT:
                raise unknown_format(place, version)
            if way is _Way.WRITE:
                connection.execute("PRAGMA journal_mode = WAL")
        except BaseException:
            connection.close()
            raise
    return connection


def _checked(path: Path, place: str) -> os.stat_result:
    """What is at the place: a file that is no link, which would let others choose where charges go."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise NoLedger(place) from None
    except (OSError, ValueError):
        raise LedgerError("ledger", f"{place[:200]!r} cannot be reached", "check the path and permissions") from None
    if stat.S_ISLNK(found.st_mode):
        raise LedgerError("ledger", f"{place!r} is a symbolic link", "name the file itself")
    if not stat.S_ISREG(found.st_mode):
        raise LedgerError("ledger", f"{place!r} is not a file", "name the file of a ledger")
    return found


def _no_ledger(place: str) -> LedgerError:
    return LedgerError("ledger", f"{place!r} is not a ledger", "name the file that `hushcube ledger create` made")


def _not_written(place: str) -> LedgerUnavailable:
    told = f"{place!r} or its folder cannot be written; {UNCHANGED}"
    return LedgerUnavailable("ledger", told, "fix the permissions, or use a file system that can be written")


def _refusals() -> Iterator[str]:
    """Triggers that refuse to change or remove what happened."""
    for table, refused in KEPT.items():
        for what in refused:
            yield (
                f"CREATE TRIGGER {table}_{what.lower()} BEFORE {what} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
            )


def _roll_back(connection: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # a transaction that failed may be gone already
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def _explained(place: str) -> Iterator[None]:
    """What SQLite raises, as an error that says what to do."""
    try:
        yield
    except sqlite3.Error as problem:
        raise _described(place, problem) from None


def _described(place: str, problem: sqlite3.Error) -> LedgerError:
    code = getattr(problem, "sqlite_errorcode", 0) or 0
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            problem_text = f"another process has held {place!r} for more than {WAIT} seconds"
            return LedgerUnavailable("ledger", f"{problem_text}; {UNCHANGED}", "wait for it or end it, then try again")
        case sqlite3.SQLITE_FULL:
            return LedgerUnavailable(
                "ledger", f"the disk of {place!r} is full; {UNCHANGED}", "make room, then try again"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return _not_written(place)
        case sqlite3.SQLITE_NOTADB:
            return _no_ledger(place)
        case sqlite3.SQLITE_IOERR:
            told = f"the disk of {place!r} failed or is full ({problem.sqlite_errorname.lower()})"
            return LedgerUnavailable("ledger", told, f"look at the disk, then {AGAIN}")
        case _:
            told = f"{place!r} is damaged or was changed by another program"
            return LedgerError("ledger", told, "run `hushcube ledger verify`, and bring back a copy that holds")
