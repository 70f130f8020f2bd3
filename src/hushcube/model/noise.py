"""The two discrete noise laws: exact parameters, and the moments that error bars are made of.

    discrete Laplace(rate):       P(k) proportional to exp(-rate |k|);      cost: rate for each unit of L1 change
    discrete Gaussian(variance):  P(k) proportional to exp(-k² / 2 variance); cost: 1/(2 variance) zCDP for each unit of
                                  squared L2 change   [Canonne, Kamath, Steinke 2020, Theorem 4]

The parameter of the discrete Gaussian is not quite its variance when it is small; `true_variance` is.

The noisy results of a plan: everything that left the private side, and all that later steps may use.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final

import numpy as np

from hushcube.model.arrays import Floats, Ints
from hushcube.model.privacy import Privacy

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


def laplace_rate(variance: float) -> float:
    """The rate of the discrete Laplace law that has a variance: 1 / (2 sinh²(r/2)) is it.

    >>> round(laplace_rate(1.8413471884), 9)
    1.0
    """
    return 2 * math.asinh(math.sqrt(0.5 / variance))


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


class Law(ABC):
    """A law of noise: what a budget means for it. A budget is what a change by one costs, in epsilon or in rho."""

    name: ClassVar[str]
    tail_kurtosis: ClassVar[float]
    """The excess kurtosis of a single draw, as the continuous law has it."""
    power: ClassVar[int]
    """The variance of the continuous law falls with this power of the budget."""

    def __repr__(self) -> str:
        return self.name

    @abstractmethod
    def parameter(self, budget: Fraction, stretch: int = 1) -> Fraction:
        """What the sampler is asked for: a rate, or a variance; wider where numbers are multiples of the real rows."""

    @abstractmethod
    def formula(self, budgets: Floats) -> Floats:
        """The variance of the continuous law."""

    @abstractmethod
    def variance(self, budgets: Floats) -> Floats:
        """The true variance of the discrete law."""

    @abstractmethod
    def best_budgets(self, energies: Floats, columns: Floats) -> Floats:
        """Up to scale, the budgets of least sum of energy times variance, where a unit of each costs its column."""

    @abstractmethod
    def is_drawable(self, budgets: Floats, stretch: Floats | float = 1.0, norms: Floats | float = 1.0) -> bool:
        """Whether all noise fits 64-bit integers."""

    def is_coarse(self, budgets: Floats) -> bool:  # noqa: ARG002 - whatever they are
        """Whether steps of the noise show where many numbers are combined, and margins do not know of them."""
        return False

    @abstractmethod
    def tail(self, budgets: Floats, m: Floats) -> Floats:
        """P(|X| >= m) for whole m >= 1, or a bound of it."""

    @abstractmethod
    def weights(self, parameter: float, k: Floats) -> Floats:
        """What P(k) is in proportion to."""

    def reach(self, parameter: float, variance: float) -> float:  # noqa: ARG002 - of Laplace noise
        """Where a sum of that variance has no mass left that counts."""
        return 12 * math.sqrt(variance) + 16

    def margin(self, budget: float | Fraction, terms: int, coverage: float) -> int:
        """The smallest m with P(|X_1 + ... + X_terms| <= m) >= coverage, for independent draws.

        >>> LAPLACE.margin(1.0, 1, 0.95)
        3
        """
        return _symmetric_quantile(self, self.parameter(Fraction(budget)), terms, coverage)


class _Laplace(Law):
    """Discrete Laplace noise: the budget is its rate."""

    name = "laplace"
    tail_kurtosis = 3.0
    power = 2

    def parameter(self, budget: Fraction, stretch: int = 1) -> Fraction:
        return budget / stretch

    def formula(self, budgets: Floats) -> Floats:
        return 2 / budgets**2

    def variance(self, budgets: Floats) -> Floats:
        return laplace_variance(budgets)

    def best_budgets(self, energies: Floats, columns: Floats) -> Floats:
        return np.cbrt(energies / columns)

    def is_drawable(self, budgets: Floats, stretch: Floats | float = 1.0, norms: Floats | float = 1.0) -> bool:  # noqa: ARG002 - of Gaussian noise
        return bool((budgets >= SMALLEST_RATE * stretch).all())

    def tail(self, budgets: Floats, m: Floats) -> Floats:
        return np.asarray(2 * np.exp(-budgets * m) / (1 + np.exp(-budgets)))  # exactly

    def weights(self, parameter: float, k: Floats) -> Floats:
        return np.exp(-parameter * k)

    def reach(self, parameter: float, variance: float) -> float:
        return super().reach(parameter, variance) + 60 / parameter  # beyond the normal part, a single draw's


class _Gaussian(Law):
    """Discrete Gaussian noise: the budget is 1/(2 parameter)."""

    name = "gaussian"
    tail_kurtosis = 0.0
    power = 1

    def parameter(self, budget: Fraction, stretch: int = 1) -> Fraction:  # noqa: ARG002 - multipliers say it
        return 1 / (2 * budget)

    def formula(self, budgets: Floats) -> Floats:
        return 0.5 / budgets

    def variance(self, budgets: Floats) -> Floats:
        return gaussian_variance(0.5 / budgets)

    def best_budgets(self, energies: Floats, columns: Floats) -> Floats:
        return np.sqrt(energies / columns)

    def is_drawable(self, budgets: Floats, stretch: Floats | float = 1.0, norms: Floats | float = 1.0) -> bool:  # noqa: ARG002 - of Laplace noise
        return bool((0.5 / budgets * norms <= LARGEST_VARIANCE).all())

    def is_coarse(self, budgets: Floats) -> bool:
        return bool((0.5 / budgets < SMOOTH).any())

    def tail(self, budgets: Floats, m: Floats) -> Floats:
        return np.asarray(np.minimum(2 * np.exp(-(m**2) * budgets), 1.0))  # at most; the variance is 1/(2 budget)

    def weights(self, parameter: float, k: Floats) -> Floats:
        return np.exp(-(k**2) / (2 * parameter))


LAPLACE: Final[Law] = _Laplace()
GAUSSIAN: Final[Law] = _Gaussian()


def law_of(privacy: Privacy) -> Law:
    """Laplace noise for pure epsilon, Gaussian noise for the other guarantees."""
    return LAPLACE if privacy.is_pure else GAUSSIAN


@lru_cache(maxsize=4096)
def _symmetric_quantile(law: Law, parameter: Fraction, terms: int, coverage: float) -> int:
    variance, points = _grid(law, parameter, terms)
    if points > 2**22:  # the lattice is far finer than the spread: the continuous quantile is exact to six digits
        return math.ceil(math.sqrt(variance) * standard_margin(law.tail_kurtosis / terms, coverage))
    total = sum_law(law, parameter, terms)
    half = np.cumsum(np.concatenate([total[:1], 2 * total[1:]]))
    return int(np.searchsorted(half, coverage - 1e-12))


def _grid(law: Law, parameter: Fraction, terms: int) -> tuple[float, int]:
    """The variance of a sum of draws, and the points of a grid with all of its mass."""
    x = float(parameter)
    variance = float((laplace_variance if law is LAPLACE else gaussian_variance)(np.array(x))) * terms
    return variance, 2 ** math.ceil(math.log2(2 * law.reach(x, variance)))


def sum_law(law: Law, parameter: Fraction, terms: int) -> Floats:
    """P(X_1 + ... + X_terms = k) for k from 0: the Fourier inverse of the characteristic function's power."""
    _, points = _grid(law, parameter, terms)
    k = np.minimum(np.arange(points), points - np.arange(points)).astype(np.float64)
    pmf = law.weights(float(parameter), k)
    spectrum = np.maximum(np.fft.rfft(pmf / pmf.sum()).real, 0.0) ** terms
    return np.asarray(np.fft.irfft(spectrum, points)[: points // 2])


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
        from statistics import NormalDist

        return NormalDist().inv_cdf((1 + coverage) / 2)
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


@dataclass(frozen=True, eq=False, repr=False)
class Measurement:
    """Noisy integers, one array for each batch of equal-shaped measured sets, in the plan's order.

    `private` is False where the noise came from a seed: such a measurement is for experiments and protects nobody.
    """

    plan_digest: str
    values: tuple[Ints, ...]
    private: bool

    def __repr__(self) -> str:
        told = f"{sum(batch.size for batch in self.values):,} noisy integers of the plan {self.plan_digest[:12]}"
        return f"Measurement({told}{'' if self.private else ', NOT PRIVATE'})"
