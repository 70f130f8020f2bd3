"""Shares of an account: what one of those who ask may spend in all, counted where the charge is."""

import threading
from fractions import Fraction

import pytest

from hushcube.errors import LedgerError, NotEnoughBudget
from hushcube.ledger.ledger import Ledger


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "ledger.db") as made:
        made.create_account("people", epsilon=5, neighbours="add-remove")
        yield made


def charge(ledger, key, amount="0.01", who=None, share=None):
    asked = ledger if who is None else ledger.asked_by(who, share)
    return asked.charge("people", amount, key=key, plan_digest="ab", data="people.csv")


def test_nobody_spends_more_than_their_share(ledger):
    assert charge(ledger, "1", "0.3", who="dana", share="0.5").who == "dana"
    with pytest.raises(NotEnoughBudget, match=r"share of 'dana' in 'people' has 0\.2 epsilon left") as refused:
        charge(ledger, "2", "0.3", who="dana", share="0.5")
    assert (refused.value.requested, refused.value.left) == (Fraction("0.3"), Fraction("0.2"))
    assert ledger.account("people").spent == Fraction("0.3")
    charge(ledger, "3", "0.2", who="dana", share="0.5")  # to the last fraction
    charge(ledger, "4", "0.3", who="erik", share="0.5")
    charge(ledger, "5", "0.3")  # the owner
    assert ledger.verify().holds
    assert ledger.spent_by("people", "dana") == Fraction("0.5") and ledger.spent_by("people", "rita") == 0


def test_the_same_key_is_not_counted_twice(ledger):
    first = charge(ledger, "1", "0.3", who="dana", share="0.5")
    assert charge(ledger, "1", "0.3", who="dana", share="0.5") == first
    assert ledger.spent_by("people", "dana") == Fraction("0.3")


def test_what_is_abandoned_stays_spent(ledger):
    ledger.abandon(charge(ledger, "1", "0.5", who="dana", share="0.5"), "the machine is gone")
    with pytest.raises(NotEnoughBudget):
        charge(ledger, "2", who="dana", share="0.5")


def test_a_share_is_an_amount_and_somebodys(ledger):
    with pytest.raises(LedgerError, match="share"):
        ledger.asked_by("dana", "much")
    with pytest.raises(LedgerError, match="who"):
        ledger.asked_by("")


def test_many_at_once_are_granted_exactly_the_share(ledger):
    granted = []

    def one(number):
        for again in range(5):
            try:
                granted.append(charge(ledger, f"{number}/{again}", who="dana", share="0.2"))
            except NotEnoughBudget:
                continue

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 20 and ledger.spent_by("people", "dana") == ledger.account("people").spent == Fraction("0.2")
