"""The two discrete noise laws: exact parameters, and the moments that error bars are made of.

    discrete Laplace(rate):       P(k) proportional to exp(-rate |k|);      cost: rate for each unit of L1 change
    discrete Gaussian(variance):  P(k) proportional to exp(-k² / 2 variance); cost: 1/(2 variance) zCDP for each unit of
                                  squared L2 change   [Canonne, Kamath, Steinke 2020, Theorem 4]

The parameter of the discrete Gaussian is not quite its variance when it is small; `true_variance` is.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from hushcube.model.arrays import Floats

SMALLEST_RATE: Final = 2.0**-51
LARGEST_VARIANCE: Final = 2.0**79
"""Beyond these the samplers could not be exact in 64 bits; the noise would drown any table long before."""
SMOOTH: Final = 2.5
"""From this parameter on the discrete Gaussian's moments are the continuous ones to 1e-16: exp(-2 pi² 2.5) < 1e-21."""


def laplace_variance(rate: Floats) -> Floats:
    """Variance of the discrete Laplace law: 2p/(1-p)² with p = exp(-rate).

    >>> round(float(laplace_variance(np.array(1.0))), 10)
    1.8413471884
    """
    rate = np.asarray(rate, dtype=np.float64)
    return np.where(rate < 700.0, 0.5 / np.sinh(np.minimum(rate, 700.0) / 2) ** 2, 0.0)


def gaussian_variance(parameter: Floats) -> Floats:
    """True variance of the discrete Gaussian law with the given parameter.

    >>> gaussian_variance(np.array([0.1, 4.0])).round(6).tolist()
    [0.013297, 4.0]
    """
    parameter = np.asarray(parameter, dtype=np.float64)
    result = parameter.copy()
    small = parameter < SMOOTH
    if np.any(small):
        k = np.arange(1, 40, dtype=np.float64)  # exp(-39²/5) < 1e-130
        weights = np.exp(-(k**2) / (2 * parameter[small][..., None]))
        result[small] = 2 * (weights * k**2).sum(-1) / (1 + 2 * weights.sum(-1))
    return result


@lru_cache(maxsize=4096)
def symmetric_quantile(law: str, parameter: Fraction, terms: int, coverage: float) -> int:
    """The smallest m with P(|X_1 + ... + X_terms| <= m) >= coverage, for independent draws of one law.

    The law of the sum is the Fourier inverse of the characteristic function's power, on a grid that holds all mass.

    >>> symmetric_quantile("laplace", Fraction(1), 1, 0.95)
    3
    """
    x = float(parameter)
    variance = float((laplace_variance if law == "laplace" else gaussian_variance)(np.array(x))) * terms
    reach = 12 * math.sqrt(variance) + (60 / x if law == "laplace" else 0) + 16
    points = 2 ** math.ceil(math.log2(2 * reach))
    if points > 2**22:  # the lattice is far finer than the spread: the continuous quantile is exact to six digits
        return math.ceil(math.sqrt(variance) * standard_margin(3 / terms if law == "laplace" else 0.0, coverage))
    k = np.minimum(np.arange(points), points - np.arange(points)).astype(np.float64)
    pmf = np.exp(-x * k) if law == "laplace" else np.exp(-(k**2) / (2 * x))
    spectrum = np.maximum(np.fft.rfft(pmf / pmf.sum()).real, 0.0) ** terms
    total = np.fft.irfft(spectrum, points)
    half = np.cumsum(np.concatenate([total[:1], 2 * total[1 : points // 2]]))
    return int(np.searchsorted(half, coverage - 1e-12))


@lru_cache(maxsize=4096)
def standard_margin(excess_kurtosis: float, coverage: float) -> float:
    """The two-sided quantile, in standard deviations, of noise that is a sum of independent Laplace terms.

    A sum of nu equal Laplace terms has excess kurtosis 3/nu; real nu interpolates (the variance-gamma family), from one
    Laplace term (nu = 1) to the normal law (nu -> infinity). Unequal terms are matched by their kurtosis.

    >>> round(standard_margin(0.0, 0.95), 6), round(standard_margin(3.0, 0.95), 6)
    (1.959964, 2.118303)
    """
    if excess_kurtosis >= 3:
        return -math.log1p(-coverage) / math.sqrt(2)
    if excess_kurtosis < 1e-4:
        return _normal_quantile((1 + coverage) / 2)
    nu = 3 / excess_kurtosis
    # P(|X| <= x) = (2/pi) int_0^inf sin(t x)/t (1 + t²/(2 nu))^-nu dt, unit variance; it dies like t^(-2 nu - 1)
    # (the trapezoid rule with step h errs by the law's mass beyond 2 pi / h = 125 standard deviations)
    t = np.linspace(0, 400, 8_001)[1:]
    phi = (1 + t**2 / (2 * nu)) ** -nu / t
    step = t[0]

    def probability(x: float) -> float:
        values = np.sin(t * x) * phi
        return float(2 / math.pi * step * (x / 2 + values.sum() - values[-1] / 2))

    low, high = 1.0, 6.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if probability(middle) < coverage else (low, middle)
    return (low + high) / 2


def _normal_quantile(p: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(p)
