"""Exact discrete Gaussian noise: inversion for small variances, rejection for the others.

Small variances:

    P(|X| >= k) = (w_k + w_{k+1} + ...) / (1 + w_1 + w_2 + ...),     w_i = 2 exp(-i**2 / (2 variance))

A 32-bit word gives the sign and 31 digits of U, and |X| is the number of k >= 1 with U < P(|X| >= k). These
are compared one after the other, in floating point, each only for the draws that passed all before: 1 + E|X|
steps a draw. If U is too close to a threshold it met, |X| is found again from the same digits of U, read
further as needed, in rational numbers. No outcome depends on a rounded number.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Floats, Ints
from hushcube.private.noise.entropy import Entropy
from hushcube.private.noise.exact import Bounds, LazyUniform, blocks, distinct, exp_bounds, largest_below
from hushcube.private.noise.ziggurat import Variance, among, draw_large

BITS = 31  # digits of U in a word

# In units of 2**-31, U is at most 1/2 from the middle of the interval its digits leave. The thresholds: an
# exponent x is within 2**-49 x, which moves exp(-x) by less than 2**-50; np.exp adds 8 ulp, 2**-49. A sum of
# at most 64 such terms (doubled), rounded at each addition, is within 2**-40 of at most 16, and so is its
# quotient by 1 + w_1 + ... >= 1: 2**-9 units.
_DOUBT = 0.6
MAX_VARIANCE = 1 << 80  # beyond, too many draws would fall into the filter's error band

# Both methods are exact between sigma 1 and 6; these are where their speeds cross. Inversion needs some
# 10 sigma exponentials for each different variance, so it goes further where variances repeat.
_SMALL_SIGMA = 1.5
_SMALL_SIGMA_REPEATED = 6.0
_REPEATED = 16


def thresholds(variance: Floats) -> Floats:
    """Return P(|X| >= k) for k = 1, 2, ... (first axis) and each variance (second axis), at most 36.

    The last k is above 10 sigma: P(|X| >= k) and the terms left out are below 2**-60, so that no U of 31
    digits passes it without doubt.
    """
    k = np.arange(1.0, math.floor(10 * math.sqrt(variance.max())) + 3)[:, None]
    # Below 2**-40 every threshold is 0 to far more than 31 digits; the bound keeps the quotient finite.
    weights = 2 * np.exp(k * k / (-2 * np.maximum(variance, 2.0**-40)))
    sums = weights[::-1].cumsum(axis=0)[::-1]
    return np.asarray(sums / (1 + sums[0]))


def tail(variance: Fraction) -> Callable[[int], Bounds]:
    """Return k -> enclosures of P(|X| >= k).

    If 2n + 1 >= 2 variance, each term from n on is at most 1/e of the one before, and their sum less than
    twice the first.
    """

    def bounds(k: int, bits: int) -> tuple[Fraction, Fraction]:
        n = 1
        while n * n < 2 * variance * bits or 2 * n + 1 < 2 * variance:
            n += 1
        terms = [exp_bounds(i * i / (2 * variance), bits + 8) for i in range(1, max(n, k))]
        rest = 4 * exp_bounds(max(n, k) ** 2 / (2 * variance), bits + 8)[1]
        low, high = (2 * sum((term[end] for term in terms), Fraction(0)) for end in (0, 1))
        low_tail, high_tail = (2 * sum((term[end] for term in terms[k - 1 :]), Fraction(0)) for end in (0, 1))
        return low_tail / (1 + high + rest), (high_tail + rest) / (1 + low)

    return lambda k: lambda bits: bounds(k, bits)


def draw_small(table: Floats, law: NDArray[np.intp], variance: Variance, entropy: Entropy) -> Ints:
    """Return one draw for each entry i: by column law[i] of the thresholds; in doubt, by variance(i)."""
    words = entropy.half_words(law.size)
    digits = words >> np.uint32(1)
    noise = np.zeros(law.size, np.int64)
    entries = np.arange(law.size)
    u = digits + 0.5
    doubtful = []
    for k, level in enumerate(table * 2.0**BITS, start=1):
        gap = level[law] - u
        doubtful.append(entries[np.abs(gap) <= _DOUBT])
        passed = np.flatnonzero(gap > 0)
        if not passed.size:
            break
        entries, u, law = entries[passed], u[passed], law[passed]
        noise[entries] = k
    for i in np.unique(np.concatenate(doubtful)).tolist():
        uniform = LazyUniform(entropy, int(digits[i]), BITS)
        noise[i] = largest_below(uniform, tail(variance(i)), int(noise[i]))
    noise *= 1 - 2 * (words & np.uint32(1)).astype(np.int64)
    return noise


def discrete_gaussian(variances: Sequence[Fraction], multipliers: Ints, entropy: Entropy) -> Ints:
    """Return independent draws: in row r, column c, P(k) ~ exp(-k**2 / (2 * variances[r] * multipliers[c])).

    >>> from hushcube.private.noise import SystemEntropy
    >>> discrete_gaussian([Fraction(1, 10_000)], np.array([1, 2, 3]), SystemEntropy())
    array([[0, 0, 0]])
    """
    if not isinstance(multipliers, np.ndarray) or multipliers.ndim != 1 or multipliers.dtype != np.int64:
        raise ValueError("multipliers must be a one-dimensional array of int64")
    if multipliers.size and multipliers.min() < 1:
        raise ValueError(f"multipliers must be positive, not {multipliers.min()}")
    values, index = distinct(variances, "variances")
    noise = np.empty((index.size, multipliers.size), np.int64)
    if not noise.size:
        return noise
    largest = int(multipliers.max())
    for value in values:
        if value.numerator * largest > value.denominator * MAX_VARIANCE:
            raise ValueError(f"variances times multipliers must be at most 2**80, not {value} * {largest}")
    root = np.sqrt([value.numerator / value.denominator for value in values])
    for rows, columns in blocks(*noise.shape):
        noise[rows, columns] = _draw(values, index[rows], multipliers[columns], entropy, root)
    return noise


def _draw(values: list[Fraction], index: NDArray[np.intp], multipliers: Ints, entropy: Entropy, root: Floats) -> Floats:
    """Return one block of draws; row r has the variance values[index[r]], with the root root[index[r]]."""
    shape = index.size, multipliers.size
    sigma = np.multiply.outer(root[index], np.sqrt(multipliers.astype(np.float64))).ravel()

    def variance(i: int) -> Fraction:
        row, column = divmod(i, shape[1])
        return values[int(index[row])] * int(multipliers[column])

    if sigma.min() > _SMALL_SIGMA_REPEATED:
        return draw_large(sigma, variance, entropy).reshape(shape)

    rows, its_row = _different(index)
    columns, its_column = _different(multipliers)
    laws = rows.size * columns.size
    small = _SMALL_SIGMA_REPEATED if laws * _REPEATED <= sigma.size else _SMALL_SIGMA
    noise = np.empty(sigma.size)
    if (chosen := np.flatnonzero(sigma <= small)).size:
        table = thresholds(np.minimum(np.multiply.outer(root[rows] ** 2, columns).ravel(), small**2))
        law = np.add.outer(its_row * columns.size, its_column).ravel()
        noise[chosen] = draw_small(table, law[chosen], among(variance, chosen), entropy)
    if (chosen := np.flatnonzero(sigma > small)).size:
        noise[chosen] = draw_large(sigma[chosen], among(variance, chosen), entropy)
    return noise.reshape(shape)


def _different(keys: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the different keys, and which of them stands at each place."""
    if keys.min() == keys.max():  # the usual case, without sorting
        return keys[:1], np.zeros(keys.size, np.intp)
    return np.unique(keys, return_inverse=True)
