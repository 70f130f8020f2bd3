"""The search for supports: its algebra against the planner's, its designs against their definition, its results."""

from itertools import combinations

import numpy as np
import pytest

from helpers import ADULT8, make_plan, make_request, make_schema
from hushcube.designs import LatticeDesign
from hushcube.designs.request import Request
from hushcube.errors import NotApplicable
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.planning.planner import compare
from hushcube.strategies.search.descent import minimise
from hushcube.strategies.search.local import known_designs
from hushcube.strategies.search.supports import GreedyCovers, SupportProblem, evenly, optimise_own_tables

BINARY16 = (2,) * 16


def total(request, strategy="covering"):
    return make_plan(request, strategy).errors.total_variance(exact=False)


@pytest.mark.parametrize("strength", [2, 3])
def test_every_few_points_of_a_design_lie_in_a_block(strength):
    designs = known_designs(strength, 31)
    assert {"AG(2, 4)", "PG(2, 5)", "planes(3)", "halves(4)"} & {d.name for d in designs}
    for design in designs:
        blocks = [set(block) for block in design.blocks]
        assert all(any(set(few) <= b for b in blocks) for few in combinations(range(design.points), strength)), (
            design.name
        )


def test_greedy_covers_cover_within_the_threshold():
    sizes = np.array([2.0, 3, 4, 5])
    marginals = list(combinations(range(4), 2))
    candidates = [c for k in range(1, 5) for c in combinations(range(4), k)]
    covers = GreedyCovers(marginals, candidates, sizes)
    for threshold in covers.thresholds(10).tolist():
        for cover in covers.covers(threshold, 5, np.random.default_rng(0)):
            for m in marginals:
                holding = [c for c in cover if set(m) <= set(c)]
                assert min(np.prod(sizes[list(c)]) / np.prod(sizes[list(m)]) for c in holding) <= threshold


def test_descent_minimises_rosenbrock_from_many_starts():
    def rosenbrock(x):
        a, b = x[:, 0], x[:, 1]
        value = (1 - a) ** 2 + 100 * (b - a**2) ** 2
        return value, np.stack((-2 * (1 - a) - 400 * a * (b - a**2), 200 * (b - a**2)), axis=1)

    starts = np.random.default_rng(0).uniform(-2, 2, (50, 2))
    points, values = minimise(rosenbrock, starts, steps=500, tolerance=1e-15)
    assert np.allclose(points, 1, atol=1e-3) and (values < 1e-6).all()


def test_the_searched_error_is_the_planned_one():
    """F of the search equals the total variance of a plan with the same tables and budgets; weights count."""
    for words in ("2-way", "1..3-way", "<=2-way,a0*a1=5"):
        request = make_request((2, 3, 4, 5), words, epsilon=1)
        problem = SupportProblem(request)
        for support in problem.optimise(evenly([request.workload.marginals, ((0, 1, 2, 3),)]), steps=3):
            plan = make_plan(request, "workload")
            family, budgets = _family(request, support, plan)
            by_hand = LatticeDesign(request, "by hand", "optimal", "gls", "direct", budgets, plan.basis, family)
            cells = request.marginals.cells * request.weights
            assert (by_hand.errors.cell_variances(exact=False) * cells).sum() == pytest.approx(support.error, rel=1e-6)


def _family(request, support, plan):
    family = type(plan.measured).of(support.sets, request.schema.sizes)
    budgets = np.empty(len(family))
    budgets[family.ids(support.sets)] = support.budgets * (1 - 1e-12)
    return family, budgets


def test_the_gradient_is_that_of_the_objective():
    request = make_request((2, 3, 4), "2-way", epsilon=1)
    problem = SupportProblem(request)
    sets = [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    seen = []

    def spy(objective, start, *, steps, narrowed=None):
        base, gradient = objective(start)
        for v in range(start.shape[1]):
            moved = start.copy()
            moved[:, v] += 1e-6
            seen.append((objective(moved)[0] - base) / 1e-6 - gradient[:, v])
        return start, base

    import hushcube.strategies.search.supports as supports

    original, supports.minimise = supports.minimise, spy
    try:
        problem.optimise_shared(sets, np.random.default_rng(0).normal(size=(5, 4)), steps=1)
        optimise_own_tables(request, steps=1)
    finally:
        supports.minimise = original
    assert np.abs(np.concatenate(seen)).max() < 1e-4


def test_own_tables_whose_budget_has_vanished_are_left_out():
    words = "a0*a1*a3*a4=4,a0*a3,a2*a3,a1*a2*a4,a0*a1*a2*a3*a4"
    found = optimise_own_tables(make_request((2, 3, 1, 6, 3), words, epsilon=1), steps=40)
    assert found.sets == ((0, 1, 3, 4),) and found.budgets.tolist() == [1.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "words", "most"),
    [
        (ADULT8, "<=2-way", 1.00e6),  # HDMM's optimiser reaches 1.126e6
        (ADULT8, "2-way", 9.2e5),
        (ADULT8, "1..3-way", 2.93e7),
        (BINARY16, "2-way", 5.57e5),  # AG(2, 4) with uniform budgets
        (BINARY16, "1..3-way", 1.86e7),  # S(3, 4, 8) with every point doubled
    ],
    ids=str,
)
def test_totals_that_the_default_effort_reaches(sizes, words, most):
    privacy = Privacy.of(epsilon=1, neighbours="add-remove")
    assert total(Request(Workload.parse(words, make_schema(sizes)), privacy)) <= most


@pytest.mark.slow
@pytest.mark.parametrize(("d", "words"), [(30, "2-way"), (30, "<=3-way"), (100, "2-way"), (100, "<=3-way")])
def test_many_attributes_are_served_and_never_worse_than_the_workload(d, words):
    request = make_request((10,) * d, words, epsilon=1)
    assert total(request) <= total(request, "workload")


def test_searches_repeat():
    first, second = (make_plan(make_request((3, 4, 5, 2, 2), "2-way", epsilon=e), "covering") for e in (1, 2))
    assert list(first.measured) == list(second.measured)
    assert np.allclose(first.budgets * 2, second.budgets)


def test_gaussian_noise_is_refused_with_the_better_choice():
    with pytest.raises(NotApplicable, match="residual"):
        compare(make_request((2, 3), "2-way", rho=1), strategy="covering")
