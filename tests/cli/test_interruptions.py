"""Requests to stop that reach the program in the middle of a verb, also where a library swallows them."""

import signal
from contextlib import suppress
from pathlib import Path

import pytest

from cli.desk import listing
from hushcube import interrupts
from hushcube.cli import run
from hushcube.errors import DataError

RELEASE = ["release", "plan.json", "--data", "people.csv", "--out", "new"]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.fixture
def at(monkeypatch):
    """Do something else in the place of a function, then what the function does."""

    def place(name, instead):
        module, _, function = name.rpartition(".")
        owner = __import__(module, fromlist=[function])
        usual = getattr(owner, function)
        monkeypatch.setattr(owner, function, lambda *a, **k: (instead(), usual(*a, **k))[1])

    return place


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
@pytest.mark.parametrize(
    "moment", ["hushcube.private.measure.count", "hushcube.private.measure.draw", "hushcube.durable.sync"]
)
def test_a_swallowed_request_still_stops_a_release(desk, listening, at, capsys, number, moment):
    before = listing(desk)
    at(moment, lambda: listening(number))
    assert run(RELEASE) == CODES[number]
    assert capsys.readouterr().err.splitlines()[-1] == "hushcube: interrupted: nothing was published"
    assert listing(desk) == before


def test_no_noise_is_drawn_after_a_swallowed_request(desk, listening, at, drawn):
    at("hushcube.private.measure.count", lambda: listening(signal.SIGINT))
    assert run(RELEASE) == 130
    assert drawn == []


def test_an_error_that_an_interruption_caused_is_an_interruption(desk, listening, at, capsys):
    def torn():
        listening(signal.SIGTERM)
        raise DataError("data", "the CSV file cannot be read", "write a better one")

    at("hushcube.private.measure.count", torn)
    assert run(RELEASE) == 143
    assert capsys.readouterr().err.splitlines()[-1] == "hushcube: interrupted: nothing was published"


def test_a_request_after_publishing_changes_nothing(desk, listening, at, capsys):
    at("hushcube.verbs.releasing.open_bundle", lambda: signal.raise_signal(signal.SIGINT))
    assert run(RELEASE) == 0
    assert "published 11 tables" in capsys.readouterr().out
    assert run(["verify", "new"]) == 130  # it would be stopped now, had it been started by the same process
    assert Path("new/manifest.json").exists()


def test_a_run_inside_another_program_installs_nothing(desk):
    before = [signal.getsignal(number) for number in CODES]
    assert run(RELEASE) == 0
    assert [signal.getsignal(number) for number in CODES] == before
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert interrupts.noted() is None
