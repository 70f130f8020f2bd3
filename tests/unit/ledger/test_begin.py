"""That noise is about to be drawn is recorded once for a charge, before it is published or abandoned."""

import pytest

from hushcube.errors import LedgerError
from hushcube.ledger.ledger import Ledger


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "ledger.db") as made:
        made.create_account("people", epsilon=1, neighbours="add-remove")
        for key in ("first", "second"):
            made.charge("people", "0.25", key=key, plan_digest="ab", data="people.csv")
        yield made


def test_noise_is_drawn_once_for_a_charge(ledger):
    before = ledger.find_charge("first")
    assert not before.begun and before.place is None and "does not charge twice" in before.advice
    begun = ledger.begin(before, place="/published")
    assert (begun.begun, begun.place, begun.state, begun.spent) == (True, "/published", "unfinished", before.spent)
    assert "its noise is lost" in begun.advice and begun.to_dict()["begun"] is True
    with pytest.raises(LedgerError, match="has drawn its noise already"):
        ledger.begin("first", place="/other")
    done = ledger.publish("first", bundle_digest="cd", place="/published")
    assert done.state == "published" and done.begun and done.place == "/published"
    assert [entry.kind for entry in ledger.history() if entry.told.get("key") == "first"] == [
        "charge",
        "begin",
        "publish",
    ]
    with pytest.raises(LedgerError, match="has drawn its noise already"):
        ledger.begin("first", place="/published")


def test_what_is_abandoned_never_begins(ledger):
    ledger.abandon("second", "the power failed")
    with pytest.raises(LedgerError, match="nothing is drawn"):
        ledger.begin("second", place="/published")
    assert not ledger.find_charge("second").begun
