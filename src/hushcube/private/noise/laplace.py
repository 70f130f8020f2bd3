"""Exact discrete Laplace noise by inversion, filtered in floating point.

With p = exp(-rate) and X of law P(k) = (1 - p)/(1 + p) * p**|k|,

    P(|X| >= k) = 2 p**k / (1 + p)      (k >= 1)
    |X| = floor((ln(2 / (1 + p)) - ln U) / rate),    U uniform on (0, 1), the sign an independent bit.

A 32-bit word gives the sign and 31 digits of U. If the floor is the same for every U with these digits,
whatever the rounding, it is taken; otherwise 32 more digits are read, and at last the thresholds are compared
exactly (`exact`). No outcome depends on a rounded number.

Scales above 2**22 would make the filter fail too often. There G of law (1 - p) p**k is split into
G = 2**m H + L, H and L independent: H is again geometric with rate 2**m * rate, at a scale the filter likes,
and L is uniform below 2**m, accepted with probability exp(-rate * L), nearly 1. X is G with a random sign,
drawn again if it is -0, so that zero is not counted twice.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.private.noise.entropy import Entropy
from hushcube.private.noise.exact import Bounds, LazyUniform, blocks, distinct, exp_bounds, exp_threshold, largest_below

MAX_SCALE = 1 << 52  # beyond, int64 would no longer hold every draw that can be met in practice
SPLIT_SCALE = 1 << 22
_COARSE_LOG2 = 21  # split scales leave H a scale in (2**20, 2**21]
FIRST_BITS, SECOND_BITS = 31, 63  # of U, known after the first and the second read
TEST_BITS = 31  # of V, which accepts L
# From these first digits on V may be above exp(-rate * L), which is > 1 - 2**-20, as the rate of H is at most 2**-20.
DOUBTFUL = (1 << TEST_BITS) - (1 << (TEST_BITS + 1 - _COARSE_LOG2))

# Error of (offset - ln v) * scale, the filter's estimate of (c - ln U) / rate, in units of the scale:
#   0 < |ln v| < 64, so 8 ulp of np.log are at most                               8 * 2**-47
#   v = digits + 1/2 is rounded at most twice (63 digits), relative 2**-52, in ln     2**-52
#   offset = c + bits * ln 2 < 64, c <= ln 2 within 20 ulp, and the difference    4 * 2**-47
#   1/rate and the product are rounded, relative 2**-52, times at most 64             2**-46
# in total below 2**-42. The digits not read move ln U by at most -ln(1 - d), d = 1/(2v); with at least one
# digit set, d <= 1/3 and -ln(1 - d) <= d / (1 - d) <= 3/(4v) < 1/v. With no digit set, U may be arbitrarily
# small, v = 1/2 and the width below is at least 1: never sure. So the width takes the scale as at least 1/2.
_ROUNDING = 2.0**-42


def split(rate: Fraction) -> int:
    """Return m, the number of low digits to split off: 0 unless the scale is large."""
    if rate.numerator * SPLIT_SCALE >= rate.denominator:
        return 0
    if rate.numerator * MAX_SCALE < rate.denominator:
        raise ValueError(f"rates must be at least 2**-52 so that int64 holds the noise, not {rate}")
    return (rate.denominator // rate.numerator).bit_length() - _COARSE_LOG2


@dataclass(frozen=True)
class Law:
    """What is inverted for one rate, and its exact thresholds."""

    rate: Fraction  # of |X|, or of H when the law is split
    low_bits: int  # m, the digits of L; 0 when |X| itself is inverted

    @classmethod
    def of(cls, rate: Fraction) -> "Law":
        """Split off the low digits if the scale is large."""
        low_bits = split(rate)
        return cls(rate * (1 << low_bits), low_bits)

    def tail(self, k: int) -> Bounds:
        """Return the enclosures of P(|X| >= k), or of P(H >= k) for a split law (k >= 1)."""
        if self.low_bits:
            return exp_threshold(k * self.rate)

        def bounds(bits: int) -> tuple[Fraction, Fraction]:
            low, high = exp_bounds(k * self.rate, bits)
            p_low, p_high = exp_bounds(self.rate, bits)
            return 2 * low / (1 + p_high), 2 * high / (1 + p_low)

        return bounds

    def invert(self, uniform: LazyUniform) -> int:
        """Return the k with P(>= k + 1) <= U < P(>= k), exactly."""
        log_u = math.log(2 * uniform.digits + 1) - (uniform.bits + 1) * math.log(2)
        k = largest_below(uniform, self.tail, math.floor(Fraction(-log_u) / self.rate))
        if k >> min(53, 62 - self.low_bits):  # has happened to nobody: the probability is below exp(-1000)
            raise OverflowError("a draw does not fit in int64")
        return k

    def low_weight(self, low: int) -> Bounds:
        """Return the enclosures of the probability with which L is accepted."""
        return exp_threshold(self.rate * low / (1 << self.low_bits))

    def low_digits(self, entropy: Entropy) -> int:
        """Return L < 2**m of law proportional to exp(-rate of X * L), exactly."""
        while True:
            low = int(entropy.words(1)[0]) >> (64 - self.low_bits)
            if LazyUniform(entropy).is_below(self.low_weight(low)):
                return low


def splits(rates: Floats) -> Ints:
    """Return `split` of each rate, for floats: exact, since comparing floats and taking them apart is.

    >>> rates = np.array([2.0**-22, 2.0**-23, 0.75 * 2.0**-30])
    >>> splits(rates).tolist() == [split(Fraction(rate)) for rate in rates]
    True
    """
    if (rates * MAX_SCALE < 1).any():
        raise ValueError(f"rates must be at least 2**-52 so that int64 holds the noise, not {rates.min()}")
    mantissas, exponents = np.frexp(rates)  # 1 / rate lies above 2**-exponent, and reaches twice that for 1/2
    lengths = 1 - exponents + (mantissas == 0.5)
    return np.where(rates * SPLIT_SCALE >= 1, 0, lengths - _COARSE_LOG2).astype(np.int64)


def constants(near: Floats, low_bits: Ints) -> tuple[Floats, Floats]:
    """Return the scale of what is inverted, and ln of the factor of p**k in its tail: 0 for a split law."""
    # A rate above 2**10 makes the floor 0 as soon as U has a digit; the estimate says so for 2**10 as well.
    near = np.minimum(near, 1024.0)
    scale = 2.0**-low_bits / near
    return scale, np.where(low_bits, 0.0, -np.log1p(np.expm1(-near) / 2))


def nearest(rates: list[Fraction]) -> Floats:
    """Return the rates as floats, at most 2**10; from integers, as Fractions would cost more than a short row."""
    pairs = ((rate.numerator, rate.denominator) for rate in rates)
    return np.array([n / d if n < d << 10 else 1024.0 for n, d in pairs], np.float64)


def estimate(digits: NDArray[Any], bits: int, scale: Floats, log_top: Floats) -> tuple[Floats, Bools]:
    """Return floor((log_top - ln U) * scale) for U with these first digits, and where that is certain."""
    v = digits + 0.5
    value = np.log(v)
    np.subtract(log_top + bits * math.log(2), value, out=value)
    value *= scale
    k = np.floor(value)
    width = np.divide(1.0, v, out=v)
    width += _ROUNDING
    width *= np.maximum(scale, 0.5)
    # Certain: the estimate is further than the width from both neighbouring integers.
    value -= k
    value -= 0.5
    np.abs(value, out=value)
    value += width
    return k, value < 0.5


class Laws:
    """Laws of several rates, with the filter's constants as arrays; made exact only where that is needed."""

    def __init__(self, rates: list[Fraction] | Floats) -> None:
        """Floats stand for themselves: a hundred thousand of them cost little, if few are ever needed exactly."""
        self._rates = rates
        if isinstance(rates, np.ndarray):
            near, self.low_bits = rates, splits(rates)
        else:
            near, self.low_bits = nearest(rates), np.array([split(rate) for rate in rates], np.int64)
        self.scale, self.log_top = constants(near, self.low_bits)

    def law(self, which: int) -> Law:
        """Return one of them, exactly."""
        return Law.of(Fraction(self._rates[which]))

    def draw(self, index: NDArray[np.intp], columns: int, entropy: Entropy) -> Ints:
        """Return one block of noise; row r has law index[r]."""
        words = entropy.half_words(index.size * columns).reshape(index.size, columns)
        noise = self._magnitudes(index, words, entropy).astype(np.int64)
        sign = 1 - 2 * (words & np.uint32(1)).astype(np.int64)
        if self.low_bits[index].any():
            rows = np.flatnonzero(self.low_bits[index])
            noise[rows] = self._append_low_digits(index[rows], noise[rows], entropy)
            for i, column in np.argwhere((noise[rows] == 0) & (sign[rows] < 0)).tolist():
                row = rows[i]
                noise[row, column] = self.draw(index[row : row + 1], 1, entropy)[0, 0]
                sign[row, column] = 1
        noise *= sign
        return noise

    def each(self, which: NDArray[np.intp], entropy: Entropy) -> Ints:
        """Return one draw for each entry; entry i has law which[i]."""
        noise = np.empty(which.size, np.int64)
        for part, _ in blocks(which.size, 1):
            noise[part] = self.draw(which[part], 1, entropy)[:, 0]
        return noise

    def _magnitudes(self, index: NDArray[np.intp], words: NDArray[np.uint32], entropy: Entropy) -> Floats:
        """Return |X|, or H of a split law, from the digits above the lowest bit of each word."""
        scale, log_top = self.scale[index], self.log_top[index]
        digits = words >> np.uint32(1)
        k, sure = estimate(digits, FIRST_BITS, scale[:, None], log_top[:, None])
        if not sure.all():
            open_ = np.flatnonzero(~sure)
            row = open_ // words.shape[1]
            known = digits.ravel()[open_].astype(np.int64) << 32 | entropy.half_words(open_.size)
            finer, sure = estimate(known, SECOND_BITS, scale[row], log_top[row])
            for i in np.flatnonzero(~sure).tolist():
                uniform = LazyUniform(entropy, int(known[i]), SECOND_BITS)
                finer[i] = self.law(int(index[row[i]])).invert(uniform)
            k.ravel()[open_] = finer
        return k

    def _append_low_digits(self, index: NDArray[np.intp], high: Ints, entropy: Entropy) -> Ints:
        """Return 2**m H + L for rows of split laws."""
        words = entropy.words(high.size).reshape(high.shape)
        low_bits = self.low_bits[index][:, None]
        low = words.view(np.int64) & ((1 << low_bits) - 1)
        v = words >> np.uint64(64 - TEST_BITS)  # the top digits, none of them shared with L
        for row, column in np.argwhere(v >= DOUBTFUL).tolist():
            law = self.law(int(index[row]))
            uniform = LazyUniform(entropy, int(v[row, column]), TEST_BITS)
            if not uniform.is_below(law.low_weight(int(low[row, column]))):
                low[row, column] = law.low_digits(entropy)
        return np.asarray(high << low_bits | low)


def discrete_laplace(rates: Sequence[Fraction], columns: int, entropy: Entropy) -> Ints:
    """Return len(rates) rows of independent draws; in row r, P(k) is proportional to exp(-rates[r] * |k|).

    >>> from hushcube.private.noise import SystemEntropy
    >>> discrete_laplace([Fraction(1000), Fraction(2000)], 3, SystemEntropy())
    array([[0, 0, 0],
           [0, 0, 0]])
    """
    if not isinstance(columns, int | np.integer) or columns < 0:
        raise ValueError(f"columns must be an integer of at least 0, not {columns!r}")
    values, index = distinct(rates, "rates")
    laws = Laws(values)
    noise = np.empty((index.size, columns), np.int64)
    for rows, part in blocks(index.size, columns):
        noise[rows, part] = laws.draw(index[rows], part.stop - part.start, entropy)
    return noise
