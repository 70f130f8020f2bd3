"""From a guarantee to what one row may cost: a total budget for Laplace or Gaussian noise.

pure epsilon    one row may cost epsilon / k, with k rows per person
rho-zCDP        one row may cost rho / k²
(eps, delta)    one Gaussian mechanism. Three proofs for the noise actually drawn; the planner takes the best one.

  smoothing     The analytic Gaussian mechanism [Balle and Wang 2018] holds for continuous noise:
                    delta = Phi(1/2s - eps s) - e^eps Phi(-1/2s - eps s),       s = sigma / sensitivity.
                A discrete Gaussian of parameter s² + t² is, up to a factor exp(+-kappa) for each number that one person
                moves, the continuous one of variance s² rounded at random by a discrete Gaussian of parameter t² around
                the continuous value, which is post-processing: by Poisson summation sum_k exp(-(k-y)²/2t²) lies within
                1 -+ e of t sqrt(2 pi) for every y, e = 2 sum_{j>=1} exp(-2 pi² t² j²), so kappa = ln((1+e)/(1-e)).
                With t² = ln(8 m / slack) / (2 pi²), m numbers add less than `slack` to eps and to ln delta.
  exact         Where one row moves a single number by 1, the discrete Gaussian X of parameter v has exactly
                    delta = P(X > eps v - 1/2) - e^eps P(X > eps v + 1/2)   [Canonne, Kamath, Steinke 2020, Theorem 7].
  zcdp          rho-zCDP implies (eps, delta) for delta = exp((a-1)(a rho - eps)) / (a-1) (1 - 1/a)^a, any a > 1
                [Canonne, Kamath, Steinke 2020, Corollary 13]. Proven for discrete noise as it stands; looser.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from hushcube.model.arrays import Floats
from hushcube.model.privacy import Privacy

Proof = Literal["direct", "smoothing", "exact", "zcdp"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_STEP: Final = 1e-4  # the grid on which the exact proof looks for its variance
_WIDEST: Final = 200.0
"""Beyond this sigma the exact proof saves nothing: smoothing adds less to the variance than a step of its grid."""
_SLACK: Final = 1e-11  # relative safety on top of bounds that are themselves rounded up


@lru_cache(maxsize=256)
def row_budget(privacy: Privacy, proof: Proof) -> Fraction:
    """What one row may cost, in epsilon (pure) or rho; under `smoothing`, of the continuous noise."""
    k = privacy.rows_per_person
    if privacy.is_pure:
        return _given(privacy.epsilon) / k
    if privacy.rho is not None:
        return privacy.rho / k**2
    epsilon, delta = below(_given(privacy.epsilon)), below(_given(privacy.delta))
    if proof == "zcdp":
        return Fraction(zcdp_rho(epsilon, delta)) / k**2
    if proof == "exact":
        return Fraction(0.5 / discrete_variance(epsilon, delta))
    sigma = analytic_sigma(epsilon * (1 - _SLACK) - _allowance(epsilon), delta * math.exp(-_allowance(epsilon)))
    return Fraction(1 / (2 * (sigma * k) ** 2))


def proofs(privacy: Privacy, *, tables: int | None) -> tuple[Proof, ...]:
    """The proofs that apply to a guarantee; `tables`: how many tables of plain counts are measured, if nothing else."""
    if privacy.delta is None:
        return ("direct",)
    single = tables == 1 and privacy.neighbours == "add-remove" and privacy.rows_per_person == 1
    small = single and analytic_sigma(float(_given(privacy.epsilon)), float(privacy.delta)) < _WIDEST
    return ("smoothing", "zcdp", "exact") if small else ("smoothing", "zcdp")


def smoothing_variance(privacy: Privacy, numbers: float) -> float:
    """t²: what is added to the parameter of each discrete Gaussian when one row moves at most `numbers` of them."""
    affected = 2 * privacy.rows_per_person * max(numbers, 1.0)
    return math.log(8 * affected / _allowance(float(_given(privacy.epsilon)))) / (2 * math.pi**2)


def without_smoothing(drawn: Floats, added: Floats | float) -> Floats:
    """The budgets of the continuous noise, of those drawn with an added variance; OverflowError where none is left."""
    noisy = np.isfinite(drawn)
    left = np.where(noisy, 0.5 / drawn - added, 1.0)
    if (left <= 0).any():
        raise OverflowError("all of the variance is what the proof by smoothing adds")
    return np.where(noisy, 0.5 / left, np.inf)


def _allowance(epsilon: float) -> float:
    return 1e-12 * min(epsilon, 1.0)


def _given(value: Fraction | None) -> Fraction:
    if value is None:
        raise ValueError("the guarantee lacks this budget")
    return value


def below(value: Fraction) -> float:
    """The largest float that is not above: a guarantee is met by meeting a stricter one.

    >>> Fraction(below(Fraction(1, 10))) <= Fraction(1, 10) < Fraction(0.1)
    True
    """
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, 0.0)


def above(value: Fraction | int) -> float:
    """The least float that is not below.

    >>> Fraction(above(Fraction(3, 10))) >= Fraction(3, 10) > Fraction(0.3)
    True
    """
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def analytic_delta(epsilon: float, sigma: float) -> float:
    """The delta of continuous Gaussian noise on a number of sensitivity 1, rounded up by what floats may have lost.

    For large sigma Phi(a) and e^eps Phi(b) are nearly equal; then the density is integrated from b to a instead.
    """
    a, b = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
    if sigma < 2:
        gain, loss = _phi(a), math.exp(epsilon) * _phi(b)
    else:
        density = np.exp(-((b + (_NODES + 1) / (2 * sigma)) ** 2) / 2) / math.sqrt(2 * math.pi)
        gain, loss = float(_WEIGHTS @ density) / (2 * sigma), math.expm1(epsilon) * _phi(b)
    return gain - loss + 4e-15 * (1 + a * a + b * b) * (gain + loss)


def analytic_sigma(epsilon: float, delta: float) -> float:
    """The least sigma of continuous Gaussian noise, rounded up."""
    low, high = 1e-3, 2.0
    while analytic_delta(epsilon, high) > delta:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if analytic_delta(epsilon, middle) > delta else (low, middle)
    return high * (1 + _SLACK)


def discrete_delta(epsilon: float, variance: float) -> float:
    """The exact delta of the discrete Gaussian on an integer that one row moves by 1, rounded up."""
    reach = math.ceil(40 * math.sqrt(variance)) + 2
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-(k**2) / (2 * variance))
    tail = np.cumsum(mass[::-1])[::-1] / mass.sum()

    def above(x: float) -> float:
        return float(tail[min(max(math.floor(x) + 1 + reach, 0), 2 * reach)])

    near, far = above(epsilon * variance - 0.5), above(epsilon * variance + 0.5)
    slack = _SLACK + 2.0**-52 * len(k)  # of the sums, which have as many terms
    return near * (1 + slack) - math.exp(epsilon) * far * (1 - slack)


@lru_cache(maxsize=256)
def discrete_variance(epsilon: float, delta: float) -> float:
    """The least parameter, on a grid of one part in 10,000, whose exact delta suffices; delta is not monotone in it."""
    start = analytic_sigma(epsilon, delta) ** 2
    for step in range(-2000, 20_000):
        variance = start * (1 + step * _STEP)
        if discrete_delta(epsilon, variance) <= delta:
            return variance
    return math.inf


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The least delta of the conversion, over a grid of orders a followed by a ternary search (any a is valid).

    ln delta = (a-1)(a rho - eps) - ln(a-1) - a ln(1 + 1/(a-1)): the last term is near 1 for large orders, however
    large ln(a-1) and ln(a) are. Each term has a relative error of a few units of 2^-53; 16 of them are added, so that
    delta is never understated.
    """

    def log_delta(log_a1: float) -> float:
        a1 = math.exp(log_a1)
        a = 1 + a1
        gain, loss = a1 * a * rho, a1 * epsilon
        order, rest = math.log(a1), a * math.log1p(1 / a1)
        return gain - loss - order - rest + 2.0**-49 * (gain + loss + abs(order) + rest)

    low, high = -30.0, 30.0
    best = min((low + (high - low) * i / 600 for i in range(601)), key=log_delta)
    low, high = best - 0.1, best + 0.1
    for _ in range(100):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if log_delta(a) < log_delta(b) else (a, high)
    return math.exp(min(log_delta((low + high) / 2), 0.0)) * (1 + 2.0**-51)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose conversion gives (epsilon, delta), rounded down."""
    low, high = 0.0, epsilon + 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_delta(middle, epsilon) <= delta else (low, middle)
    return low * (1 - _SLACK)


def zcdp_epsilon(rho: Fraction, delta: Fraction) -> float:
    """The least epsilon that rho-zCDP gives beside a delta, rounded up: what all charges of an account come to.

    >>> round(zcdp_epsilon(Fraction(zcdp_rho(1.0, 1e-6)), Fraction(1, 10**6)), 9)
    1.0
    """
    if not rho:
        return 0.0
    low, high, spent, allowed = 0.0, 1.0, above(rho), below(delta)
    while zcdp_delta(spent, high) > allowed:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_delta(spent, middle) > allowed else (low, middle)
    return high


def _phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))
