"""Budgets for the objective `max`: certificates, brute force, and never worse than the plan for the total."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from helpers import ADULT8, LAWS, NEIGHBOURS, applicable, label, make_plan, make_request
from hushcube.costs import row_cost as cost
from hushcube.designs.design import RECOVERIES
from hushcube.designs.errors import Errors
from hushcube.designs.request import Request
from hushcube.lattice.basis import BASES, HELMERT, MARGINAL, cell_variances, residual_variances, with_dimension
from hushcube.lattice.family import Family
from hushcube.model import noise
from hushcube.model.attribute import Attribute
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.planning.plan import read_design
from hushcube.planning.planner import compare
from hushcube.strategies import REGISTRY
from hushcube.strategies.minimax import least_maximum
from hushcube.strategies.search.largest import promising
from hushcube.strategies.search.saddle import Problem, Sparse, solve
from hushcube.strategies.strategy import objective_value

SIZES = (2, 3, 1, 4)
GAUSSIAN = {"rho": 1}
LAPLACE = {"epsilon": 1}


def lattice(law):
    """The strategies whose budgets are found here; others decide for themselves, if they look at the objective."""
    return [name for name in ("identity", "workload", "fourier", "residual", "covering") if name in applicable(law)]


def for_max(request):
    return Request(request.workload, request.privacy, effort="low", objective="max")


def largest(request, basis, measured, recovery, e):
    """max_A a_A Var(cell of A) at cost 1, from the algebra that the dense judge has judged."""
    columns = np.array(
        [float(cost.column(basis, request.schema.shape(B), pure=request.privacy.is_pure)) for B in measured]
    )
    e = e / (columns @ e)
    variances = 2 / e**2 if request.privacy.is_pure else 0.5 / e
    weights = np.ones(len(e)) if recovery == "ols" else 1 / variances
    v = residual_variances(basis, measured, variances, weights, request.spaces)
    return float((request.weights * cell_variances(request.marginals, request.spaces, v)).max())


def solution(request, basis, recovery="gls", **rest):
    measured = request.marginals if basis is MARGINAL else with_dimension(request.spaces)
    return measured, least_maximum(request, basis, measured, recovery, np.ones(len(measured)), **rest)


# ------------------------------------------------------------------------------------------------------ certificates


@pytest.mark.parametrize("words", ["1-way", "2-way", "<=3-way", "cube", "1..2-way,a0*a1*a2=50"])
@pytest.mark.parametrize("sizes", [(2, 3, 4), (50, 100, 7, 4, 2), (2, 2, 2, 2)])
def test_gaussian_residuals_are_optimal_to_a_millionth(sizes, words):
    request = make_request(sizes, words, **GAUSSIAN)
    measured, found = solution(request, HELMERT)
    assert found.gap < 1e-6
    assert found.value == pytest.approx(largest(request, HELMERT, measured, "gls", found.budgets), rel=1e-9)


@pytest.mark.parametrize(
    ("basis", "recovery", "law"),
    [
        ("marginal", "gls", GAUSSIAN),
        ("marginal", "ols", GAUSSIAN),
        ("marginal", "ols", LAPLACE),
        ("fourier", "gls", GAUSSIAN),
        ("fourier", "ols", LAPLACE),
        ("centred", "gls", LAPLACE),
    ],
)
@pytest.mark.parametrize("words", ["2-way", "<=2-way"])
def test_every_convex_problem_has_a_certificate(basis, recovery, law, words):
    request = make_request(ADULT8[3:], words, **law)
    measured, found = solution(request, BASES[basis], recovery)
    assert found.gap < 1e-5
    assert found.value == pytest.approx(largest(request, BASES[basis], measured, recovery, found.budgets), rel=1e-9)


def test_no_budgets_beat_a_bound():
    random = np.random.default_rng(0)
    for basis, law, recovery in [(HELMERT, GAUSSIAN, "gls"), (MARGINAL, GAUSSIAN, "gls"), (MARGINAL, LAPLACE, "ols")]:
        request = make_request((2, 3, 4), "<=2-way,a1=3", **law)
        measured, found = solution(request, basis, recovery)
        for _ in range(200):
            e = found.budgets * np.exp(random.normal(0, random.choice([0.001, 0.1, 1]), len(measured)))
            assert largest(request, basis, measured, recovery, e) >= found.bound * (1 - 1e-12)


def test_thirty_attributes_take_moments():
    sizes = tuple(np.random.default_rng(0).integers(2, 100, 30).tolist())
    assert solution(make_request(sizes, "<=3-way", **GAUSSIAN), HELMERT)[1].gap < 1e-6


def test_a_problem_by_hand():
    """F = (4/e_1, 1/e_2): equal at e = (4, 1)/5, where both are 5; with pooling, only the sum counts."""
    eye = Sparse(np.arange(2), np.arange(2), np.ones(2), (2, 2))
    P = Sparse(np.arange(2), np.arange(2), np.array([4.0, 1.0]), (2, 2))
    found = solve(Problem(P, eye, np.ones(2), 1), np.ones(2))
    assert found.value == pytest.approx(5, rel=1e-6) and found.budgets == pytest.approx([0.8, 0.2], rel=1e-5)
    assert found.bound == pytest.approx(5, rel=1e-6)
    both = Sparse(np.zeros(2, int), np.arange(2), np.ones(2), (1, 2))
    single = Sparse(np.zeros(1, int), np.zeros(1, int), np.ones(1), (1, 1))
    pooled = solve(Problem(single, both, np.array([1.0, 2.0]), 1, np.ones(1)), np.ones(2))
    assert pooled.value == pytest.approx(1, rel=1e-6) and pooled.gap < 1e-6


# -------------------------------------------------------------------------------------------------------- brute force


def brute_force(request, basis, measured, recovery):
    """scipy on the epigraph: minimise u subject to log F_A(t) <= u, the cost being part of F."""
    columns = np.array(
        [float(cost.column(basis, request.schema.shape(B), pure=request.privacy.is_pure)) for B in measured]
    )

    def logs(x):
        e = np.exp(x[:-1])
        e /= columns @ e
        variances = 2 / e**2 if request.privacy.is_pure else 0.5 / e
        weights = np.ones(len(e)) if recovery == "ols" else 1 / variances
        v = residual_variances(basis, measured, variances, weights, request.spaces)
        return x[-1] - np.log(request.weights * cell_variances(request.marginals, request.spaces, v))

    start = np.zeros(len(measured) + 1)
    start[-1] = -logs(start).min()
    options = {"maxiter": 1000, "ftol": 1e-12}
    answer = minimize(
        lambda x: x[-1],
        start,
        jac=lambda x: np.eye(len(x))[-1],
        constraints={"type": "ineq", "fun": logs},
        method="SLSQP",
        bounds=[(-12, 3)] * len(measured) + [(None, None)],
        options=options,
    )
    return largest(request, basis, measured, recovery, np.exp(answer.x[:-1]))


@pytest.mark.parametrize(
    ("basis", "recovery", "law"),
    [(HELMERT, "gls", GAUSSIAN), (MARGINAL, "gls", GAUSSIAN), (MARGINAL, "ols", GAUSSIAN), (MARGINAL, "ols", LAPLACE)],
)
@pytest.mark.parametrize(
    ("sizes", "words"),
    [((2, 3, 4), "2-way"), ((2, 3, 4), "<=2-way,a0*a1=5,a2=1/9"), ((3, 5), "cube"), ((2, 7, 3), "1-way")],
)
def test_brute_force_finds_nothing_better(basis, recovery, law, sizes, words):
    request = make_request(sizes, words.replace("1/9", "0.111"), **law)
    measured, found = solution(request, basis, recovery)
    assert found.value == pytest.approx(brute_force(request, basis, measured, recovery), rel=2e-5)


# ------------------------------------------------------------------------------------------------------- closed forms


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN])
def test_without_recovery_all_weighted_variances_are_equal(law):
    request = for_max(make_request((2, 3, 4), "2-way,a0*a1=9,a2=4", **law))
    plan = make_plan(request, "workload", "optimal", "none")
    weighted = request.weights * plan.errors.cell_variances(exact=False)
    assert weighted == pytest.approx(np.full(len(weighted), weighted[0]), rel=1e-9)
    e = np.sqrt([1, 1, 9, 4]) if law is LAPLACE else np.array([1, 1, 9, 4])
    assert weighted[0] == pytest.approx(2 * e.sum() ** 2 if law is LAPLACE else e.sum() / 2, rel=1e-9)


# ------------------------------------------------------------------------------------------------------ Laplace noise


@pytest.mark.parametrize("words", ["2-way", "<=2-way", "cube"])
def test_the_descent_is_not_worse_than_its_starts(words):
    request = make_request((5, 2, 7, 3), words, **LAPLACE)
    measured = request.marginals
    given = np.random.default_rng(1).random(len(measured))
    found = least_maximum(request, MARGINAL, measured, "gls", request.energies, given)
    total = noise.LAPLACE.best_budgets(request.energies, np.ones(len(measured)))
    for start in (given, total, np.ones(len(measured))):
        assert found.value <= largest(request, MARGINAL, measured, "gls", start) * (1 + 2e-6)
    assert found.bound == 0 and found.gap == np.inf


def test_covers_are_covers():
    request = make_request((3, 4, 5, 2, 2), "2-way", **LAPLACE)
    for sets, budgets in promising(request, request.weights, seed=0):
        assert len(sets) == len(budgets) and (budgets > 0).all()
        assert all(any(set(m) <= set(s) for s in sets) for m in request.workload.marginals)


def test_covering_is_better_than_the_tables_and_than_the_support_of_the_total():
    request = for_max(make_request((3, 4, 5, 2, 2), "2-way", **LAPLACE))
    found = make_plan(request, "covering").errors.max_variance()
    assert found < 58 < 75 < make_plan(request, "workload").errors.max_variance()


# ------------------------------------------------------------------------------------------------------------- plans


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("words", ["<=2-way", "a0*a1,a1*a3=1000,a3", "0-way"])
def test_the_maximum_is_never_larger_than_that_of_the_plan_for_the_total(words, law, neighbours):
    request = make_request(SIZES, words, neighbours=neighbours, **law)
    found = {}
    for strategy, recovery in product(lattice(law), RECOVERIES):
        total, plan = (make_plan(r, strategy, "optimal", recovery) for r in (request, for_max(request)))
        found[strategy, recovery] = plan.errors.max_variance()
        assert found[strategy, recovery] <= total.errors.max_variance() * (1 + 1e-12), label(plan)
        assert plan.details == {"objective": "max"} and "objective" not in total.details
        assert read_design(plan.to_json()).digest == plan.digest
        uniform = [make_plan(r, strategy, "uniform", recovery) for r in (request, for_max(request))]
        assert uniform[0].measured == uniform[1].measured and (uniform[0].budgets == uniform[1].budgets).all()
    if "epsilon" in law and "delta" not in law:
        assert all(found["covering", way] <= found["workload", way] * (1 + 1e-12) for way in RECOVERIES)


@pytest.mark.parametrize("law", [law for law in LAWS if law != {"rho": 20}], ids=str)
def test_a_heavier_weight_makes_a_variance_smaller(law):
    """At rho = 20 noise is so narrow that even budgets are the best for either weight."""
    plain, heavy = (for_max(make_request((2, 3, 4), f"2-way,a0*a1={w}", **law)) for w in (1, 16))
    for strategy in lattice(law):
        before, after = (make_plan(request, strategy) for request in (plain, heavy))
        if len(before.measured) == 1:  # which has all of the budget
            continue
        at = plain.marginals.ids([(0, 1)])[0]
        assert after.errors.cell_variances(exact=True)[at] < 0.6 * before.errors.cell_variances(exact=True)[at]


def test_the_total_is_planned_as_before():
    for law in LAWS:
        request = make_request((2, 3, 4), "<=2-way", **law)
        named = Request(request.workload, request.privacy, effort="low", objective="total")
        for strategy in lattice(law):
            assert make_plan(request, strategy).digest == make_plan(named, strategy).digest
    plan = make_plan(make_request((2, 3, 4), "<=2-way", **LAPLACE), "workload")
    shape = noise.LAPLACE.best_budgets(plan.request.energies, np.ones(len(plan.budgets)))
    assert plan.budgets == pytest.approx(shape / shape.sum(), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_plans_are_compared_by_the_objective(law):
    request = make_request((2, 9, 4), "<=2-way,a1=5", **law)
    for asked, value in ((request, Errors.weighted_variance), (for_max(request), Errors.max_variance)):
        comparison = compare(asked, strategy="all")
        plans = [candidate.plan for candidate in comparison.candidates]
        assert value(comparison.chosen.errors) == min(
            value(plan.errors) for plan in plans if REGISTRY[plan.strategy].automatic
        )
        assert all(objective_value(plan) == value(plan.errors) for plan in plans)


# ------------------------------------------------------------------------------------------------------------- forms


@pytest.mark.slow
@pytest.mark.parametrize("words", ["prefix(age)", "2-way,ranges(age)", "1-way,prefix(age)*sex=3"])
def test_forms_count_by_their_worst_answer(words):
    schema = Schema(
        (Attribute(name="age", range=(0, 9)), Attribute(name="sex", values=("F", "M")), Attribute(name="x", codes=3))
    )
    workload = Workload.parse(words, schema)
    for law, neighbours in product((GAUSSIAN, LAPLACE), NEIGHBOURS):
        privacy = Privacy.of(neighbours=neighbours, **law)
        request = Request(workload, privacy, effort="low", objective="max")
        for strategy, recovery in product(lattice(law), RECOVERIES):
            plan = make_plan(request, strategy, "optimal", recovery)
            total = make_plan(Request(workload, privacy, effort="low"), strategy, "optimal", recovery)
            assert plan.errors.max_variance() <= total.errors.max_variance() * (1 + 1e-12), label(plan)
    request = Request(workload, Privacy.of(rho="1/2", neighbours="add-remove"), objective="max")
    found = solution(request, HELMERT)[1]
    assert found.gap < 3e-6
    assert make_plan(request, "residual").errors.max_variance(exact=False) == pytest.approx(2 * found.value, rel=3e-6)


def test_a_public_total_is_left_out():
    """Under replace-one the total costs nothing; what is not measured with noise has no budget to find."""
    request = make_request((2, 3), "0-way", neighbours="replace-one", **GAUSSIAN)
    measured = Family.of([()], (2, 3))
    assert least_maximum(request, MARGINAL, measured, "gls", np.ones(1)).value == 0
    both = make_request((2, 3), "<=1-way", neighbours="replace-one", **GAUSSIAN)
    found = least_maximum(both, HELMERT, both.spaces, "gls", np.ones(3))
    noisy = with_dimension(Family.of([(0,), (1,)], (2, 3)))
    columns = noisy.product(1 - 1 / noisy.sizes)
    assert columns @ found.budgets[1:] == pytest.approx(1, rel=1e-6)
