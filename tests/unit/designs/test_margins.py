"""Interval half-widths from the law of the noise, against enumeration."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from helpers import Dense, make_plan, make_request
from hushcube.designs.lattice import margins
from hushcube.model.noise import GAUSSIAN, LAPLACE, gaussian_variance, laplace_variance, standard_margin


def pmf(law, parameter, reach=400):
    k = np.arange(-reach, reach + 1.0)
    weights = np.exp(-parameter * np.abs(k)) if law == "laplace" else np.exp(-(k**2) / (2 * parameter))
    return weights / weights.sum()


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("parameter", [Fraction(1, 3), Fraction(1), Fraction(5, 2)])
@pytest.mark.parametrize("terms", [1, 2, 5])
def test_quantile_of_a_sum_is_that_of_the_convolved_pmf(law, parameter, terms):
    one = total = pmf(law, float(parameter))
    for _ in range(terms - 1):
        total = np.convolve(total, one)
    middle = len(total) // 2
    inside = [total[middle - m : middle + m + 1].sum() for m in range(60)]
    expected = int(np.argmax(np.array(inside) >= 0.95))
    kinds = {"laplace": (LAPLACE, parameter), "gaussian": (GAUSSIAN, 1 / (2 * parameter))}
    noise, budget = kinds[law]
    assert noise.margin(budget, terms, 0.95) == expected


@pytest.mark.parametrize(("law", "variance"), [("laplace", laplace_variance), ("gaussian", gaussian_variance)])
@pytest.mark.parametrize("parameter", [0.05, 0.3, 1.0, 2.4, 2.6, 9.0])
def test_variances_of_the_discrete_laws_are_those_of_their_pmfs(law, variance, parameter):
    mass = pmf(law, parameter, 1000)
    k = np.arange(-1000, 1001.0)
    assert float(variance(np.array(parameter))) == pytest.approx(float((mass * k**2).sum()), rel=1e-9)


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95, 0.99])
def test_standard_margins_at_both_ends_are_those_of_the_normal_and_the_laplace_law(coverage):
    assert standard_margin(0.0, coverage) == pytest.approx(stats.norm.ppf((1 + coverage) / 2), rel=1e-9)
    laplace = stats.laplace.ppf((1 + coverage) / 2, scale=np.sqrt(0.5))
    assert standard_margin(3.0, coverage) == pytest.approx(laplace, rel=1e-9)


def test_standard_margin_of_two_equal_laplace_terms():
    """The sum of two: P(|X| > x) = e^-x (1 + x/2) in units of the scale, variance 4."""
    margin = 2 * standard_margin(1.5, 0.95)
    assert np.exp(-margin) * (1 + margin / 2) == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize("recovery", ["gls", "ols"])
def test_excess_kurtosis_is_that_of_the_dense_weights(recovery):
    request = make_request((2, 3, 4), "cube", epsilon=1)
    plan = make_plan(request, "workload", "optimal", recovery)
    dense = Dense(plan)
    variances = dense.noise_variances()
    for A in request.marginals:
        R = dense.recovery(A)
        expected = 3 * (R[0] ** 4 * variances**2).sum() / ((R[0] ** 2 * variances).sum()) ** 2
        assert margins.excess_kurtosis(plan.errors, A) == pytest.approx(expected, rel=1e-6)


def test_a_public_total_has_no_margin():
    for strategy in ("workload", "residual", "identity", "fourier"):
        plan = make_plan(make_request((2, 3), "cube", rho=20, neighbours="replace-one"), strategy)
        assert plan.errors.margins[0] == 0, strategy


def test_tables_of_one_cell_are_as_public_as_the_total():
    plan = make_plan(make_request((1, 1), "1-way", epsilon=1, neighbours="replace-one"), "workload")
    assert plan.errors.margins.tolist() == [0, 0]


def test_a_measured_table_has_the_exact_margin_of_its_lattice():
    plan = make_plan(make_request((2, 3), "2-way", epsilon=1), "workload", "uniform", "none")
    assert plan.errors.margins.tolist() == [3.0]  # P(|X| <= 3) = 0.973, P(|X| <= 2) = 0.927
