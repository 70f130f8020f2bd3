"""`hushcube session` on the command line: the way through, and what is refused."""

import json

import pytest

import hushcube as hc
from cli.desk import listing
from hushcube.cli import run

OPEN = ["session", "open", "--schema", "people.yaml", "--ledger", "ledger.db", "--account", "people"]
DATA = ["--data", "people.csv", "--out", "questions"]
ASK = ["session", "ask", "questions"]


@pytest.fixture
def ledger(desk):
    with hc.Ledger.create("ledger.db") as made:
        made.create_account("people", rho=1, neighbours="add-remove")
        made.create_account("locked", rho=1, neighbours="add-remove")
        made.lock("locked")


def told(capsys, *words):
    assert run([*words, "--json"]) == 0
    out, _ = capsys.readouterr()
    return json.loads(out)


def test_questions_are_asked_shown_and_exported(ledger, capsys):
    assert told(capsys, *OPEN, *DATA, "--expected", "sex*age=2", "--largest", "0.5")["version"] == 0
    offer = told(capsys, *ASK, "sex*region", "--stderr", "6", "--price")
    assert offer["granted"] and not offer["free"]
    answer = told(capsys, *ASK, "sex*region", "--stderr", "6")
    assert answer["charged"] == offer["price"] and answer["std_error"] <= 6.00001
    assert answer["cells"][0].keys() == {"sex", "region", "value", "std_error", "low_95", "high_95"}
    assert told(capsys, *ASK, "region*sex", "--relative-error", "0.06", "--above", "100")["free"]
    assert told(capsys, *ASK, "region", "--stored")["free"]
    shown = told(capsys, "session", "show", "questions")
    assert [each["charged"] for each in shown["questions"]] == [answer["charged"], "0"]
    assert told(capsys, "session", "export", "questions", "--out", "exported")["tables"] == 1
    assert run(["verify", "exported"]) == 0
    for words in (["show", "questions"], ["ask", "questions", "sex", "--stored"]):
        assert run(["session", *words]) == 0
    assert "standard error" in capsys.readouterr().out


REFUSED = {
    "no schema": (["session", "open", *DATA], "--schema"),
    "no account": ([*OPEN[:-2], *DATA], "--account"),
    "no data": ([*OPEN, "--out", "new"], "--data"),
    "no folder": ([*OPEN, "--data", "people.csv"], "--out"),
    "a locked account": ([*OPEN[:-1], "locked", "--data", "people.csv", "--out", "new"], "locked"),
    "a share that is none": ([*OPEN, "--data", "people.csv", "--out", "new", "--kept", "2"], "kept"),
    "no such attribute": ([*ASK, "height", "--stderr", "5"], "height"),
    "no target": ([*ASK, "sex"], "std_error"),
    "two targets": ([*ASK, "sex", "--stderr", "5", "--rho", "1"], "std_error"),
    "out of reach": ([*ASK, "sex*age*income*region", "--stderr", "0.6"], "may be spent"),
    "stored with a target": ([*ASK, "sex", "--stderr", "5", "--stored"], "--stored"),
    "nothing stored": ([*ASK, "sex", "--stored"], "measured"),
    "no such session": (["session", "ask", "nowhere", "sex", "--stderr", "5"], "session"),
    "nothing to export": (["session", "export", "questions", "--out", "exported"], "measured nothing"),
    "no folder to export to": (["session", "export", "questions"], "--out"),
}


def test_what_is_refused_changes_nothing(ledger, desk, capsys):
    assert run([*OPEN, *DATA]) == 0
    before = {name: digest for name, digest in listing(desk).items() if not name.startswith("ledger.db-")}
    for words, said in REFUSED.values():
        capsys.readouterr()
        assert run(words) == 2, words
        assert said in capsys.readouterr().err, words
    assert {name: digest for name, digest in listing(desk).items() if not name.startswith("ledger.db-")} == before
