"""Replays in their short form, and that they would find what they look for."""

from collections import defaultdict

import pytest

from audit import replay
from audit.mechanisms import in_memory
from audit.tags import Violation
from helpers import MemoryEngine, every_plan, make_request
from hushcube.release import bundle

BY_FAMILY = defaultdict(list)
for found, how, most in replay.attacks("short"):
    BY_FAMILY[getattr(found, "family", "adaptive methods")].append((found, how, 2 if most is None else most))


@pytest.mark.parametrize("family", BY_FAMILY)
def test_with_the_noisy_answers_frozen_everything_is_the_same(family):
    assert sum(replay.attack(*one) for one in BY_FAMILY[family]) >= len(BY_FAMILY[family])


def test_about_three_hundred_pairs_are_replayed():
    assert sum(pairs for family in BY_FAMILY.values() for *_, pairs in family) >= replay.PAIRS["short"]


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
