"""Yaroslavtsev et al. 2013: the numbers of docs/maths.md section 9, by their numbers there."""

import math

import numpy as np
import pytest

from helpers import below, hand_plan, make_plan, make_request
from hushcube.costs import calibrate
from hushcube.lattice import hadamard
from hushcube.lattice.basis import FOURIER, MARGINAL
from hushcube.lattice.family import Family
from hushcube.model.noise import GAUSSIAN, LAPLACE, Measurement

INTRO = "a0,a0*a1"
FOUR_NINTHS = (4 / 9, 5 / 9)


def total(plan):
    return plan.errors.total_variance(exact=False)


def intro_plan(shares, recovery, sets=((0,), (0, 1)), **privacy):
    request = make_request((2, 2), INTRO, **(privacy or {"epsilon": 1}))
    return hand_plan(request, MARGINAL, list(sets), below(shares, 1), recovery=recovery)


def test_vector_1_uniform_budgets_48():
    assert total(make_plan(make_request((2, 2), INTRO, epsilon=1), "workload", "uniform", "none")) == pytest.approx(
        48, rel=1e-9
    )


def test_vector_1_four_ninths_46_17():
    assert total(intro_plan(FOUR_NINTHS, "none")) == pytest.approx(46.17, rel=1e-9)


def test_vector_1_optimal_budgets():
    plan = make_plan(make_request((2, 2), INTRO, epsilon=1), "workload", "optimal", "none")
    assert total(plan) == pytest.approx(46.167865222356866, rel=1e-9)


def test_vector_1_half_weights_34_6275():
    """The paper's own recovery: A and AB each the mean of two estimates (AB cell: itself, or A less its sibling)."""
    A, AB = intro_plan(FOUR_NINTHS, "none").errors.set_variances(exact=False)
    assert pytest.approx(34.6275, rel=1e-9) == 2 * (A + 2 * AB) / 4 + 4 * (AB + (A + AB)) / 4


def test_vector_2_gls_at_four_ninths():
    plan = intro_plan(FOUR_NINTHS, "gls")
    assert plan.errors.cell_variances(exact=False) == pytest.approx([5.684210526315789, 4.661052631578947], rel=1e-9)
    assert total(plan) == pytest.approx(30.012631578947367, rel=1e-9)


def test_vector_2_gls_at_one_half_32():
    assert total(make_plan(make_request((2, 2), INTRO, epsilon=1), "workload", "uniform", "gls")) == pytest.approx(
        32, rel=1e-9
    )


def test_vector_2_measuring_ab_only_16():
    assert total(intro_plan([1], "gls", sets=[(0, 1)])) == pytest.approx(16, rel=1e-9)
    assert total(make_plan(make_request((2, 2), INTRO, epsilon=1), "identity")) == pytest.approx(16, rel=1e-9)


def test_vector_2_gaussian_optimum_4_plus_2_root_3():
    """rho = 1/2 is sigma = 1 for sensitivity 1."""
    request = make_request((2, 2), INTRO, rho="1/2")
    assert total(make_plan(request, "residual")) == pytest.approx(4 + 2 * math.sqrt(3), rel=1e-9)
    assert total(make_plan(request, "identity")) == pytest.approx(8, rel=1e-9)


def test_vector_3_laplace_budgets_cube_root():
    s = np.array([1.0, 8, 27])
    eta = LAPLACE.best_budgets(s, np.ones(3))
    eta /= eta.sum()
    assert eta == pytest.approx([1 / 6, 1 / 3, 1 / 2], rel=1e-9)
    assert (s / eta**2).sum() == pytest.approx(216, rel=1e-9)


def test_vector_3_gaussian_budgets_square_root():
    s = np.array([1.0, 4, 9])
    eta_squared = GAUSSIAN.best_budgets(s, np.ones(3))
    eta_squared /= eta_squared.sum()
    assert eta_squared == pytest.approx([1 / 6, 1 / 3, 1 / 2], rel=1e-9)
    assert (s / eta_squared).sum() == pytest.approx(36, rel=1e-9)


def test_vector_5_hadamard_coefficients():
    x = np.array([3, 5, 7, 0, 1, 4, 9, 2]).reshape(2, 2, 2)
    assert hadamard.transform(x, [0, 1, 2]).ravel().tolist() == [31, 9, -5, -19, -1, 1, 7, 1]


def test_vector_5_marginal_from_coefficients():
    request = make_request((2, 2, 2), "a0*a1", epsilon=1)
    plan = make_plan(request, "fourier", "uniform", "none")
    table = np.array([3, 5, 7, 0, 1, 4, 9, 2]).reshape(2, 2, 2).sum(axis=2)
    values = []
    for batch in plan.measured.batches:
        tables = np.array([table.sum(axis=tuple(i for i in (0, 1) if i not in row)) for row in batch.rows.tolist()])
        values.append(FOURIER.forward(tables, range(1, len(batch.shape) + 1)))
    answers = plan.answers(Measurement(plan.digest, tuple(values), private=False))
    assert answers.tables(np.array([[0, 1]], np.int32), (2, 2)).ravel().tolist() == [8, 7, 5, 11]


@pytest.mark.parametrize(
    ("k", "budgets", "expected"),
    [
        (1, "optimal", 174.43335569),
        (2, "optimal", 1253.88074987),
        (3, "optimal", 1692.08744256),
        (1, "uniform", 200),
        (2, "uniform", 1452),
        (3, "uniform", 1800),
    ],
)
def test_vector_6_fourier_on_four_bits(k, budgets, expected):
    plan = make_plan(make_request((2,) * 4, f"{k}-way", epsilon=1), "fourier", budgets, "none")
    assert total(plan) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("recovery", "expected"), [("none", 174.433355692), ("ols", 104.354378363), ("gls", 102.312689230)]
)
def test_vector_7_consistency_with_cube_root_budgets(recovery, expected):
    plan = make_plan(make_request((2, 2, 2), "a0,a0*a1,a1*a2", epsilon=1), "workload", "optimal", recovery)
    assert total(plan) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [(1, 1e-6, 4.224678889), (0.5, 1e-6, 8.057618481), (1, 1e-5, 3.730631635), (2, 1e-6, 2.230476271)],
)
def test_vector_8_analytic_gaussian(epsilon, delta, sigma):
    assert calibrate.analytic_sigma(epsilon, delta) == pytest.approx(sigma, rel=1e-9)


@pytest.mark.parametrize(
    ("strategy", "budgets", "recovery", "expected"),
    [
        ("identity", "uniform", "none", 144),
        ("workload", "uniform", "none", 468),
        ("workload", "uniform", "gls", 324),
        ("workload", "optimal", "none", 455.4257174918),
        ("workload", "optimal", "gls", 313.5324003501),
    ],
)
def test_vector_26_2x3x4_two_way(strategy, budgets, recovery, expected):
    plan = make_plan(make_request((2, 3, 4), "2-way", epsilon=1), strategy, budgets, recovery)
    assert total(plan) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("strategy", "budgets", "expected"),
    [("fourier", "uniform", 2645), ("fourier", "optimal", 2369.4513831), ("residual", "optimal", 2678.3757353)],
)
def test_vector_27_2x3x4_two_way(strategy, budgets, expected):
    plan = make_plan(make_request((2, 3, 4), "2-way", epsilon=1), strategy, budgets, "none")
    assert total(plan) == pytest.approx(expected, rel=1e-9)


def test_vector_27_residual_planner_in_units_of_sigma_squared():
    plan = make_plan(make_request((2, 3, 4), "2-way", rho="1/2"), "residual")
    assert total(plan) == pytest.approx(50.8504210132, rel=1e-9)


@pytest.mark.parametrize(
    ("strategy", "budgets", "recovery", "expected"),
    [
        ("identity", "uniform", "none", 15_728_640),
        ("workload", "uniform", "none", 13_824_000),
        ("workload", "uniform", "gls", 3_945_600),
        ("fourier", "uniform", "none", 4_504_560),
        ("fourier", "optimal", "none", 2_221_317.27),
    ],
)
def test_vector_28_sixteen_binary_two_way(strategy, budgets, recovery, expected):
    plan = make_plan(make_request((2,) * 16, "2-way", epsilon=1), strategy, budgets, recovery)
    assert total(plan) == pytest.approx(expected, rel=5e-9)


def test_family_order_is_that_of_the_vectors():
    """The hand-made plans above list A before AB."""
    assert list(Family.of([(0, 1), (0,)], (2, 2))) == [(0,), (0, 1)]
