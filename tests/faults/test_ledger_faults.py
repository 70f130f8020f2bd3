"""The short form of faults in a ledger; `make audit PARTS=ledgers` is the long one."""

import shutil
import signal

import pytest

from faults import ledgers

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


@pytest.mark.slow
def test_a_fault_at_any_call_charges_once_or_not_at_all():
    found = ledgers.figures("short")
    if not found["figures"]:
        pytest.skip(found["how"])
    assert found["broken"] == [] and found["violations"] == 0
    assert found["figures"]["faults injected"] > 20 and {"of them SIGKILL", "of them EIO"} < set(found["figures"])


def test_the_judge_finds_what_is_wrong(tmp_path):
    """A ledger that forgets what it announced, or that says one thing and does another."""
    desk = ledgers.Desk.__new__(ledgers.Desk)
    desk.folder, desk.place = tmp_path / "desk", tmp_path / "desk" / "ledger.db"
    desk.fresh(empty=False)
    shutil.copytree(desk.folder, tmp_path / "kept")

    def forgets(step, key, call=0, fault=0):
        ledgers.take(step, key, desk.place)
        shutil.rmtree(desk.folder)
        shutil.copytree(tmp_path / "kept", desk.folder)
        return 0, "", []

    desk.run = forgets
    assert "announced, and not there" in ledgers.case(desk, "charge", "a", 1, -signal.SIGKILL)[1]
    desk.run = lambda step, key, call=0, fault=0: (
        ledgers.take(step, key, desk.place), (ledgers.REFUSED * bool(fault), "Fix: the ledger is as it was", [])
    )[1]  # fmt: skip
    assert ledgers.case(desk, "charge", "b", 1, 5)[1] == ["charged, and it says that nothing was"]
