"""A release that is charged to an account: what is refused costs nothing, and a key never charges or draws twice."""

import errno
import hashlib
import json
import signal
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

import hushcube as hc
from cli.desk import BUDGET, SECRET, listing
from hushcube import interrupts
from hushcube.cli import run
from hushcube.ledger.published import published_digest

ON = ["--ledger", "ledger.db", "--account"]
CSV = ["--data", "people.csv", "--out", "new"]
RELEASE = ["release", "plan.json", *CSV]
OTHER = ["release", "--schema", "people.yaml", "--workload", "1-way", *CSV]
KEY = ["--key", "first"]
CHARGED = [*RELEASE, *ON, "people", *KEY]


@pytest.fixture
def ledger(desk):
    """A ledger with accounts of every kind, beside the data; what the desk had published is not on it."""
    with hc.Ledger.create("ledger.db") as made:
        add = {"neighbours": "add-remove"}
        made.create_account("people", epsilon=4, **add)
        made.create_account("poor", epsilon="0.5", **add)
        made.create_account("locked", epsilon=3, **add)
        made.create_account("persons", epsilon=3, unit="id", **add)
        made.create_account("elsewhere", epsilon=3, source="/elsewhere/people.csv", **add)
        made.create_account("as it was", epsilon=3, digest="0" * 64, **add)
        made.create_account("rho", rho=1, **add)
        made.create_account("by region", epsilon=3, partition="region", **add)
        for part in ("1", "north"):
            made.create_account(f"region {part}", parent="by region", part=part)
        made.lock("locked")
        here = {"data": str(desk / "people.csv"), "what": ""}
        plan = hc.Plan.read("plan.json").digest
        lost, gone = (made.charge("people", 1, key=key, plan_digest=plan, **here) for key in ("lost", "gone"))
        made.charge("people", "0.5", key="other plan", plan_digest="ab", **here)
        made.begin(lost, place=desk / "new")
        made.abandon(gone, "the power failed")
    return made


def charges(account="people"):
    with hc.Ledger.open("ledger.db") as opened:
        return {charge.key: charge for charge in opened.charges(account)}


def first():
    return charges()["first"]


REFUSED = {
    "no such ledger": ([*RELEASE, "--ledger", "none.db", "--account", "people"], "there is no ledger 'none.db'"),
    "not a ledger": ([*RELEASE, "--ledger", "people.duckdb", "--account", "people"], "is not a ledger"),
    "no account is named": ([*RELEASE, "--ledger", "ledger.db"], "--account: is not given"),
    "no ledger is named": ([*RELEASE, "--account", "people"], "--account: is given, but no ledger"),
    "a key without a ledger": ([*RELEASE, *KEY], "--key: is given, but no ledger"),
    "unknown account": ([*RELEASE, *ON, "nobody"], "there is no account 'nobody'"),
    "locked account": ([*RELEASE, *ON, "locked"], "locked"),
    "not enough": ([*RELEASE, *ON, "poor"], "has 0.5 epsilon left, and this costs 1"),
    "another unit": ([*RELEASE, *ON, "persons"], "unit: "),
    "another source": ([*RELEASE, *ON, "elsewhere"], "is for '/elsewhere/people.csv'"),
    "changed data": ([*RELEASE, *ON, "as it was"], "bound to a digest of its data"),
    "data without a digest": (
        ["release", "plan.json", "--query", "SELECT * FROM 'people.csv'", "--out", "new", *ON, "as it was"],
        "this kind of data has none",
    ),
    "a seed": ([*CHARGED, "--seed", "1"], "--seed: makes noise that protects nobody"),
    "Gaussian noise on a pure account": (
        [*OTHER, "--rho", "1", "--neighbours", "add-remove", *ON, "people"],
        "promises pure epsilon",
    ),
    "weaker neighbours": ([*OTHER, "--epsilon", "1", "--neighbours", "replace-one", *ON, "people"], "--neighbours: "),
    "a key of another plan": ([*RELEASE, *ON, "people", "--key", "other plan"], "--key: 'other plan' charged already"),
    "a key of another account": ([*RELEASE, *ON, "poor", "--key", "gone"], "charged already, for another account"),
    "a key of other data": (
        ["release", "plan.json", "--data", "people.tsv", "--out", "new", *ON, "people", "--key", "lost"],
        "is the key of a release of other data",
    ),
    "a key of another folder": (
        ["release", "plan.json", "--data", "people.csv", "--out", "other", *ON, "people", "--key", "lost"],
        "is the key of a release in",
    ),
    "abandoned": ([*RELEASE, *ON, "people", "--key", "gone"], "was abandoned: the power failed"),
    "noise that is lost": ([*RELEASE, *ON, "people", "--key", "lost"], "noise was drawn for 'lost'"),
    "an unknown part": ([*RELEASE, *ON, "by region", "--part", "7"], "has no part '7'"),
    "a part that is no value": ([*RELEASE, *ON, "by region", "--part", "north"], "'north' is no value of 'region'"),
    "a folder that exists": (
        ["release", "plan.json", "--data", "people.csv", "--out", "parts", *ON, "people"],
        "exists",
    ),
    "data that is not there": (["release", "plan.json", "--data", "no.csv", "--out", "new", *ON, "people"], "no.csv"),
    "an unknown face": ([*CHARGED, "--face", "nonsense"], "--face"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_not_charged(ledger, refused, name):
    """Neither the ledger nor anything else on the desk changes, and nothing is drawn."""
    command, words = REFUSED[name]
    refused(command, words)


def test_a_ledger_that_another_process_holds(ledger, desk, drawn, capsys, monkeypatch):
    monkeypatch.setattr("hushcube.ledger.sqlite.WAIT", 0.05)
    holder = sqlite3.connect("ledger.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert run(CHARGED) == 2
    assert "another process has held 'ledger.db'" in capsys.readouterr().err
    holder.execute("ROLLBACK")
    holder.close()
    assert "first" not in charges() and drawn == [] and not Path("new").exists()


# ---------------------------------------------------------------------------------------------------------- publishing


def test_a_release_is_charged_recorded_and_opened_again_under_its_key(ledger, done, document, drawn):
    told = document(*CHARGED)
    assert told["receipt"]["charged"] == "1" and told["receipt"]["key"] == "first"
    charge = first()
    assert (charge.state, charge.amount, charge.spent) == ("published", 1, 1)
    assert charge.bundle_digest == published_digest("new") and charge.place == str(Path("new").resolve())
    before, count = listing(Path()), len(drawn)
    out, err = done(*CHARGED)
    assert "published 11 tables" in out and "nothing is charged or drawn again" in err
    assert listing(Path()) == before and len(drawn) == count
    done(*CHARGED, "--face", "consistent")  # which costs nothing
    done(*CHARGED, "--face", "consistent")
    assert set(hc.open("new").faces) == {"consistent"} and len(drawn) == count
    assert charges()["first"] == charge
    assert document("show", "new")["receipt"] == told["receipt"]
    assert "charged epsilon = 1 to the account 'people'" in done("show", "new")[0]
    done("verify", "new")


def test_without_a_key_the_same_command_has_the_same_one(ledger, done):
    done(*RELEASE, *ON, "people")
    done(*RELEASE, *ON, "people")
    (key,) = charges().keys() - {"lost", "gone", "other plan"}
    assert hc.open("new").receipt.key == key
    done("release", "plan.json", "--data", "people.csv", "--out", "more", *ON, "by region")
    assert hc.open("more").receipt.key != key


def test_a_published_folder_that_is_gone_or_another_is_not_drawn_again(ledger, done, drawn, capsys):
    done(*CHARGED)
    Path("new").rename("moved")
    count = len(drawn)
    assert run(CHARGED) == 2 and "is not there any more" in capsys.readouterr().err
    Path("published").rename("new")
    assert run(CHARGED) == 2 and "another release is there now" in capsys.readouterr().err
    assert len(drawn) == count and len(charges()) == 4


def test_nobody_keeps_count_without_a_ledger(done):
    said = "nobody keeps count"
    assert done(*RELEASE)[1].count(said) == 1
    assert said not in done("release", "plan.json", "--data", "people.csv", "--out", "seeded", "--seed", "1")[1]


def test_from_python_with_an_open_ledger(ledger, desk):
    import pyarrow.parquet as pq

    frame, told = pq.read_table("people.parquet"), []
    with hc.Ledger.open("ledger.db") as opened:
        digest = "78ab"
        opened.create_account("frames", epsilon=3, neighbours="add-remove", digest=digest)
        with pytest.raises(hc.LedgerError, match="bound to a digest"):
            hc.release("plan.json", frame, out="new", ledger=opened, account="frames")
        with pytest.raises(hc.LedgerError, match="out: is not given"):
            hc.release("plan.json", frame, ledger=opened, account="people")
        released = hc.release("plan.json", frame, out="new", ledger=opened, account="by region", tell_owner=told.append)
        assert released.receipt.account == "by region" and opened.account("by region").spent == 1
        assert opened.account("by region").source == "frame:pyarrow.Table"
    assert not any("nobody" in line for line in told)


def test_an_account_that_is_bound_to_a_digest_is_for_that_data(ledger, done):
    with hc.Ledger.open("ledger.db") as opened:
        digest = hashlib.sha256(Path("people.csv").read_bytes()).hexdigest()
        opened.create_account("bound", epsilon=3, neighbours="add-remove", digest=digest)
    done(*RELEASE, *ON, "bound")
    (charge,) = charges("bound").values()
    assert charge.data.digest == digest
    with Path("people.csv").open("a") as file:
        file.write("Male,1,1,1\n")
    assert run(["release", "plan.json", "--data", "people.csv", "--out", "more", *ON, "bound"]) == 2
    assert len(charges("bound")) == 1


def test_the_rows_of_a_part_are_those_of_the_part(ledger, done, drawn, capsys):
    part = [*ON, "by region", "--part", "1"]
    assert run([*RELEASE, *part]) == 2
    assert "rows whose 'region' is not that of the part" in capsys.readouterr().err
    assert drawn == [] and [c.begun for c in charges("region 1").values()] == [False]
    query = ["--query", "SELECT * FROM 'people.parquet' WHERE region = 1"]
    with hc.Ledger.open("ledger.db") as opened:
        opened.create_account("region 2", parent="by region", part="2")
    query = ["--query", "SELECT * FROM 'people.parquet' WHERE region = 2"]
    done("release", "plan.json", *query, "--out", "new", *ON, "by region", "--part", "2")
    receipt = hc.open("new").receipt
    assert (receipt.account, receipt.part) == ("region 2", "2") and "part `2`" in Path("new/PRIVACY.md").read_text()
    with hc.Ledger.open("ledger.db") as opened:
        assert opened.account("by region").spent == 1  # the maximum: nobody has rows in two regions


@pytest.mark.parametrize(("account", "less"), [("people", True), ("rho", False)])
def test_an_adaptive_release_is_settled_where_that_is_proven(ledger, done, account, less):
    strategy = ["--workload", "1-way", "--strategy", "ireduct", "--relative-error", "0.5", "--above", "20"]
    done("release", "--schema", "people.yaml", *strategy, *BUDGET, *CSV, *ON, account, *KEY)
    with hc.Ledger.open("ledger.db") as opened:
        charge, spent = opened.find_charge("first"), opened.account(account).own
        design = hc.open("new").plan.count
        assert design.is_outcome and (charge.spent < charge.amount) == less
        if less:
            assert 0 <= charge.spent - design.person_cost < Fraction(1, 10**15)
        others = Fraction(5, 2) if account == "people" else 0
        assert spent == others + charge.spent
    done("verify", "new")


def test_only_one_of_two_who_counted_draws(ledger, drawn):
    """The second release begins and ends while the first has counted, and has not drawn yet."""
    asked = {"plan": "plan.json", "data": "people.csv", "out": "new", "account": "people", "key": "first"}
    drawn_by = []

    def overtaken(_remark):
        if not drawn_by:
            drawn_by.append(None)
            hc.release(**asked, ledger="ledger.db")
            drawn_by.append(len(drawn))

    with hc.Ledger.open("ledger.db") as opened:
        with pytest.raises(hc.LedgerError, match="has drawn its noise already") as refusal:
            hc.release(**asked, ledger=opened, tell_owner=overtaken)
        assert "another one carries out the same release" in refusal.value.__notes__[0]
        kinds = [entry.kind for entry in opened.history() if entry.told.get("key") == "first"]
    assert kinds == ["charge", "begin", "publish"] and len(drawn) == drawn_by[1] > 0
    assert hc.release(**asked, ledger="ledger.db").receipt.key == "first" and len(drawn) == drawn_by[1]


# ------------------------------------------------------------------------------------------------------------- failing


def test_bad_data_is_corrected_under_the_same_charge(ledger, done, drawn, capsys):
    good = Path("people.csv").read_text()
    Path("people.csv").write_text(good.replace("Male", SECRET, 1))
    assert run(CHARGED) == 2
    told = capsys.readouterr().err
    assert "epsilon = 1 is charged to the account 'people', and no noise was drawn" in told and SECRET not in told
    charge = first()
    assert (charge.state, charge.begun, drawn) == ("unfinished", False, []) and not Path("new").exists()
    Path("people.csv").write_text(good)
    done(*CHARGED)
    assert first().state == "published" and first().entry == charge.entry
    with hc.Ledger.open("ledger.db") as opened:
        assert opened.account("people").spent == Fraction(7, 2)


def full():
    raise OSError(errno.ENOSPC, SECRET)


def interrupted():
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(("happens", "code"), [(full, 1), (interrupted, 130)])
def test_noise_that_is_not_published_is_not_drawn_again(ledger, drawn, listening, capsys, monkeypatch, happens, code):
    with monkeypatch.context() as patch:
        patch.setattr("hushcube.bundle.writing.write_tables", lambda *_arguments, **_options: happens())
        assert run(CHARGED) == code
    told = capsys.readouterr().err
    assert "stays charged, since noise was drawn" in told and not Path("new").exists()
    charge, count = first(), len(drawn)
    assert (charge.state, charge.spent) == ("abandoned", 1) and SECRET not in charge.why and count
    interrupts._noted.clear()  # another process
    assert run(CHARGED) == 2 and "was abandoned: it failed after noise was drawn" in capsys.readouterr().err
    assert len(drawn) == count and first() == charge


def test_a_release_that_was_not_recorded_is_recorded_later(ledger, done, drawn, capsys, monkeypatch):
    def fail(*_arguments, **_options):
        raise hc.LedgerError("ledger", "the disk is full", "make room")

    with monkeypatch.context() as patch:
        patch.setattr(hc.Ledger, "publish", fail)
        assert run(CHARGED) == 2
    assert f"published in {str(Path('new').resolve())!r} and its budget is spent" in capsys.readouterr().err
    assert first().state == "unfinished" and first().begun
    count = len(drawn)
    done(*CHARGED)
    assert first().state == "published" and len(drawn) == count


def test_a_request_to_stop_while_rows_are_counted(ledger, done, drawn, listening, capsys, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("hushcube.private.measure.count", lambda *_a, **_o: signal.raise_signal(signal.SIGINT))
        assert run(CHARGED) == 130
    told = capsys.readouterr().err
    assert "interrupted: nothing was published; epsilon = 1 is charged to the account 'people'" in told
    assert not first().begun and drawn == []


def test_a_disk_without_room_is_refused_before_anything_is_charged(ledger, drawn, capsys, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _folder: type("Usage", (), {"free": 1000}))
    assert run(CHARGED) == 1
    assert "no space left on device" in capsys.readouterr().err
    assert "first" not in charges() and drawn == []


def test_the_receipt_is_a_document(ledger, document):
    told = document(*CHARGED)["receipt"]
    assert json.loads(Path("new/manifest.json").read_text())["receipt"] == told
    assert told["currency"] == "epsilon" and told["total"]["epsilon"] == "4"
