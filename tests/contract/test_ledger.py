"""One suite for both stores of a ledger: a file of SQLite, and a schema of a real Postgres server."""

from __future__ import annotations

import itertools
import threading
from fractions import Fraction

import pytest

from hushcube.errors import LedgerError, LedgerUnavailable, NoLedger, NotEnoughBudget, PrivacyError, UnknownAccount
from hushcube.ledger import amounts, records
from hushcube.ledger.charge import DataIdentity
from hushcube.ledger.checking import verify_snapshot
from hushcube.ledger.ledger import Ledger
from hushcube.ledger.snapshot import Snapshot
from ledger_clients import granted
from postgres_server import PASSWORD, Server

PURE = {"epsilon": 4, "neighbours": "add-remove"}
PEOPLE = "/data/people.csv"
ONE = "/1.csv"
COUNTED = itertools.count()


@pytest.fixture(scope="module")
def server():
    started = Server()
    yield started
    started.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.service)])
def place(request, tmp_path, monkeypatch):
    """Where a new ledger can be."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return request.getfixturevalue("server").address(f"ledger_{next(COUNTED)}")


@pytest.fixture
def ledger(place):
    with Ledger.create(place) as made:
        yield made


def charge(ledger, account="people", amount="0.5", **given):
    given = {"key": f"key {next(COUNTED)}", "plan_digest": "plan", "data": "people.csv", "what": "2-way"} | given
    return ledger.charge(account, amount, **given)


def problems(ledger, **options):
    return [problem for check in ledger.verify(**options).checks for problem in check.problems]


# --------------------------------------------------------------------------------------------------------- accounts


def test_an_account_knows_its_guarantee_and_what_is_left(ledger, place):
    made = ledger.create_account("people", **PURE, unit="person", rows_per_person=3, source=PEOPLE)
    assert (made.currency, made.total, made.spent, made.left) == ("epsilon", 4, 0, 4)
    assert (made.unit, made.source, made.privacy.rows_per_person, made.locked) == ("person", PEOPLE, 3, False)
    with Ledger.open(place) as again:
        assert again.account("people") == made and again.accounts() == [made]


@pytest.mark.parametrize("given", [{"rho": "0.7"}, {"epsilon": 1, "delta": "1e-6"}], ids=["rho", "delta"])
def test_accounts_of_other_guarantees_count_rho_rounded_down(ledger, given):
    from hushcube.costs.calibrate import zcdp_delta

    made = ledger.create_account("people", **given, neighbours="replace-one")
    assert made.currency == "rho" and (made.total * amounts.UNITS).denominator == 1
    if "rho" in given:
        assert made.total == Fraction("0.7")
    else:
        assert zcdp_delta(float(made.total), 1.0) <= 1e-6 < zcdp_delta(float(made.total) * 1.001, 1.0)


def test_amounts_are_rounded_against_ourselves(ledger):
    ledger.create_account("people", epsilon=Fraction(1, 3), neighbours="add-remove")
    assert ledger.account("people").total == Fraction(333_333_333_333_333, 10**15)
    assert charge(ledger, amount=Fraction(1, 7)).amount == Fraction(142_857_142_857_143, 10**15)


def test_what_is_wrong_with_an_account_is_refused(ledger):
    ledger.create_account("people", **PURE)
    with pytest.raises(LedgerError, match="there is an account 'people' already"):
        ledger.create_account("people", **PURE)
    with pytest.raises(PrivacyError, match="neighbours: is not given"):
        ledger.create_account("others", epsilon=1)
    for name in ("", " ", "x" * 501, "a\nb", 7):
        with pytest.raises(LedgerError, match=r"name: .* is not a text"):
            ledger.create_account(name, **PURE)
    with pytest.raises(UnknownAccount, match="there is no account 'nobody'"):
        ledger.account("nobody")
    assert len(ledger.history()) == 2 and not problems(ledger)


# ---------------------------------------------------------------------------------------------------------- charges


def test_a_charge_is_there_until_it_is_published(ledger, place):
    ledger.create_account("people", **PURE)
    made = charge(ledger, key="k", data=DataIdentity("people.csv", "d1"))
    assert (made.state, made.amount, made.spent, made.what) == ("unfinished", Fraction(1, 2), Fraction(1, 2), "2-way")
    assert ledger.unfinished() == [made] and "same key" in made.advice
    with Ledger.open(place) as again:
        assert again.find_charge("k") == made and again.account("people").left == Fraction(7, 2)
        done = again.publish("k", bundle_digest="b", place="published")
    assert (done.state, done.bundle_digest, done.place, done.advice) == ("published", "b", "published", None)
    assert ledger.charges("people") == [done] and ledger.unfinished() == []
    assert ledger.publish(done, bundle_digest="b", place="elsewhere") == done
    with pytest.raises(LedgerError, match="'k' is published already"):
        ledger.publish(done, bundle_digest="another", place="published")
    assert [entry.kind for entry in ledger.history("people")] == ["account", "charge", "publish"]
    assert not problems(ledger)


def test_the_same_key_never_charges_twice(ledger):
    ledger.create_account("people", **PURE)
    ledger.create_account("others", **PURE)
    first = charge(ledger, key="k")
    assert charge(ledger, key="k") == first and ledger.account("people").spent == Fraction(1, 2)
    for name, other in {"plan_digest": "p2", "data": "b.csv", "amount": 1, "account": "others"}.items():
        with pytest.raises(LedgerError, match="key: 'k' charged already, for another"):
            charge(ledger, key="k", **{name: other})
    assert [a.spent for a in ledger.accounts()] == [Fraction(1, 2), 0]


def test_what_is_abandoned_stays_charged(ledger):
    ledger.create_account("people", **PURE)
    given_up = ledger.abandon(charge(ledger, key="k"), "the machine is gone")
    assert (given_up.state, given_up.why) == ("abandoned", "the machine is gone")
    assert ledger.account("people").spent == Fraction(1, 2) and ledger.unfinished() == []
    assert ledger.abandon("k", "again") == given_up
    with pytest.raises(LedgerError, match="'k' is abandoned already"):
        ledger.publish("k", bundle_digest="b", place="p")
    with pytest.raises(LedgerError, match="there is no charge 'none'"):
        ledger.abandon("none", "")
    assert not problems(ledger)


def test_a_total_can_be_spent_to_the_last_unit_and_no_further(ledger):
    ledger.create_account("people", **PURE)
    charge(ledger, amount=4 - Fraction(1, 10**15))
    with pytest.raises(NotEnoughBudget, match="'people' has 1e-15 epsilon left, and this costs 2e-15") as refused:
        charge(ledger, amount=Fraction(2, 10**15))
    assert (refused.value.left, refused.value.requested) == (Fraction(1, 10**15), Fraction(2, 10**15))
    charge(ledger, amount=Fraction(1, 10**20))
    assert ledger.account("people").left == 0
    with pytest.raises(NotEnoughBudget):
        charge(ledger, amount=10**9)
    for amount in (0, -1):
        with pytest.raises(LedgerError, match="amount: is not above 0"):
            charge(ledger, amount=amount)
    assert not problems(ledger)


def test_a_locked_account_stays_closed(ledger):
    ledger.create_account("people", **PURE)
    before = charge(ledger)
    assert ledger.lock("people").locked and ledger.lock("people").locked
    with pytest.raises(LedgerError, match="account: 'people' is locked"):
        charge(ledger)
    assert ledger.publish(before, bundle_digest="b", place="p").state == "published"
    assert [entry.kind for entry in ledger.history()].count("lock") == 1 and not problems(ledger)


def test_other_data_is_refused(ledger):
    ledger.create_account("declared", **PURE, source=PEOPLE, digest="d1")
    ledger.create_account("open", **PURE)
    with pytest.raises(
        LedgerError, match=r"data: the account 'declared' is for '/data/people\.csv', and this is 'b.csv'"
    ):
        charge(ledger, "declared", data="b.csv")
    for digest in (None, "d2"):
        with pytest.raises(LedgerError, match="data: the account 'declared' is bound to a digest"):
            charge(ledger, "declared", data=DataIdentity(PEOPLE, digest))
    charge(ledger, "declared", data=DataIdentity(PEOPLE, "d1"))
    charge(ledger, "open", data="a.csv")
    with pytest.raises(LedgerError, match=r"'open' is for 'a\.csv', and this is 'b.csv'"):
        charge(ledger, "open", data="b.csv")
    assert ledger.account("open").source == "a.csv" and not problems(ledger)


# ----------------------------------------------------------------------------------------------------------- shares


class Watched:
    """A transaction that notes how many rows each query read."""

    def __init__(self, sql):
        self.sql, self.read = sql, []

    def __getattr__(self, name):
        return getattr(self.sql, name)

    def rows(self, statement, *values):
        found = self.sql.rows(statement, *values)
        self.read.append(len(found))
        return found


def test_a_share_is_a_sum_that_the_database_forms(ledger):
    ledger.create_account("people", **PURE)
    ledger.create_account("others", **PURE)
    odd = 'd\u00e4na "x" \\ % \' ?'
    for number in range(6):
        who = (odd, "erik")[number % 2]
        charge(ledger.asked_by(who, 1), amount="0.1", key=f"{number}", what='odd "who": "erik" \0 \ud800')
    charge(ledger.asked_by(odd, 1), "others", "0.7")
    charge(ledger, amount="0.05")
    ledger.publish("0", bundle_digest="b", place="p", spent="0.025")
    ledger.abandon("1", "nobody waits for it")
    with ledger._store.reading() as sql:
        watched = Watched(sql)
        assert records.spent_by(watched, "people", odd) == amounts.rounded_up(Fraction("0.225"))
        assert watched.read == [1]
    assert ledger.spent_by("people", "erik") == Fraction("0.3") and ledger.spent_by("people", "rita") == 0
    with pytest.raises(NotEnoughBudget, match=r"has 0\.7 epsilon left"):
        charge(ledger.asked_by("erik", 1), amount="0.8")
    assert not problems(ledger)


# --------------------------------------------------------------------------------------------------------- settling


def test_an_adaptive_release_of_a_pure_account_is_settled(ledger):
    ledger.create_account("people", **PURE)
    for spent in (0, "0.6"):
        with pytest.raises(LedgerError, match="spent: is not above 0 and at most what was charged"):
            ledger.publish(charge(ledger, key=f"bad {spent}"), bundle_digest="b", place="p", spent=spent)
    done = ledger.publish(charge(ledger, key="k"), bundle_digest="b", place="p", spent="0.2")
    assert (done.amount, done.spent) == (Fraction(1, 2), Fraction(1, 5))
    assert ledger.account("people").spent == Fraction("1.2") and not problems(ledger)


def test_an_account_of_rho_is_not_settled(ledger):
    ledger.create_account("people", rho=1, neighbours="add-remove")
    with pytest.raises(LedgerError, match="spent: 'people' counts rho"):
        ledger.publish(charge(ledger, key="k"), bundle_digest="b", place="p", spent="0.2")
    assert ledger.find_charge("k").state == "unfinished" and ledger.account("people").spent == Fraction(1, 2)


# ------------------------------------------------------------------------------------------------------------ parts


def parts(ledger, number, **given):
    ledger.create_account("people", **PURE, partition="year", **given)
    names = [f"people {year}" for year in range(number)]
    for name in names:
        ledger.create_account(name, parent="people", part=name[7:])
    return names


def test_parts_that_share_nobody_cost_the_maximum(ledger):
    names = parts(ledger, 3)
    for name, amount in zip(names, ("1", "2.5", "2"), strict=True):
        charge(ledger, name, amount, data=name, key=name)
    charge(ledger, "people", "1", data="all.csv")
    whole = ledger.account("people")
    assert (whole.own, whole.parts, whole.spent, whole.left) == (1, Fraction(5, 2), Fraction(7, 2), Fraction(1, 2))
    assert [ledger.account(name).left for name in names] == [2, Fraction(1, 2), 1]
    with pytest.raises(NotEnoughBudget, match="'people 0' has 2 epsilon left"):
        charge(ledger, names[0], "2.1", data=names[0])
    charge(ledger, names[0], "2", data=names[0])
    assert ledger.account("people").spent == 4
    ledger.publish(names[1], bundle_digest="b", place="p", spent="0.5")  # which is not the most expensive any more
    assert ledger.account("people").parts == 3 and not problems(ledger)


def test_parts_that_may_share_somebody_cost_the_sum(ledger):
    names = parts(ledger, 3, unit="person", rows_per_person=2)
    for name in names:
        charge(ledger, name, "1.25", data="all.csv", key=name)
    assert ledger.account("people").spent == Fraction("3.75")
    with pytest.raises(NotEnoughBudget, match=r"'people 0' has 0\.25 epsilon left"):
        charge(ledger, names[0], "0.3", data="all.csv")
    ledger.publish(names[1], bundle_digest="b", place="p", spent="0.5")
    assert ledger.account("people").parts == 3 and not problems(ledger)


def test_the_owner_may_declare_that_parts_share_nobody(ledger):
    names = parts(ledger, 2, unit="person", disjoint=True)
    for name in names:
        charge(ledger, name, "4", data=name)
    assert ledger.account("people").spent == 4 and not problems(ledger)


def test_parts_of_parts(ledger):
    ledger.create_account("all", **PURE, partition="region")
    ledger.create_account("north", parent="all", part="north", partition="year", disjoint=False)
    ledger.create_account("south", parent="all", part="south", epsilon=3)
    for year in ("2023", "2024"):
        ledger.create_account(year, parent="north", part=year)
        charge(ledger, year, "1.5", data=year)
    charge(ledger, "south", "3", data="south")
    assert [ledger.account(name).spent for name in ("all", "north", "south")] == [3, 3, 3]
    assert [ledger.account(name).left for name in ("all", "2023", "south")] == [1, 1, 0]
    ledger.lock("all")
    with pytest.raises(LedgerError, match="'all' is locked"):
        charge(ledger, "2023", "0.1", data="2023")
    assert not problems(ledger)


def test_what_is_wrong_with_parts_is_refused(ledger):
    ledger.create_account("plain", **PURE)
    ledger.create_account("people", **PURE, partition="year")
    ledger.create_account("one", parent="people", part="1", source="/1.csv")
    make = ledger.create_account
    for problem, wrong in {
        "parent: the account 'plain' has no parts": lambda: make("x", parent="plain", part="1"),
        "part: is not given": lambda: make("x", parent="people"),
        "part: is given without its parent": lambda: make("x", **PURE, part="1"),
        "part: '1' of 'people' is the account 'one' already": lambda: make("x", parent="people", part="1"),
        "neighbours: is another than the parent's": lambda: make("x", parent="people", part="2", **PURE | BOUNDED),
        "unit: is another than the parent's": lambda: make("x", parent="people", part="2", unit="person"),
        "rho: the parent counts epsilon": lambda: make("x", parent="people", part="2", rho=1),
        "partition: somebody who is replaced": lambda: make("x", **PURE | BOUNDED, partition="year"),
        "disjoint: is about parts": lambda: make("x", **PURE, disjoint=True),
        "data: '/1.csv' is the data of the account 'one'": lambda: make(
            "x", parent="people", part="2", source="/1.csv"
        ),
    }.items():
        with pytest.raises(LedgerError, match=problem):
            wrong()
    make("two", parent="people", part="2")
    with pytest.raises(LedgerError, match=r"data: '/1\.csv' is the data of the account 'one'"):
        charge(ledger, "two", data="/1.csv")
    assert ledger.account("two").source is None and len(ledger.history()) == 5 and not problems(ledger)


BOUNDED = {"neighbours": "replace-one"}


# ------------------------------------------------------------------------------------------------------ concurrency


@pytest.mark.slow
def test_many_processes_are_granted_the_total_and_no_more(ledger, place):
    """Eight clients with ten charges of 0.01 against 0.2 and against parts; `make audit` has a hundred against 5."""
    ledger.create_account("one", epsilon="0.2", neighbours="add-remove")
    names = parts(ledger, 3)
    assert sum(granted(place, ["one", *names], 8, 16)) == 20 + 3 * 32
    account, spent = ledger.account("one"), [ledger.account(name).spent for name in names]
    assert account.spent == Fraction(1, 5) == sum(c.spent for c in ledger.charges("one")) and account.left == 0
    assert spent == [Fraction("0.32")] * 3 and ledger.account("people").spent == Fraction("0.32")
    assert len(ledger.history()) == 6 + 20 + 96 and not problems(ledger)


def test_threads_share_one_ledger(ledger):
    ledger.create_account("people", epsilon=1, neighbours="add-remove")
    refused = []

    def work():
        for _ in range(6):
            try:
                charge(ledger, amount="0.05")
            except NotEnoughBudget as problem:
                refused.append(problem)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(refused) == 4 and ledger.account("people").left == 0 and not problems(ledger)


# -------------------------------------------------------------------------------------------------------- the chain


@pytest.fixture
def used(ledger):
    ledger.create_account("people", **PURE)
    ledger.publish(ledger.begin(charge(ledger, key="a"), place="here"), bundle_digest="b", place="nowhere")
    charge(ledger, key="b", amount="0.25")
    charge(ledger, key="c", amount="0.125")
    return ledger


REFUSED = (
    "DELETE FROM entries WHERE number = 3",
    "UPDATE entries SET body = '{}' WHERE number = 3",
    "DELETE FROM charges WHERE key = 'c'",
    "DELETE FROM accounts",
    "DELETE FROM head",
    "UPDATE accounts SET own = total + 1",
    "UPDATE accounts SET own = -1",
    "UPDATE accounts SET parts = -1",
    "UPDATE charges SET spent = amount + 1",
    "UPDATE charges SET account = 'nobody'",
)


def test_the_database_itself_refuses(used):
    before = used.export()
    for statement in REFUSED:
        with pytest.raises(LedgerError), used._store.writing() as sql:
            sql.change(statement)
    assert used.export() == before and not problems(used)


class Undone(Exception):
    """Ends a transaction without a trace."""


CHANGED = {
    "entry 6: was changed": ['UPDATE entries SET body = replace(body, \'"amount":"0\', \'"amount":"1\')'],
    "entry 3: was changed": ["UPDATE entries SET time = 'x' WHERE number = 3"],
    "entry 6: is missing": ["DELETE FROM charges WHERE key = 'b'", "DELETE FROM entries WHERE number = 6"],
    "some were cut off": ["DELETE FROM charges WHERE key = 'c'", "DELETE FROM entries WHERE number = 7"],
    "its own is not what": ["UPDATE accounts SET own = own - 1"],
    "its locked is not what": ["UPDATE accounts SET locked = 1"],
    "its begun is not what": ["UPDATE charges SET begun = NULL"],
    "its source is not what": ["UPDATE accounts SET source = 'b.csv'"],
    "its amount is not what": ["UPDATE charges SET amount = amount + 1 WHERE key = 'b'"],
    "charge 'c': is missing": ["DELETE FROM charges WHERE key = 'c'"],
}


def test_a_change_behind_the_ledgers_back_is_found(used):
    """By somebody who owns the database, and drops the triggers first."""
    for found, statements in CHANGED.items():
        with pytest.raises(Undone), used._store.writing() as sql:
            for table, what in (("entries", "update"), ("entries", "delete"), ("charges", "delete")):
                on_table = f" ON {table}" if "Postgres" in type(sql).__name__ else ""
                sql.change(f"DROP TRIGGER {'no' if on_table else table}_{what}{on_table}")
            for statement in statements:
                sql.change(statement)
            verdict = verify_snapshot(Snapshot.take(sql))
            assert any(found in problem for check in verdict.checks for problem in check.problems), found
            raise Undone
    assert not problems(used)


def test_a_noted_head_shows_what_was_cut_off(used):
    noted = str(used.head)
    assert not problems(used, head=noted)
    charge(used)
    assert not problems(used, head=noted) and not problems(used, head=noted.partition(":")[2])
    cut = used.export()
    shorter = Snapshot(cut.head, cut.entries[:4], cut.accounts, cut.charges)
    assert [c.holds for c in verify_snapshot(shorter, head=noted).checks][:2] == [False, False]
    with pytest.raises(LedgerError, match="head: is not the head of a ledger"):
        used.verify(head="123")


def test_an_export_is_verified_elsewhere(used, tmp_path):
    whole = used.export()
    for name in ("export.json", "export.csv"):
        whole.save(tmp_path / name)
        again = Snapshot.read(tmp_path / name)
        assert again == whole and verify_snapshot(again, head=str(used.head)).holds
    (tmp_path / "export.json").write_text(
        (tmp_path / "export.json").read_text().replace('"people.csv\\"', '"other.csv\\"')
    )
    changed = Snapshot.read(tmp_path / "export.json")
    assert changed != whole and not verify_snapshot(changed).holds
    (tmp_path / "none.json").write_text("[]")
    for name in ("none.json", "absent.json"):
        with pytest.raises(LedgerError, match="is not the export of a ledger"):
            Snapshot.read(tmp_path / name)


# ------------------------------------------------------------------------------------------------ Postgres by itself


@pytest.fixture
def address(server, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    return server.address(f"ledger_{next(COUNTED)}")


@pytest.mark.service
def test_what_is_no_ledger_in_postgres_is_refused(server, address, monkeypatch):
    with pytest.raises(NoLedger, match=r"there is no ledger 'postgresql://127\.0\.0\.1:\d+/postgres#ledger_"):
        Ledger.open(address)
    with Ledger.ensure(address) as made, Ledger.ensure(address) as same:
        assert made.head == same.head and "owner" not in repr(made)
    with pytest.raises(LedgerError, match=r"ledger: the database has a schema 'ledger_.*' already"):
        Ledger.create(address)
    with server.connect() as other:
        other.execute(f'UPDATE "{address.partition("#")[2]}".head SET format = 2')
    with pytest.raises(LedgerError, match="has format 2, which this version of hushcube does not know"):
        Ledger.open(address)
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(LedgerUnavailable, match="ledger: the Postgres server refuses the user, the password"):
        Ledger.open(address)
    with pytest.raises(LedgerError, match="the address holds a password"):
        Ledger.open(address.replace("owner@", "owner:secret@"))
    with pytest.raises(LedgerError, match="ledger: is not an address of Postgres"):
        Ledger.open("postgresql://[broken")


@pytest.mark.service
def test_a_commit_waits_for_the_disk_whatever_the_servers_default(server, address):
    with server.connect() as other:
        other.execute("ALTER ROLE owner SET synchronous_commit = off")
        try:
            with Ledger.create(address) as ledger, ledger._store.writing() as sql:
                assert sql.rows("SHOW synchronous_commit") == [("on",)]
                assert sql.rows("SHOW transaction_isolation") == [("read committed",)]
        finally:
            other.execute("ALTER ROLE owner RESET synchronous_commit")


@pytest.mark.service
def test_users_without_rights_and_locks_that_last_too_long(server, address, monkeypatch):
    monkeypatch.setattr("hushcube.ledger.postgres._SETTINGS", {"lock_timeout": "50ms"})
    schema = address.partition("#")[2]
    with Ledger.create(address) as ledger, server.connect() as other:
        ledger.create_account("people", **PURE)
        other.execute("BEGIN")
        other.execute(f'SELECT * FROM "{schema}".head FOR UPDATE')
        with pytest.raises(LedgerUnavailable, match=r"another process has held the ledger .* the ledger is as it was"):
            charge(ledger)
        other.execute("ROLLBACK")
        charge(ledger)
        other.execute("CREATE ROLE reader LOGIN PASSWORD 'only for tests'")
        other.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO reader')
        other.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO reader')
    monkeypatch.setenv("PGPASSWORD", "only for tests")
    with Ledger.open(address.replace("owner@", "reader@")) as reader:
        assert reader.account("people").spent == Fraction(1, 2)
        with pytest.raises(LedgerError, match="this user may not read or write the ledger; the ledger is as it was"):
            charge(reader)


@pytest.mark.service
def test_a_server_that_dies_and_comes_back(server, address):
    """Last: it ends the connections of all others."""
    with Ledger.create(address) as ledger:
        ledger.create_account("people", **PURE)
        first = charge(ledger, key="k")
        unknown = "it is not known whether anything was charged"
        with pytest.raises(LedgerUnavailable, match=unknown) as lost, ledger._store.writing() as sql:
            server.kill()
            sql.rows("SELECT 1")
        assert "with the same key" in lost.value.fix
        with pytest.raises(LedgerUnavailable, match="there is no connection to the Postgres server"):
            charge(ledger, key="k")
        server.start()
        assert charge(ledger, key="k") == first and not problems(ledger)
