"""Replays in their short form, and that they would find what they look for."""

import pytest

from audit import replay
from audit.exact import ADAPTIVE
from audit.mechanisms import FAMILIES, in_memory
from audit.tags import Violation
from helpers import MemoryEngine, every_plan, make_request
from hushcube.bundle import writing as bundle


@pytest.mark.parametrize("family", [*FAMILIES, ADAPTIVE])
def test_with_the_noisy_answers_frozen_everything_is_the_same(family):
    """About 300 pairs in all."""
    tried = [replay.attack(one, how, 2 if most is None else most) for one, how, most in replay.attacks("short", family)]
    assert len(tried) >= 4 and min(tried) >= 1


# ------------------------------------------------------------------------------------------------ the judge has teeth


@pytest.fixture
def mechanism():
    return in_memory("", "", next(every_plan(make_request((2, 3), "cube", epsilon=1), ["workload"], ["gls"])))


def rows_seen(monkeypatch):
    """The number of rows of the data at hand."""
    rows, count = [], MemoryEngine.count
    monkeypatch.setattr(
        MemoryEngine, "count", lambda self, *a, **k: rows.append(len(self.codes)) or count(self, *a, **k)
    )
    return rows


def test_a_number_of_rows_in_the_manifest_is_found(mechanism, monkeypatch):
    rows, manifest = rows_seen(monkeypatch), bundle.make_manifest
    monkeypatch.setattr(bundle, "make_manifest", lambda *a, **k: {**manifest(*a, **k), "hushcube": rows[-1]})
    with pytest.raises(Violation, match="other files are published"):
        replay.attack(mechanism, replay.replay, 1)


def test_another_way_for_other_data_is_found(mechanism, monkeypatch):
    code = "def check(counts):\n    if counts.rows % 2:\n        return\n    return\n"
    leaking = {}
    exec(compile(code, f"{replay.HERE}/leak.py", "exec"), leaking)
    monkeypatch.setattr("hushcube.private.measure._check_rows", leaking["check"])
    with pytest.raises(Violation, match="another way was taken"):
        replay.attack(mechanism, replay.replay, 1)
