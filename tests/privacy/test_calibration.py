"""From (epsilon, delta) to noise: the formulas against high precision, and the smoothing lemma by integration."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from scipy.optimize import minimize_scalar

from helpers import make_request
from hushcube.costs import calibrate
from hushcube.model.privacy import Privacy

GRID = [(1.0, 1e-6), (0.1, 1e-9), (4.0, 1e-12), (0.01, 1e-5), (10.0, 1e-3), (1e-3, 1e-6), (0.5, 1e-30), (50.0, 1e-20)]


def erfc(x):
    """1 - erf(x) in Decimal, by erf's Taylor series; the precision covers the cancellation."""
    term = total = x
    n = 0
    while abs(term) > Decimal(10) ** -220:
        n += 1
        term = -term * x * x / n
        total += term / (2 * n + 1)
    return 1 - 2 * total / PI.sqrt()


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")


def precise_delta(epsilon, sigma):
    """Phi(1/2s - eps s) - e^eps Phi(-1/2s - eps s), to some 60 digits."""
    with localcontext() as context:
        context.prec = 300
        e, s = Decimal(epsilon), Decimal(sigma)
        root = Decimal(2).sqrt()
        a, b = 1 / (2 * s) - e * s, -1 / (2 * s) - e * s
        return erfc(-a / root) / 2 - e.exp() * erfc(-b / root) / 2


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_analytic_sigma_is_enough_and_tight(epsilon, delta):
    sigma = calibrate.analytic_sigma(epsilon, delta)
    assert precise_delta(epsilon, sigma) <= Decimal(delta)
    assert precise_delta(epsilon, sigma * (1 - 1e-6)) > Decimal(delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-9), (1e-9, 1e-12), (1e-9, 1e-9), (1e-4, 1e-12)])
def test_analytic_sigma_is_enough_where_the_formula_cancels(epsilon, delta):
    """Tiny epsilon: the two terms agree to many digits, and floats alone would round delta by more than the slack."""
    assert precise_delta(epsilon, calibrate.analytic_sigma(epsilon, delta)) <= Decimal(delta)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_zcdp_conversion_is_valid_and_looser_than_the_analytic_one(epsilon, delta):
    rho = calibrate.zcdp_rho(epsilon, delta)

    def log_delta(log_a1):
        a = 1 + math.exp(log_a1)
        return (a - 1) * (a * rho - epsilon) - log_a1 + a * math.log1p(-1 / a)

    best = minimize_scalar(log_delta, bracket=(-1, math.log(max(epsilon / (2 * rho), 1.5)), 20), tol=1e-12)
    assert best.fun <= math.log(delta)
    assert math.sqrt(1 / (2 * rho)) >= calibrate.analytic_sigma(epsilon, delta)
    assert calibrate.zcdp_delta(rho * (1 + 1e-6), epsilon) > delta


def precise_log_conversion(rho, epsilon, a1):
    """ln of exp((a-1)(a rho - eps)) / (a-1) (1 - 1/a)^a for the order a = 1 + a1, to some 50 digits."""
    with localcontext() as context:
        context.prec = 80
        rho, epsilon, a1 = Decimal(rho), Decimal(epsilon), Decimal(a1)
        return a1 * ((1 + a1) * rho - epsilon) - a1.ln() - (1 + a1) * (1 + 1 / a1).ln()


def precise_conversion(rho, epsilon):
    """The least over the orders, by golden sections in high precision; each of them is a valid bound."""
    low, high = Decimal(-31), Decimal(35)  # of ln(a - 1): all orders that are tried, and more
    with localcontext() as context:
        context.prec = 60
        for _ in range(120):
            a, b = low + (high - low) * Decimal("0.382"), low + (high - low) * Decimal("0.618")
            smaller = precise_log_conversion(rho, epsilon, a.exp()) < precise_log_conversion(rho, epsilon, b.exp())
            low, high = (low, b) if smaller else (a, high)
        return precise_log_conversion(rho, epsilon, ((low + high) / 2).exp()).exp()


@pytest.mark.parametrize("delta", ["1e-2", "1e-9", "1e-60", "1e-200"])
@pytest.mark.parametrize("epsilon", ["1e-9", "3e-8", "1e-6", "7e-4", "0.1", "5", "500"])
def test_zcdp_conversion_keeps_its_delta_in_exact_arithmetic(epsilon, delta):
    """Small epsilons need large orders, where ln(a - 1) and ln(a) agree in all digits of a float but a few."""
    privacy = Privacy.of(epsilon=epsilon, delta=delta, neighbours="add-remove")
    rho = calibrate.row_budget(privacy, "zcdp")
    exact = precise_conversion(float(rho), epsilon)
    assert exact <= Decimal(delta)
    assert exact >= Decimal(delta) * Decimal("0.999"), "no more is given away than rounding needs"


@pytest.mark.slow
@given(st.floats(-20, 6), st.floats(-20, 5))
@example(3.375, 0.0)  # the best order is nearly 1
def test_zcdp_delta_is_never_understated(log_rho, log_epsilon):
    rho, epsilon = math.exp(log_rho), math.exp(log_epsilon)
    found = calibrate.zcdp_delta(rho, epsilon)
    with localcontext() as context:
        context.prec = 60
        assert found >= 1 or found == 0 or Decimal(found) >= precise_conversion(rho, epsilon) * (1 - Decimal(10) ** -25)


@given(st.floats(0.05, 20), st.floats(0.05, 30))
def test_exact_delta_of_a_single_count_is_the_sum_over_outputs(epsilon, variance):
    reach = math.ceil(12 * math.sqrt(variance)) + 3
    k = np.arange(-reach, reach + 1.0)
    p, q = np.exp(-(k**2) / (2 * variance)), np.exp(-((k - 1) ** 2) / (2 * variance))
    brute = np.maximum(q - math.exp(epsilon) * p, 0).sum() / p.sum()
    found = calibrate.discrete_delta(epsilon, variance)
    assert brute * (1 - 1e-9) - 1e-25 <= found <= brute * (1 + 1e-6) + 1e-10


def kappa(t2):
    e = 2 * sum(math.exp(-2 * math.pi**2 * t2 * j * j) for j in range(1, 60))
    return math.log((1 + e) / (1 - e))


@pytest.mark.parametrize("t2", [0.15, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("s2", [0.05, 0.5, 3.0, 40.0])
def test_smoothing_lemma(s2, t2):
    """Discrete Gaussian of parameter s² + t² against the continuous one of variance s², rounded at random around it."""
    y = np.linspace(-12 * math.sqrt(s2), 12 * math.sqrt(s2), 40_001)
    density = np.exp(-(y**2) / (2 * s2)) / math.sqrt(2 * math.pi * s2) * (y[1] - y[0])
    near = np.round(y)[:, None] + np.arange(-14, 15)
    normaliser = np.exp(-((near - y[:, None]) ** 2) / (2 * t2)).sum(axis=1)
    reach = math.ceil(3 * math.sqrt(s2 + t2))
    total = sum(math.exp(-k * k / (2 * (s2 + t2))) for k in range(-200, 201))
    ratios = []
    for k in range(-reach, reach + 1):
        rounded = float((density * np.exp(-((k - y) ** 2) / (2 * t2)) / normaliser).sum())
        ratios.append(math.log(math.exp(-k * k / (2 * (s2 + t2))) / total / rounded))
    assert max(map(abs, ratios)) <= kappa(t2) + 1e-9
    if t2 == 0.15 and s2 == 0.05:
        assert max(map(abs, ratios)) > kappa(t2) / 10  # the bound says something here


@pytest.mark.parametrize("epsilon", ["1e-3", 1, 10])
@pytest.mark.parametrize("numbers", [1, 100, 1e6])
def test_smoothing_variance_keeps_all_numbers_within_the_allowance(epsilon, numbers):
    """A person moves up to 2 k m numbers, each costs a factor exp(kappa) on either side."""
    for k in (1, 5):
        privacy = make_request((2,), "1-way", epsilon=epsilon, delta="1e-6", rows_per_person=k).privacy
        t2 = calibrate.smoothing_variance(privacy, numbers)
        allowance = 1e-12 * min(float(epsilon), 1)
        assert 2 * (2 * k * numbers) * kappa_small(t2) <= allowance * (1 + 1e-9)


def kappa_small(t2):
    """ln((1+e)/(1-e)) for tiny e, without cancellation."""
    e = 2 * math.exp(-2 * math.pi**2 * t2)
    return 2 * math.atanh(e)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1e-9", "1e-20"), ("1e-3", "1e-15"), ("0.01", "1e-100"), ("0.1", "1e-200")]
)
def test_wide_noise_is_not_searched_for_what_smoothing_gives_anyway(epsilon, delta):
    """The exact proof's grid would take minutes there, and cannot hit closer than smoothing does."""
    privacy = make_request((2,), "1-way", epsilon=epsilon, delta=delta).privacy
    assert "exact" not in calibrate.proofs(privacy, tables=1)
    sigma = calibrate.analytic_sigma(float(epsilon), float(delta))
    smoothed = 0.5 / float(calibrate.row_budget(privacy, "smoothing")) + calibrate.smoothing_variance(privacy, 1)
    assert sigma**2 < smoothed < (1 + 1e-4) * sigma**2
