"""How much noise the median of several repetitions has, from the law of the noise.

The median of t independent symmetric numbers is at least m if (t + 1)/2 of them are, each with P(X >= m) = p_m:

    E median² = 2 sum over m >= 1 of (2m - 1) P(Binomial(t, p_m) >= (t + 1)/2)

exactly, for one draw as for a sum of n draws, whose law is the Fourier inverse of the power of the draw's. For draws of
Laplace noise it is less than the average's variance from t = 3 on; for sums it tends to that of normal numbers, which
for many repetitions is pi/2 of the average's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from hushcube.model.arrays import Floats
from hushcube.model.noise import Law, sum_law

MANY: Final = 64  # draws: beyond, sums have the law of so many to within a percent
_FINEST: Final = 16.0  # standard deviations in steps: finer lattices change the share by less than 1/1000


@lru_cache(maxsize=1024)
def median_share(law: Law, budget: float, repetitions: int, draws: int) -> float:
    """The variance of the median of sums of so many draws, over that of one of the sums.

    >>> from hushcube.model.noise import LAPLACE
    >>> round(median_share(LAPLACE, 0.2, 5, 1), 4), round(median_share(LAPLACE, 0.2, 5, 64), 3)
    (0.1756, 0.284)
    """
    if repetitions == 1:
        return 1.0
    coarse = float(budget) * max(1.0, float(law.variance(np.array(budget))) / _FINEST**2) ** (1 / law.power)
    pmf = sum_law(law, law.parameter(Fraction(coarse)), min(draws, MANY))
    m = np.arange(1.0, len(pmf))
    tail = np.clip(pmf[::-1].cumsum()[::-1][1:], 1e-300, 1.0)  # P(X >= m)
    median_square = 2 * ((2 * m - 1) * _most(repetitions, tail)).sum()
    return float(median_square / (2 * (pmf[1:] * m**2).sum()))


def _most(t: int, p: Floats) -> Floats:
    """P(Binomial(t, p) >= (t + 1)/2)."""
    total = np.zeros(len(p))
    for j in range((t + 1) // 2, t + 1):
        ways = math.lgamma(t + 1) - math.lgamma(j + 1) - math.lgamma(t - j + 1)
        total += np.exp(ways + j * np.log(p) + (t - j) * np.log1p(-p))
    return total


def median_spread(squares: Iterable[Floats], law: Law, budget: float, largest: Floats | float = 1.0) -> Floats:
    """From sum_b g_rb² of each repetition to the factor of one number's variance in that of the median.

    `largest` is the square of the largest factor: sums of squares over it tell how many draws there are. Repetitions
    whose sums differ count with their mean standard deviation, which is a little more than their median has.
    """
    total, roots, t = np.zeros(()), np.zeros(()), 0
    for each in squares:
        total, roots, t = total + each, roots + np.sqrt(each), t + 1
    draws = np.clip(np.rint(total / t / largest), 1, MANY).astype(np.int64)
    different, which = np.unique(draws, return_inverse=True)
    shares = np.array([median_share(law, budget, t, n) for n in different.tolist()])
    return np.asarray(shares[which].reshape(draws.shape) * (roots / t) ** 2)
