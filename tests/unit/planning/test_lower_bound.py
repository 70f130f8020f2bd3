"""No plan is better than the bound, and `auto` stops where a plan reaches it."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from helpers import ADULT8, make_request
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.request import Request
from hushcube.lattice.basis import MARGINAL
from hushcube.model.attribute import Attribute
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.planning.lower_bound import least_total, least_total_of_tables
from hushcube.planning.planner import compare
from hushcube.strategies import REGISTRY
from hushcube.strategies.search.supports import SupportProblem
from hushcube.strategies.strategy import objective_value

SIZES = (2, 3, 4)
GUARANTEES = [
    {"rho": "0.01"},
    {"rho": "0.5"},
    {"rho": 3},
    {"epsilon": 1},
    {"epsilon": 9},
    {"epsilon": 1, "delta": "1e-6"},
]
NEIGHBOURS = ["add-remove", "replace-one"]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=4).map(tuple),
    word=st.sampled_from(["1-way", "2-way", "<=2-way", "cube", "a0=7", "0-way,a0"]),
    guarantee=st.sampled_from(GUARANTEES),
    neighbours=st.sampled_from(NEIGHBOURS),
    rows=st.sampled_from([1, 3]),
)
def test_no_plan_is_better(sizes, word, guarantee, neighbours, rows):
    request = make_request(sizes, word, neighbours=neighbours, rows_per_person=rows, **guarantee)
    least = least_total(request)
    everything = compare(request, strategy="all")
    assert least == everything.least
    for candidate in everything.candidates:
        assert objective_value(candidate.plan) >= least * (1 - 1e-9), candidate.plan.strategy
    of_tables = least_total_of_tables(request)
    assert (of_tables is None) == ("delta" in guarantee or "rho" in guarantee)
    if of_tables is None:
        return
    assert of_tables >= least * (1 - 2e-3)  # the certificate stops a little before the best one
    for plan in (candidate.plan for candidate in everything.candidates):
        if isinstance(plan, LatticeDesign) and plan.basis == MARGINAL:
            assert objective_value(plan) >= of_tables, plan.strategy


@pytest.mark.parametrize("words", ["2-way", "<=2-way", "cube", "a0*a1=3,a2"])
@pytest.mark.parametrize("guarantee", [{"rho": "0.01"}, {"rho": "0.5"}], ids=str)
def test_residual_reaches_it_under_rho(words, guarantee):
    """So the bound is no larger than it may be, and no smaller than it could be."""
    request = make_request(SIZES, words, **guarantee)
    found = compare(request, strategy="residual")
    assert objective_value(found.chosen) == pytest.approx(least_total(request), rel=1e-6)
    assert found.is_optimal


@pytest.mark.parametrize(
    "guarantee",
    [
        {"rho": "0.1", "neighbours": "add-remove"},
        {"rho": "0.1", "neighbours": "replace-one"},
        {"epsilon": 1, "neighbours": "add-remove"},
    ],
    ids=str,
)
def test_one_table_is_measured_as_it_is(guarantee):
    found = compare(make_request(SIZES, "a1*a2", **guarantee))
    assert found.is_optimal
    assert len(found.candidates) < len(REGISTRY)


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.integers(2, 6), min_size=2, max_size=5).map(tuple),
    words=st.sampled_from(["1-way", "2-way", "<=2-way", "2-way,a0=9", "cube"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_budgets_on_tables_are_better(sizes, words, seed):
    """Any tables with any budgets, and what descents from there come to."""
    request = make_request(sizes, words, epsilon="0.001")  # where the discrete law is as wide as the continuous one
    random = np.random.default_rng(seed)
    d = len(sizes)
    tables = [c for k in range(d + 1) for c in combinations(range(d), k)]
    starts = np.log(random.exponential(size=(30, len(tables))) ** 3 + 1e-9)
    problem = SupportProblem(request)
    least = least_total_of_tables(request) / 1e6
    for steps in (0, 300):
        assert min(s.error for s in problem.optimise_shared(tables, starts, steps=steps)) >= least * (1 - 1e-6)


@pytest.mark.parametrize(
    ("sizes", "words", "most"),
    [
        (ADULT8, "2-way", 914_756 / 773_000),
        (ADULT8, "1..3-way", 2.91283e7 / 1.916e7),
        ((2,) * 16, "2-way", 510_924 / 304_000),
        (SIZES, "a0*a1", 1.001),
        (SIZES, "cube", 1.6),
    ],
    ids=str,
)
def test_the_bound_of_tables_is_near(sizes, words, most):
    """Known totals over the bound: how far the search may be from the best, at most."""
    known = {(ADULT8, "2-way"): 914_756, (ADULT8, "1..3-way"): 2.91283e7, ((2,) * 16, "2-way"): 510_924}
    request = make_request(sizes, words, epsilon="0.001")
    reached = known.get((sizes, words)) or objective_value(compare(request).chosen) / 1e6
    assert 1 <= reached / (least_total_of_tables(request) / 1e6) <= most


def test_auto_stops_at_what_is_proven_and_nowhere_else():
    request = make_request(SIZES, "2-way", rho="0.5")
    assert [c.plan.strategy for c in compare(request).candidates] == ["residual"]
    assert len(compare(request, settle=False).candidates) > 5
    assert len(compare(request, strategy="all").candidates) > 5
    uniform = compare(request, budgets="uniform")
    assert len(uniform.candidates) > 5 and not uniform.is_optimal


def test_auto_does_not_search_for_the_last_half_percent():
    """Under (epsilon, delta) `residual` is that near: proofs for discrete noise take a little."""
    request = make_request(ADULT8, "2-way", epsilon=1, delta="1e-6")
    found, everything = compare(request), compare(request, settle=False)
    assert found.chosen.strategy == everything.chosen.strategy == "residual"
    assert not found.is_optimal
    assert {"bmax", "pmost", "cluster"} <= set(found.skipped)
    tried = {candidate.plan.strategy for candidate in found.candidates}
    assert not tried & {"bmax", "pmost", "cluster"} and {"identity", "workload", "fourier"} <= tried


def test_many_large_attributes_under_rho_need_no_search():
    sizes = (2, 101, 11, 100, 15, 32, 5, 9, 100, 100, 2, 11, 101, 100, 100, 42, 100, 101, 8, 8)
    found = compare(make_request(sizes, "3-way", rho="0.5"))
    assert [c.plan.strategy for c in found.candidates] == ["residual"]


def test_where_no_bound_is_known():
    largest = replace(make_request(SIZES, "2-way", rho=1), objective="max")
    ordered = Schema((Attribute(name="age", range=(0, 5)), Attribute(name="sex", values=("F", "M"))))
    ranges = Request(Workload.parse("prefix(age)", ordered), Privacy.of(rho=1, neighbours="add-remove"))
    for request in (largest, ranges):
        assert least_total(request) is None and least_total_of_tables(request) is None
        assert not compare(request).is_optimal
    assert least_total_of_tables(make_request((2,) * 17, "2-way", epsilon=1)) is None
    assert least_total_of_tables(make_request(SIZES, "0-way", epsilon=1, neighbours="replace-one")) == 0
