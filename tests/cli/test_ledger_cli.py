"""`hushcube ledger`: what is printed, what is refused, and that what is refused writes nothing."""

import json

import pytest

import hushcube as hc
from cli.desk import listing
from hushcube.cli import run
from read_only import read_only

PEOPLE = ["ledger", "create", "people", "--epsilon", "4", "--neighbours", "add-remove"]


@pytest.fixture
def used(done):
    """A ledger in the default place, with an account, and an unfinished charge."""
    done(*PEOPLE)
    with hc.Ledger.open("hushcube-ledger.db") as ledger:
        ledger.charge("people", "0.5", key="k1", plan_digest="p", data="people.csv", what="2-way")
        ledger.publish("k1", bundle_digest="d", place="nowhere")
        ledger.charge("people", "0.25", key="k2", plan_digest="p", data="people.csv", what="3-way")


def test_create_makes_the_ledger_and_the_account(done, document, desk):
    out, err = done(*PEOPLE, "--source", "people.csv", "--partition", "year")
    assert "hushcube-ledger.db is a new ledger" in err and "maximum" in out
    made = document("ledger", "create", "2024", "--parent", "people", "--part", "2024", "--epsilon", "1")
    assert made["new"] is False and made["ledger"] == "hushcube-ledger.db"
    assert made["account"] | {"privacy": None} == {
        "name": "2024", "currency": "epsilon", "total": "1", "spent": "0", "own": "0", "parts": "0", "left": "1",
        "locked": False, "privacy": None, "parent": "people", "part": "2024",
    }  # fmt: skip
    assert document("ledger", "show", "people")["accounts"][0]["source"] == str(desk / "people.csv")
    other = document("ledger", "create", "x", "--rho", "1", "--neighbours", "replace-one", "--ledger", "other.db")
    assert other["new"] is True and (desk / "other.db").exists()


def test_show_lists_what_is_left_and_what_is_unfinished(used, done, document):
    out, _ = done("ledger", "show")
    assert "0.75" in out and "3.25" in out and "unfinished: k2 (0.25 of people" in out and "3-way" in out
    assert "run the same command again with the same key" in out and "head 5:" in out and "k1" not in out
    out, _ = done("ledger", "show", "people")
    assert "charges" in out and "k1" in out and "published" in out
    told = document("ledger", "show", "people")
    assert told.keys() == {"ledger", "head", "accounts", "unfinished", "charges"}
    assert [charge["state"] for charge in told["charges"]] == ["published", "unfinished"]
    assert told["unfinished"][0]["key"] == "k2" and "advice" in told["unfinished"][0]
    with hc.Ledger.open("hushcube-ledger.db") as ledger:
        shown = "\n".join(line.rstrip() for line in out.splitlines())
        assert shown.startswith(str(ledger)) and "<table" in ledger._repr_html_()


def test_what_only_reads_works_where_nobody_can_write(used, document, done, desk, capsys, tmp_path):
    with read_only(desk, desk.with_name(f"{desk.name}-seen")) as seen:
        there = ("--ledger", str(seen / "hushcube-ledger.db"))
        before, files = document("ledger", "show", "people"), listing(desk)
        assert document("ledger", "show", "people", *there) == before | {"ledger": there[1]}
        assert document("ledger", "history", *there) == document("ledger", "history")
        assert document("ledger", "verify", "--no-published", *there)["holds"]
        assert done("ledger", "export", *there) == done("ledger", "export")
        for refused in (["lock", "people"], ["abandon", "k2", "--why", "x"], [*PEOPLE[1:2], "others", *PEOPLE[3:]]):
            assert run(["ledger", *refused, *there]) == 2
            assert "cannot be written; the ledger is as it was" in capsys.readouterr().err
        assert listing(desk) == files and document("ledger", "show", "people") == before


def test_history_lock_and_abandon(used, done, document):
    kinds = [entry["kind"] for entry in document("ledger", "history")["entries"]]
    assert kinds == ["ledger", "account", "charge", "publish", "charge"]
    entry = document("ledger", "history", "people")["entries"][-1]
    assert entry["body"]["key"] == "k2" and entry["time"].endswith("+00:00")
    assert "amount 0.25" in done("ledger", "history")[0]
    assert document("ledger", "abandon", "k2", "--why", "the data was wrong")["charge"]["state"] == "abandoned"
    assert "abandoned" in done("ledger", "abandon", "k2", "--why", "again")[0]
    assert document("ledger", "lock", "people")["account"]["locked"] is True
    assert "people, locked" in done("ledger", "lock", "people")[0]
    assert document("ledger", "show")["accounts"][0]["spent"] == "0.75"


def test_verify_a_ledger_and_its_exports(used, done, document, desk):
    head = document("ledger", "show")["head"]
    assert document("ledger", "verify", "--head", head)["holds"] is True
    assert "Everything holds." in done("ledger", "verify")[0]
    assert "published" not in done("ledger", "verify", "--no-published")[0]
    printed = json.loads(done("ledger", "export")[0])
    for name in ("export.json", "export.csv"):
        assert "wrote 5 entries" in done("ledger", "export", "--out", name)[0]
        assert document("ledger", "verify", name, "--head", head)["holds"] is True
    assert json.loads((desk / "export.json").read_text()) == printed
    (desk / "bad.json").write_text((desk / "export.json").read_text().replace("3-way", "4-way"))
    out, _ = done("ledger", "verify", "bad.json", code=1)
    assert "chain: entry 5: was changed" in out and "The ledger does not hold what it claims." in out
    assert document("ledger", "verify", "--head", "0" * 64, code=1)["checks"][1]["problems"]


REFUSED = {
    "no ledger": (["show", "--ledger", "none.db"], "--ledger: there is no ledger 'none.db'"),
    "a part without a ledger": (["create", "x", "--parent", "p", "--part", "1", "--ledger", "none.db"], "no ledger"),
    "no ledger to verify": (["verify", "--ledger", "none.db"], "there is no ledger 'none.db'"),
    "no neighbours": (["create", "x", "--epsilon", "1", "--ledger", "none.db"], "--neighbours: is not given"),
    "no budget": (["create", "x", "--neighbours", "add-remove", "--ledger", "none.db"], "--epsilon: no budget"),
    "two of a name": (PEOPLE[1:], "there is an account 'people' already"),
    "unknown account": (["show", "nobody"], "there is no account 'nobody'"),
    "nothing to lock": (["lock", "nobody"], "there is no account 'nobody'"),
    "unknown key": (["abandon", "none", "--why", "x"], "there is no charge 'none'"),
    "published": (["abandon", "k1", "--why", "x"], "'k1' is published already"),
    "no parts": (["create", "x", "--parent", "people", "--part", "1"], "--parent: the account 'people' has no parts"),
    "not an export": (["verify", "people.csv"], "'people.csv' is not the export of a ledger"),
    "not a head": (["verify", "--head", "12"], "--head: is not the head of a ledger"),
    "not a ledger": (["show", "--ledger", "people.csv"], "--ledger: 'people.csv' is not a ledger"),
    "an export that exists": (["export", "--out", "people.csv"], "--out: the file exists already"),
    "no server": (["show", "--ledger", "postgresql://127.0.0.1:1/x"], "--ledger: there is no connection"),
    "a password": (["show", "--ledger", "postgresql://me:secret@127.0.0.1:1/x"], "the address holds a password"),
}


@pytest.mark.parametrize(("command", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_writes_nothing(used, desk, capsys, command, problem):
    if "postgresql" in str(command):
        pytest.importorskip("psycopg")
    before = listing(desk)
    assert run(["ledger", *command]) == 2
    out, err = capsys.readouterr()
    assert problem in err and "Fix: " in err and "secret" not in err and not out
    assert {name: at for name, at in listing(desk).items() if "-shm" not in name and "-wal" not in name} == before
