"""What a release holds in memory follows from its plan, and is refused where it cannot fit."""

import tracemalloc

import pytest

from helpers import MemoryEngine, make_plan, make_request, random_codes
from hushcube.errors import BadInput, TooLarge
from hushcube.model.arrays import keep_freed
from hushcube.planning import memory
from hushcube.planning.planner import compare
from hushcube.private.measure import measure


@pytest.fixture
def limit(monkeypatch):
    return lambda text: monkeypatch.setenv(memory.VARIABLE, text)


def test_tables_that_cannot_fit_are_refused_when_planned(limit):
    """All 8-way tables of 9 attributes of 10 values: 9 tables of 10^8 cells."""
    limit("4GB")
    request = make_request((10,) * 9, "8-way", rho="1/2")
    with pytest.raises(TooLarge, match=r"memory: [\d,]+ MB are more than the 4,000 that can be held.*HUSHCUBE_MEMORY"):
        compare(request, strategy="workload")
    with pytest.raises(TooLarge, match="memory"):
        compare(request)
    limit("64GB")
    assert compare(request, strategy="residual").chosen.strategy == "residual"


def test_auto_takes_what_fits(limit):
    request = make_request((10,) * 3, "2-way", epsilon=1)
    least = min(memory.needed(make_plan(request, name)) for name in ("identity", "workload", "residual"))
    limit(str(least))
    comparison = compare(request, strategy="all", budgets="optimal", recovery="gls")
    assert all(memory.needed(candidate.plan) <= least for candidate in comparison.candidates)
    assert any("memory" in reason for reason in comparison.skipped.values())


def test_a_plan_from_elsewhere_is_refused_before_data_is_read(limit):
    plan = make_plan(make_request((10, 10), epsilon=1), "identity")
    limit("1KB")

    class Unread:
        def count(self, *_given, **_more):
            raise AssertionError("data was read")

    with pytest.raises(TooLarge, match="memory"):
        measure(plan, Unread())


@pytest.mark.parametrize(
    ("strategy", "law", "words"),
    [
        ("identity", {"epsilon": 1}, "6-way"),
        ("residual", {"rho": "1/2"}, "6-way"),
        ("workload", {"rho": "1/2"}, "5-way"),
    ],
)
def test_the_estimate_is_no_more_than_what_is_held(strategy, law, words):
    """What works today must not be refused."""
    keep_freed()  # one block for all of the process, which is of no consequence
    plan = make_plan(make_request((10,) * 6, words, **law), strategy)
    codes = random_codes(plan.schema.sizes, 100)
    largest = plan.request.marginals.batches[-1]
    tracemalloc.start()
    plan.answers(measure(plan, MemoryEngine(codes))).tables(largest.rows[:1], largest.shape)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert memory.needed(plan) < 1.25 * peak


def test_what_was_measured_fits():
    """Of 100 attributes of 10 values all tables of at most 3: 162 million cells at 1.3 GB."""
    plan = make_plan(make_request((10,) * 100, "<=3-way", rho="1/2"), "residual")
    assert memory.needed(plan) < 1.3e9


@pytest.mark.parametrize("text", ["much", "0", "-1GB", "1" * 5000, "1e400", "GB"])
def test_the_limit_is_an_amount(limit, text):
    limit(text)
    with pytest.raises(BadInput, match="HUSHCUBE_MEMORY"):
        memory.available()
