"""Requests to stop: noted when they come, honoured before anything that cannot be taken back."""

import signal
import subprocess
import sys

import pytest

from hushcube import interrupts


@pytest.mark.parametrize("number", interrupts._SIGNALS, ids=lambda number: number.name)
def test_a_request_raises_and_stays_noted(listening, number):
    interrupts.check()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)
    assert interrupts.noted() == number
    with pytest.raises(KeyboardInterrupt):
        interrupts.check()


def test_a_lost_request_stops_an_irreversible_step(listening):
    listening(signal.SIGTERM)
    taken = []
    with pytest.raises(KeyboardInterrupt), interrupts.irreversible():
        taken.append(1)
    assert taken == []


def test_a_request_during_or_after_an_irreversible_step_waits_until_work_is_resumed(listening):
    with interrupts.irreversible():
        signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)
    interrupts.check()
    with pytest.raises(KeyboardInterrupt):
        interrupts.resume()


def test_a_step_that_failed_was_not_taken(listening):
    with pytest.raises(OSError), interrupts.irreversible():
        raise OSError
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_cleaning_up_is_not_broken_off(listening):
    """A second Ctrl-C, or a first one while another error is being handled, waits; once that is over, it does not."""
    cleaned = []
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        signal.raise_signal(signal.SIGINT)
        cleaned.append("after an interruption")
    try:
        raise ValueError
    except ValueError:
        signal.raise_signal(signal.SIGTERM)
        cleaned.append("after an error")
    with interrupts.held():
        signal.raise_signal(signal.SIGTERM)
        cleaned.append("in the ordinary way")
    assert len(cleaned) == 3
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_what_is_ignored_stays_ignored(listening):
    """As under nohup, and for jobs in the background of a shell script."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    interrupts.listen()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is interrupts.note


def test_an_exception_that_cannot_be_passed_on_prints_nothing(listening, capsys):
    class Dropped:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    made = Dropped()
    del made
    assert interrupts.noted() == signal.SIGINT and capsys.readouterr().err == ""


def test_a_request_inside_exec_does_not_change_the_exit_code():
    """Python would end a process by SIGINT that has ever let a plain KeyboardInterrupt through `exec`."""
    code = """
import signal, sys
from hushcube import interrupts
interrupts.listen()
interrupts.resume()
try:
    exec("signal.raise_signal(signal.SIGTERM)")
except KeyboardInterrupt:
    sys.exit(143)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 143


def test_an_import_is_not_broken_off(listening, tmp_path, monkeypatch):
    """DuckDB's extension aborts the process when an exception comes up while it is imported."""
    (tmp_path / "asked_to_stop.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\nwhole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    import asked_to_stop

    assert asked_to_stop.whole
    with pytest.raises(KeyboardInterrupt):
        interrupts.check()
