"""What was published is looked at again: its digest, its plan, and what it costs."""

import json
from fractions import Fraction

import pytest

import hushcube as hc
from hushcube.ledger.published import published_digest
from hushcube.planning.pricing import price
from hushcube.samples import TITANIC, titanic


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A release, made without a ledger."""
    folder = tmp_path_factory.mktemp("published") / "release"
    plan = hc.plan(TITANIC, "1-way", epsilon=1, neighbours="add-remove")
    return hc.release(plan, titanic(), out=folder).plan, folder


def recorded(tmp_path, plan, folder, *, digest=None, amount=None, plan_digest=None, **account):
    ledger = hc.Ledger.create(tmp_path / "ledger.db")
    made = ledger.create_account("people", **{"epsilon": 2, "neighbours": "add-remove"} | account)
    due = price(plan, made.privacy) if amount is None else amount
    ledger.charge("people", due, key="k", plan_digest=plan_digest or plan.digest, data="titanic")
    ledger.publish("k", bundle_digest=digest or published_digest(folder), place=folder)
    (check,) = (check for check in ledger.verify().checks if check.name == "published")
    return check


@pytest.mark.parametrize("account", [{}, {"epsilon": None, "rho": 1}], ids=["pure", "rho"])
def test_what_is_as_it_was_holds(tmp_path, published, account):
    check = recorded(tmp_path, *published, **account)
    assert check.holds and check.checked == 1


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"digest": "another"}, "its digest is another"),
        ({"plan_digest": "another"}, "has another plan than was charged for"),
        ({"amount": Fraction(1, 2)}, r"costs 1, and 0\.5 was charged"),
    ],
)
def test_what_is_not_is_found(tmp_path, published, given, problem):
    import re

    (found,) = recorded(tmp_path, *published, **given).problems
    assert re.search(problem, found)


def test_what_is_elsewhere_is_remarked(tmp_path, published):
    check = recorded(tmp_path, published[0], tmp_path / "gone", digest="d")
    assert check.holds and not check.checked and "is not here, and was not checked" in check.remarks[0]


def test_the_digest_is_of_plan_and_measurements_alone(tmp_path, published):
    import shutil

    _, folder = published
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "manifest.json").unlink()
    (copy / "PRIVACY.md").write_text("changed")
    assert published_digest(copy) == published_digest(folder)
    told = json.loads((copy / "plan.json").read_text())
    (copy / "plan.json").write_text(json.dumps(told, indent=1))
    assert published_digest(copy) != published_digest(folder)
    shutil.rmtree(copy / "measurements")
    with pytest.raises(hc.LedgerError, match="place: has no measurements"):
        published_digest(copy)
