"""The receipt of a charged release: in the manifest, in PRIVACY.md, on the page; checked by verify."""

import json
from fractions import Fraction

import pytest

import hushcube as hc
from hushcube.bundle.manifest import manifest_text, read_manifest
from hushcube.bundle.receipt import Receipt
from hushcube.ledger.published import published_digest
from hushcube.model.privacy import Privacy

TOTAL = Privacy.of(epsilon=4, neighbours="add-remove")
RECEIPT = Receipt("people", "20`24", "first\x1b", Fraction(1), TOTAL)
PEOPLE = {"sex": ["F", "M", "M"], "age": [0, 1, 2]}
SCHEMA = "attributes:\n- {name: sex, values: [F, M]}\n- {name: age, size: 3}\n"


@pytest.fixture(scope="module")
def measured():
    import pandas as pd

    plan = hc.plan(hc.Schema.from_yaml(SCHEMA), "1-way", epsilon=1, neighbours="add-remove", strategy="workload")
    return hc.release(plan, pd.DataFrame(PEOPLE))


def saved(measured, folder, receipt=RECEIPT):
    from dataclasses import replace

    replace(measured, receipt=receipt).save(folder)
    return folder


def test_what_was_charged_stands_in_the_bundle_and_stays_when_a_face_is_added(measured, tmp_path):
    folder = saved(measured, tmp_path / "new")
    before = published_digest(folder)
    assert hc.open(folder).receipt == RECEIPT and hc.verify(folder).holds
    statement = (folder / "PRIVACY.md").read_text()
    assert "Charged: **epsilon = 1** to the account `people`, part ``20`24``" in statement
    assert "keeps together to epsilon = 4, add-remove" in statement and "\x1b" not in statement
    hc.recover(folder, "consistent")
    hc.recover(folder, "nonnegative", out=tmp_path / "copy")
    for place in (folder, tmp_path / "copy"):
        assert hc.open(place).receipt == RECEIPT and hc.verify(place).holds and published_digest(place) == before
    assert "charged epsilon = 1 to the account 'people'" in str(hc.open(folder))


def test_other_numbers_have_another_digest(measured, tmp_path):
    other = hc.release(measured.plan, __import__("pandas").DataFrame(PEOPLE))
    digests = {published_digest(saved(one, tmp_path / str(at))) for at, one in enumerate([measured, other])}
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"charged": "999/1000"}, "does not cover"),
        ({"total": Privacy.of(epsilon=4, neighbours="replace-one").to_dict()}, "does not cover"),
        ({"account": 1}, "cannot be read"),
        ({"more": "x"}, "cannot be read"),
        ({"charged": "0.5/"}, "cannot be read"),
        ({"currency": "rho"}, "cannot be read"),
        ({"key": "second"}, "PRIVACY.md"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else None,
)
def test_a_changed_receipt_does_not_verify(measured, tmp_path, change, words):
    folder = saved(measured, tmp_path / "new")
    manifest = read_manifest(folder)
    manifest["receipt"] |= change
    (folder / "manifest.json").write_text(manifest_text(manifest))
    verdict = hc.verify(folder)
    assert not verdict.holds
    assert any(words in problem for check in verdict.checks for problem in check.problems)


def test_a_receipt_that_cannot_be_read_is_damage(measured, tmp_path):
    folder = saved(measured, tmp_path / "new")
    manifest = read_manifest(folder)
    manifest["receipt"] = json.loads('["people"]')
    (folder / "manifest.json").write_text(manifest_text(manifest))
    with pytest.raises(hc.BundleError, match=r"manifest\.json"):
        hc.open(folder)
