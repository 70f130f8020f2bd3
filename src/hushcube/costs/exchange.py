"""What Laplace noise costs in zCDP: the exchange from epsilon to rho, enclosed from above.

A pair of laws whose ratios stay within exp(+-x) is made from randomised response by post-processing that does not look
at which of the two it is [Kairouz, Oh and Viswanath 2015, Theorem 2.5], so its Renyi divergences are at most those of
the laws (p, 1 - p) and (1 - p, p), p = e^x / (1 + e^x):

    D_a = ln( cosh((a - 1/2) x) / cosh(x/2) ) / (a - 1)  <=  a x tanh(x/2)                      for every a > 1

since ln cosh(x sqrt(s)) is concave in s, its tangent at s = 1/4 has the slope x tanh(x/2), and (a - 1/2)² - 1/4 is
a (a - 1). It is the least such rho: D_a tends to x tanh(x/2) as a tends to 1.                       [docs/maths.md, 10]

So a pure epsilon is (epsilon tanh(epsilon/2))-zCDP, and a number with discrete Laplace noise of rate r that is moved by
d is r d tanh(r d/2): both beat epsilon²/2. Independent numbers add up, so that k rows of a person who move no number by
more than k c_B cost at most

    sum_j |d_j| beta_j tanh(|d_j| beta_j / 2)  <=  sum_j |d_j| w_j,              w_B = beta_B tanh(k c_B beta_B / 2),

which is a cost of Laplace noise with other rates: k times that of one row. Where each row moves numbers by c_B or not
at all, as in tables of counts, the two sides have the same maximum.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np

from hushcube.costs.calibrate import above
from hushcube.model.arrays import Floats, Ints
from hushcube.model.privacy import Privacy
from hushcube.model.queries import SparseRows

_TERMS: Final = 41
_ROUND_UP: Final = 1 + 2.0**-45
"""The continued fraction has fewer than 130 roundings of positive numbers, each by 2^-53 at most."""


def tanh_above(y: Floats) -> Floats:
    """Not below tanh(y), for y >= 0.

    The convergents of Lambert's y / (1 + y² / (3 + y² / (5 + ...))) lie above and below in turns; an odd one is above.

    >>> tanh_above(np.array([0.0, 1e-9, 0.5, 3.0, 800.0])) - np.tanh([0.0, 1e-9, 0.5, 3.0, 800.0]) < 1e-13
    array([ True,  True,  True,  True,  True])
    """
    square = y * y
    below = np.full_like(y, 2.0 * _TERMS - 1)
    for odd in range(2 * _TERMS - 3, 0, -2):
        below = odd + square / below
    return np.minimum(y / below * _ROUND_UP, 1.0)


def pure_rho(epsilon: Fraction) -> Fraction:
    """The rho of whatever is epsilon-private: epsilon tanh(epsilon/2), or a little more.

    >>> f"{float(pure_rho(Fraction(1))):.10f}"
    '0.4621171573'
    """
    return epsilon * Fraction(float(tanh_above(np.array([above(epsilon / 2)]))[0]))


def laplace_rho(rates: Floats, moves: Floats, rows: int, cost: Callable[[Floats], Fraction]) -> Fraction:
    """The rho of a person with so many rows, if each moves the numbers of a set by no more than `moves`.

    `cost` is that of one row under given rates; infinite ones are public, and stay free.
    """
    noisy = np.isfinite(rates)
    finite = np.where(noisy, rates, 0.0)
    weights = finite * tanh_above(finite * moves * (rows / 2) * _ROUND_UP) * _ROUND_UP
    return cost(np.where(noisy, weights, np.inf)) * rows


def row_moves(rows: SparseRows, group_of: Ints, groups: int, privacy: Privacy) -> Floats:
    """How far a change of one row of data can move a number of each group of the rows of a matrix."""
    _, values, row_of = rows.arrays
    partial = np.diff(rows.starts) < rows.width  # some cell does not count
    low = np.where(partial, 0.0, np.inf)
    high = -low
    np.minimum.at(low, row_of, values)
    np.maximum.at(high, row_of, values)
    moves = {"add-remove": np.maximum(np.abs(low), np.abs(high)), "replace-one": high - low}
    result = np.zeros(groups)
    np.maximum.at(result, group_of, np.max([moves[change] for change in privacy.row_changes], axis=0))
    return result
