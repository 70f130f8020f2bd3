"""A ledger in a file: what SQLite is told, what a file must be, and what each failure says."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import threading
from contextlib import suppress

import pytest

from hushcube import interrupts
from hushcube.errors import HushcubeError, LedgerError, LedgerUnavailable, NoLedger, OutputError
from hushcube.ledger import sqlite
from hushcube.ledger.ledger import Ledger
from read_only import read_only


@pytest.fixture
def place(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(place):
    with Ledger.create(place) as made:
        made.create_account("people", epsilon=1, neighbours="add-remove")
        yield made


def charge(ledger, key, amount="0.1", what=""):
    return ledger.charge("people", amount, key=key, plan_digest="plan", data="people.csv", what=what)


def test_what_sqlite_is_told(ledger):
    with ledger._store._connected() as connection:
        told = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "trusted_schema", "recursive_triggers")
        }
    assert told == {
        "journal_mode": "wal",
        "synchronous": 2,  # FULL
        "foreign_keys": 1,
        "trusted_schema": 0,
        "recursive_triggers": 1,
    }


def test_the_file_is_its_owners_alone(ledger, place):
    before = os.umask(0)
    try:
        charge(ledger, "k")
    finally:
        os.umask(before)
    found = {path.name: oct(path.stat().st_mode & 0o777) for path in place.parent.iterdir()}
    assert found == dict.fromkeys(["ledger.db", "ledger.db-wal", "ledger.db-shm"], "0o600")


def test_a_new_ledger_takes_no_place_that_is_taken(ledger, place, tmp_path):
    with pytest.raises(OutputError, match="ledger: the ledger exists already"):
        Ledger.create(place)
    with pytest.raises(OutputError, match="is not a folder"):
        Ledger.create(tmp_path / "none" / "ledger.db")
    with Ledger.ensure(place) as same:
        assert same.head == ledger.head
    with Ledger.ensure(tmp_path / "other.db") as other:
        assert other.head.count == 1 and other.head != ledger.head


def write(path, kind):
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        with Ledger.create(path.with_name("target.db")):
            path.symlink_to("target.db")
    elif kind in ("text", "empty"):
        path.write_text("people\n" * 300 * (kind == "text"))
    else:
        if kind == "newer":
            Ledger.create(path).close()
        with sqlite3.connect(path) as other:
            other.execute("PRAGMA user_version = 2")
            other.execute("CREATE TABLE t (x)")
        other.close()


@pytest.mark.parametrize(
    ("kind", "problem"),
    {
        "folder": "is not a file",
        "link": "is a symbolic link",
        "text": "is not a ledger",
        "empty": "is not a ledger",
        "database": "is not a ledger",
        "newer": "has format 2, which this version of hushcube does not know",
    }.items(),
)
def test_what_is_no_ledger_of_this_format_is_refused(tmp_path, kind, problem):
    write(tmp_path / "it", kind)
    before = sorted(path.name for path in tmp_path.iterdir())
    for opening in (Ledger.open, Ledger.ensure):
        with pytest.raises(LedgerError, match=problem) as refused:
            opening(tmp_path / "it")
        assert refused.value.field == "ledger" and "Fix: " in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["none.db", "none/none.db", "x" * 300, "a\0b"])
def test_a_place_without_a_ledger(tmp_path, name):
    with pytest.raises(LedgerError) as refused:
        Ledger.open(tmp_path / name)
    assert isinstance(refused.value, NoLedger) == ("none" in name)


def test_a_file_that_was_replaced_or_removed_is_not_written(ledger, place, tmp_path):
    charge(ledger, "k")
    place.rename(tmp_path / "away")
    for what in (lambda: charge(ledger, "l"), ledger.accounts):
        with pytest.raises(LedgerError, match="was removed or replaced while it was open; the ledger is as it was"):
            what()
    Ledger.create(place).close()
    with pytest.raises(LedgerError, match="was removed or replaced"):
        charge(ledger, "l")


def test_another_process_that_holds_it_too_long(ledger, place, monkeypatch):
    monkeypatch.setattr(sqlite, "WAIT", 0.05)
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Ledger.open(place) as waiting:
        assert waiting.account("people").left == 1  # readers do not wait
        with pytest.raises(LedgerUnavailable, match=r"another process has held .* the ledger is as it was"):
            charge(waiting, "k")
        other.execute("ROLLBACK")
        assert charge(waiting, "k").state == "unfinished"
    other.close()


def test_a_full_disk_charges_nothing(ledger):
    with ledger._store._connected() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LedgerUnavailable, match=r"the disk of .* is full; the ledger is as it was"):
        for number in range(1000):
            charge(ledger, f"key {number}", "0.0001", what="x" * 400)
    assert ledger.account("people").spent == sum(c.spent for c in ledger.charges()) and ledger.verify().holds
    with ledger._store._connected() as connection:
        connection.execute("PRAGMA max_page_count = 100000")
    charge(ledger, "again")


def forked(work):
    """The words of an error that a process of its own meets, and its limits with it."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        with suppress(BaseException):
            try:
                work()
                os.write(writing, b"done")
            except HushcubeError as problem:
                os.write(writing, str(problem).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as told:
        return told.read()


def test_a_file_that_may_not_grow(place, ledger):
    def work():
        resource.setrlimit(resource.RLIMIT_FSIZE, (place.stat().st_size, place.stat().st_size))
        with Ledger.open(place) as limited:
            for number in range(50):
                charge(limited, f"key {number}", "0.0001", what="x" * 400)

    told = forked(work)
    assert "failed or is full" in told and "with the same key: it does not charge twice" in told
    assert ledger.verify().holds and ledger.account("people").spent == sum(c.spent for c in ledger.charges())


@pytest.fixture
def mounted(tmp_path):
    """A small file system of its own, and how to make it read-only."""

    def mount(*options):
        command = ["mount", *options, str(tmp_path / "disk")]
        if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("no file system can be mounted here")

    (tmp_path / "disk").mkdir()
    mount("-t", "tmpfs", "-o", "size=200k", "none")
    yield tmp_path / "disk", mount
    subprocess.run(["umount", str(tmp_path / "disk")], check=True)


def test_a_disk_that_is_full_and_one_that_is_read_only(mounted):
    disk, mount = mounted
    with Ledger.create(disk / "ledger.db") as ledger:
        ledger.create_account("people", epsilon=1, neighbours="add-remove")
        with pytest.raises(LedgerUnavailable, match="full"):
            for number in range(1000):
                charge(ledger, f"key {number}", "0.0001", what="x" * 400)
        assert ledger.account("people").spent == sum(c.spent for c in ledger.charges()) > 0 and ledger.verify().holds
    mount("-o", "remount,ro")
    for work in (lambda: charge(Ledger.open(disk / "ledger.db"), "k"), lambda: Ledger.create(disk / "new.db")):
        with pytest.raises((LedgerUnavailable, OutputError), match="cannot be written"):
            work()
    assert [path.name for path in disk.iterdir()] == ["ledger.db"]


@pytest.fixture
def seen(ledger, place, tmp_path):
    """The file of the ledger where nobody can write."""
    with read_only(place.parent, tmp_path.with_name(f"{tmp_path.name}-seen")) as folder:
        yield folder / place.name


@pytest.fixture
def closed(ledger):
    """Nobody has the ledger open, so that there is no log."""
    charge(ledger, "k")
    ledger.close()


def is_refused(ledger):
    with pytest.raises(LedgerUnavailable, match=r"or its folder cannot be written; the ledger is as it was"):
        charge(ledger, "refused")
    return True


def test_a_ledger_is_read_where_nobody_can_write(ledger, closed, seen):
    before = sorted(path.name for path in seen.parent.iterdir())
    with Ledger.open(seen) as reader:
        assert reader.account("people").spent == reader.charges()[0].spent and reader.verify().holds
        assert len(reader.history()) == 3 and is_refused(reader)
        charge(ledger, "l")  # whoever can write goes on, and readers see it
        assert len(reader.history()) == 4 and is_refused(reader)
        ledger.close()
        assert len(reader.history()) == 4 and reader.verify().holds and is_refused(reader)
    assert sorted(path.name for path in seen.parent.iterdir()) == before and len(ledger.charges()) == 2


def test_what_changes_while_it_is_read_without_locks_is_noticed(ledger, closed, seen):
    reader = Ledger.open(seen)
    with pytest.raises(LedgerUnavailable, match="was changed while it was read"), reader._store.reading():
        charge(ledger, "l")
        ledger.close()  # which writes the log into the file
    assert len(reader.history()) == 4


@pytest.mark.parametrize("index", [True, False], ids=["with its index", "without"])
def test_a_log_that_somebody_left_behind(ledger, place, tmp_path, index):
    """A copy of an open ledger: entries in the log are read, or missed aloud, and never left out."""
    charge(ledger, "k")
    (copied := tmp_path / "copied").mkdir()
    for name in ("ledger.db", "ledger.db-wal", *["ledger.db-shm"] * index):
        shutil.copy(place.with_name(name), copied / name)
    with read_only(copied, tmp_path / "seen") as folder:
        if index:
            with Ledger.open(folder / "ledger.db") as reader:
                assert reader.history() == ledger.history() and is_refused(reader)
        else:
            with pytest.raises(LedgerUnavailable, match=r"are in its log 'ledger\.db-wal'.* copy both files"):
                Ledger.open(folder / "ledger.db")


def test_a_fork_has_a_connection_of_its_own(ledger, place):
    charge(ledger, "before")
    assert forked(lambda: charge(ledger, "in the child")) == "done"
    charge(ledger, "after")
    assert [c.key for c in ledger.charges()] == ["before", "in the child", "after"] and ledger.verify().holds


def test_a_closed_ledger_is_opened_again(ledger):
    ledger.close()
    ledger.close()
    assert charge(ledger, "k").state == "unfinished"


def test_a_request_to_stop_waits_for_the_commit(ledger, listening):
    with pytest.raises(interrupts.Interrupted), ledger._store.writing() as sql:
        os.kill(os.getpid(), signal.SIGINT)
        assert sql.rows("SELECT 1") == [(1,)]
        raise interrupts.Interrupted  # whoever raises it inside gets all of it undone
    done = []
    thread = threading.Thread(target=lambda: done.append(charge(ledger, "k")))
    thread.start()
    thread.join()
    assert len(done) == 1 and len(ledger.history()) == 3
