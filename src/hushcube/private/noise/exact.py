"""Decisions without rounding: a real uniform, read digit by digit, against an enclosed threshold.

A fast filter elsewhere decides almost every draw; the few it leaves open are settled here with integers and
fractions only. Every question has the form "is U < theta?", where theta is known through ever tighter
rational bounds. Digits of U are read until the answer is certain: it is yes with probability exactly theta.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import keep_freed
from hushcube.private.noise.entropy import Entropy

Bounds = Callable[[int], tuple[Fraction, Fraction]]
"""Precision in bits -> rationals below and above one real number, about 2**-precision apart."""

_GUARD_BITS = 64  # thresholds are this much sharper than U: a digit is read only where it must be
BLOCK = 1 << 16  # draws worked on at a time: a dozen temporaries of this size stay in the cache


class LazyUniform:
    """A real number uniform on [0, 1), of which `bits` binary digits are known so far."""

    def __init__(self, entropy: Entropy, digits: int = 0, bits: int = 0) -> None:
        self.digits = digits
        self.bits = bits
        self._entropy = entropy

    def read(self) -> None:
        """Read 64 more binary digits."""
        self.digits = self.digits << 64 | int(self._entropy.words(1)[0])
        self.bits += 64

    def enclosure(self) -> tuple[Fraction, Fraction]:
        """Return the ends of the interval U is uniform on, given the digits read."""
        unit = 1 << self.bits
        return Fraction(self.digits, unit), Fraction(self.digits + 1, unit)

    def is_below(self, threshold: Bounds) -> bool:
        """Decide U < theta, reading digits while both sides are possible."""
        while True:
            start, end = self.enclosure()
            low, high = threshold(self.bits + _GUARD_BITS)
            if end <= low:
                return True
            if start >= high:
                return False
            self.read()

    def below(self, count: int) -> int:
        """Return floor(count * U), uniform on 0 .. count - 1."""
        while (k := self.digits * count >> self.bits) != (self.digits + 1) * count >> self.bits:
            self.read()
        return k

    def leading_zeros(self) -> int:
        """Return the number of zeros before the first digit 1: b with probability 2**-(b + 1)."""
        while not self.digits:
            self.read()
        return self.bits - self.digits.bit_length()


def exp_bounds(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Enclose exp(-x), x >= 0, in an interval of width at most about 2**-bits.

    With y = x / 2**j <= 1/2, exp(-y) is its alternating series in fixed point with w bits, squared j times.
    One unit is 2**-w. Truncating y costs < 1 unit (the derivative is at most 1). Each truncated term is
    within 2 units of the true one, since e_i <= e_{i-1} * y/i + 1; the terms stop when one is truncated to 0,
    and what is left of an alternating series is at most its first term, < 2 units. Squaring rounds outwards.

    >>> low, high = exp_bounds(Fraction(1), 80)
    >>> float(low), float(high - low) < 2.0**-80
    (0.36787944117144233, True)
    """
    if x > bits:  # exp(-x) < 2**-x <= 2**-bits
        return Fraction(0), Fraction(1, 1 << bits)
    halvings = max(0, math.ceil(x).bit_length() + 1)
    w = bits + 2 * halvings + 16
    y = (x.numerator << w) // (x.denominator << halvings)
    term = total = 1 << w
    steps = 0
    while term:
        steps += 1
        term = ((term * y) >> w) // steps
        total += -term if steps & 1 else term
    slack = 2 * steps + 4
    low, high = max(0, total - slack), total + slack
    for _ in range(halvings):
        low = (low * low) >> w
        high = -((-high * high) >> w)
    return Fraction(low, 1 << w), Fraction(high, 1 << w)


def exp_threshold(x: Fraction) -> Bounds:
    """Return the enclosures of exp(-x): `LazyUniform.is_below` then is a Bernoulli(exp(-x)) draw."""
    return lambda bits: exp_bounds(x, bits)


def largest_below(uniform: LazyUniform, tail: Callable[[int], Bounds], guess: int) -> int:
    """Invert a distribution on 0, 1, 2, ...: the largest k with U < tail(k) = P(K >= k).

    The guess only saves time: the search gallops away from it, then bisects.
    """
    step = 1
    if guess > 0 and not uniform.is_below(tail(guess)):
        low, high = guess - 1, guess
        while low > 0 and not uniform.is_below(tail(low)):
            low, high, step = max(0, low - step), low, 2 * step
    else:
        low = max(0, guess)  # U < tail(0) always
        high = low + 1
        while uniform.is_below(tail(high)):
            low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if uniform.is_below(tail(middle)) else (low, middle)
    return low


def distinct(values: Sequence[Fraction], name: str) -> tuple[list[Fraction], NDArray[np.intp]]:
    """Return the different values and, for each position, which of them stands there.

    >>> distinct([Fraction(1, 2), Fraction(3), Fraction(1, 2)], "rates")
    ([Fraction(1, 2), Fraction(3, 1)], array([0, 1, 0]))
    """
    seen: dict[tuple[int, int], int] = {}
    firsts: list[Fraction] = []
    index = np.empty(len(values), np.intp)
    for position, value in enumerate(values):
        if not isinstance(value, Fraction):
            raise ValueError(f"{name}[{position}] must be a Fraction, not {value!r}")
        # A pair of integers hashes several times faster than a Fraction.
        key = (value.numerator, value.denominator)
        if (found := seen.get(key)) is None:
            if value <= 0:
                raise ValueError(f"{name}[{position}] must be positive, not {value}")
            found = seen[key] = len(firsts)
            firsts.append(value)
        index[position] = found
    return firsts, index


def blocks(rows: int, columns: int) -> Iterator[tuple[slice, slice]]:
    """Cut a table into pieces of about `BLOCK` cells, whole rows where they are short.

    >>> list(blocks(2, 70_000))[1]
    (slice(0, 1, None), slice(65536, 70000, None))
    >>> list(blocks(40_000, 2))[1]
    (slice(32768, 40000, None), slice(0, 2, None))
    """
    if columns == 0:
        return
    keep_freed()  # else temporaries cost as much as the draws themselves
    height = max(1, BLOCK // columns)
    for top in range(0, rows, height):
        for left in range(0, columns, BLOCK):
            yield slice(top, min(top + height, rows)), slice(left, min(left + BLOCK, columns))
