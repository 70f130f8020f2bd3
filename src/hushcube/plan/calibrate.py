"""From a guarantee to what one row may cost: a total budget for Laplace or Gaussian noise.

pure epsilon    one row may cost epsilon / k, with k rows per person
rho-zCDP        one row may cost rho / k²
(eps, delta)    one Gaussian mechanism. Two proofs for the noise actually drawn; the planner takes the better one.

  smoothing     The analytic Gaussian mechanism [Balle and Wang 2018] holds for continuous noise:
                    delta = Phi(1/2s - eps s) - e^eps Phi(-1/2s - eps s),       s = sigma / sensitivity.
                A discrete Gaussian of parameter s² + t² is, up to a factor exp(+-kappa) for each number that one person
                moves, the continuous one of variance s² rounded at random by a discrete Gaussian of parameter t² around
                the continuous value, which is post-processing: by Poisson summation sum_k exp(-(k-y)²/2t²) lies within
                1 -+ e of t sqrt(2 pi) for every y, e = 2 sum_{j>=1} exp(-2 pi² t² j²), so kappa = ln((1+e)/(1-e)).
                With t² = ln(8 m / slack) / (2 pi²), m numbers add less than `slack` to eps and to ln delta.
  zcdp          rho-zCDP implies (eps, delta) for delta = exp((a-1)(a rho - eps)) / (a-1) (1 - 1/a)^a, any a > 1
                [Canonne, Kamath, Steinke 2020, Corollary 13]. Proven for discrete noise as it stands; looser.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

from hushcube.model.privacy import Privacy

Proof = Literal["direct", "smoothing", "zcdp"]

_SLACK: Final = 1e-11
"""Relative safety that dwarfs the rounding of floats in these formulas (below 1e-13)."""


@lru_cache(maxsize=256)
def row_budget(privacy: Privacy, proof: Proof) -> Fraction:
    """What one row may cost, in epsilon (pure) or rho; under `smoothing`, of the continuous noise."""
    k = privacy.rows_per_person
    if privacy.is_pure:
        return _given(privacy.epsilon) / k
    if privacy.rho is not None:
        return privacy.rho / k**2
    epsilon, delta = float(_given(privacy.epsilon)), float(_given(privacy.delta))
    if proof == "zcdp":
        return Fraction(zcdp_rho(epsilon, delta)) / k**2
    sigma = analytic_sigma(epsilon * (1 - _SLACK) - _allowance(epsilon), delta * math.exp(-_allowance(epsilon)))
    return Fraction(1 / (2 * (sigma * k) ** 2))


def proofs(privacy: Privacy) -> tuple[Proof, ...]:
    """The proofs that apply to a guarantee."""
    return ("direct",) if privacy.delta is None else ("smoothing", "zcdp")


def smoothing_variance(privacy: Privacy, numbers: float) -> float:
    """t²: what is added to the parameter of each discrete Gaussian when one row moves at most `numbers` of them."""
    affected = 2 * privacy.rows_per_person * max(numbers, 1.0)
    return math.log(8 * affected / _allowance(float(_given(privacy.epsilon)))) / (2 * math.pi**2)


def _allowance(epsilon: float) -> float:
    return 1e-12 * min(epsilon, 1.0)


def _given(value: Fraction | None) -> Fraction:
    if value is None:
        raise ValueError("the guarantee lacks this budget")
    return value


def analytic_delta(epsilon: float, sigma: float) -> float:
    """The exact delta of continuous Gaussian noise on a number of sensitivity 1."""
    a, b = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
    return _phi(a) - math.exp(epsilon) * _phi(b)


def analytic_sigma(epsilon: float, delta: float) -> float:
    """The least sigma of continuous Gaussian noise, rounded up.

    >>> round(analytic_sigma(1.0, 1e-6), 8)
    4.22467889
    """
    low, high = 1e-3, 2.0
    while analytic_delta(epsilon, high) > delta:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if analytic_delta(epsilon, middle) > delta else (low, middle)
    return high * (1 + _SLACK)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The least delta of the conversion, over a grid of orders a followed by a ternary search (any a is valid)."""

    def log_delta(log_a1: float) -> float:
        a1 = math.exp(log_a1)
        a = 1 + a1
        return a1 * (a * rho - epsilon) - log_a1 + a * (log_a1 - math.log(a))

    low, high = -30.0, 30.0
    best = min((low + (high - low) * i / 600 for i in range(601)), key=log_delta)
    low, high = best - 0.1, best + 0.1
    for _ in range(100):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if log_delta(a) < log_delta(b) else (a, high)
    return math.exp(min(log_delta((low + high) / 2), 0.0))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose conversion gives (epsilon, delta), rounded down."""
    low, high = 0.0, epsilon + 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_delta(middle, epsilon) <= delta else (low, middle)
    return low * (1 - _SLACK)


def _phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))
