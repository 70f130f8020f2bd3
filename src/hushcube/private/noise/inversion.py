"""Exact discrete Gaussian draws of small variance, by inversion filtered in floating point.

    P(|X| >= k) = (w_k + w_{k+1} + ...) / (1 + w_1 + w_2 + ...),     w_i = 2 exp(-i**2 / (2 variance))

A 32-bit word gives the sign and 31 digits of U, and |X| is the number of k >= 1 with U < P(|X| >= k). These
are compared one after the other, in floating point, each only for the draws that passed all before: 1 + E|X|
steps a draw. If U is too close to a threshold it met, |X| is found again from the same digits of U, read
further as needed, in rational numbers. No outcome depends on a rounded number.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushcube.private.noise.entropy import Entropy
from hushcube.private.noise.exact import Bounds, LazyUniform, exp_bounds, largest_below

BITS = 31  # digits of U in a word

# In units of 2**-31, U is at most 1/2 from the middle of the interval its digits leave. The thresholds: an
# exponent x is within 2**-49 x, which moves exp(-x) by less than 2**-50; np.exp adds 8 ulp, 2**-49. A sum of
# at most 64 such terms (doubled), rounded at each addition, is within 2**-40 of at most 16, and so is its
# quotient by 1 + w_1 + ... >= 1: 2**-9 units.
_DOUBT = 0.6


def thresholds(variance: NDArray[np.float64]) -> NDArray[np.float64]:
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


def draw_small(
    table: NDArray[np.float64],
    law: NDArray[np.intp],
    variance: Callable[[int], Fraction],
    entropy: Entropy,
) -> NDArray[np.int64]:
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
