"""A comparison in short: each distinct strategy once, at its best, with those that come to the same."""

import math

import pytest

from helpers import make_request
from hushcube.planning.planner import compare
from hushcube.planning.summary import compared_strategies, merged_variants
from hushcube.strategies import ALL
from hushcube.strategies.strategy import objective_value


@pytest.fixture(scope="module")
def comparison():
    return compare(make_request((2, 3, 4, 2), "<=2-way", epsilon=1), strategy="all")


def test_every_strategy_is_on_one_line_with_its_best_variant(comparison):
    lines = compared_strategies(comparison)
    plans = [candidate.plan for candidate in comparison.candidates]
    assert sorted(name for line in lines for name in line.names) == sorted({plan.strategy for plan in plans})
    for line in lines:
        assert line.design.strategy == line.names[0] and line.measures == ALL[line.names[0]].measures
        for name in line.names:
            best = min(objective_value(plan) for plan in plans if plan.strategy == name)
            assert objective_value(line.design) == pytest.approx(best, rel=1e-8)


def test_lines_are_distinct_and_the_best_comes_first(comparison):
    lines = compared_strategies(comparison)
    values = [objective_value(line.design) for line in lines]
    assert values == sorted(values) and len({f"{value:.9g}" for value in values}) == len(values)
    assert [line.times_best for line in lines] == [value / values[0] for value in values]
    assert [line.is_chosen for line in lines].count(True) == 1
    (chosen,) = (line for line in lines if line.is_chosen)
    assert chosen.design is comparison.chosen


def test_a_line_tells_the_errors_of_its_plan(comparison):
    for line in compared_strategies(comparison):
        assert line.total_variance == line.design.errors.total_variance(exact=True)
        assert line.typical_error == math.sqrt(line.total_variance / line.design.workload.cells)
        assert line.largest_error == math.sqrt(line.design.errors.max_variance(weighted=False))


def test_strategies_under_two_names_share_a_line(comparison):
    lines = compared_strategies(comparison)
    for one, other in (("identity", "base"), ("workload", "all-cuboids")):
        assert any({one, other} <= set(line.names) for line in lines)


def test_merged_variants_hold_every_plan_once(comparison):
    groups = merged_variants(comparison)
    assert sum(map(len, groups)) == len(comparison.candidates)
    assert all(len({plan.strategy for plan in group}) == 1 for group in groups)
    assert [objective_value(group[0]) for group in groups] == sorted(objective_value(group[0]) for group in groups)


def test_what_is_public_needs_no_comparison_of_errors():
    """Under replace-one the total costs nothing, so that no variance can be divided by."""
    (line,) = compared_strategies(
        compare(make_request((2, 2), "<=0-way", epsilon=1, neighbours="replace-one"), strategy="workload")
    )
    assert line.total_variance == 0 and line.times_best == 1
