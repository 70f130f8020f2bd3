"""Entropy that says what a test wants, and certified reference values."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from hushcube.private.noise import SeededEntropy


class DigitsReadError(Exception):
    """A decision needed more random digits than the test gave it."""


class SilentEntropy:
    """Refuses to give any digit: what is decided with it holds for every continuation of the known digits."""

    private = False

    def words(self, count):
        raise DigitsReadError

    def half_words(self, count):
        raise DigitsReadError


class ScriptedEntropy:
    """Gives the scripted 32-bit words first, then seeded ones."""

    private = False

    def __init__(self, half_words, seed=1):
        self._script = np.asarray(half_words, np.uint32)
        self._rest = SeededEntropy(seed)

    def words(self, count):
        return self._rest.words(count)

    def half_words(self, count):
        given, self._script = self._script[:count], self._script[count:]
        return np.concatenate([given, self._rest.half_words(count - given.size)])


def exp_fraction(x, digits=80):
    """exp(-x) to within 10**-digits, by an independent implementation."""
    with localcontext() as context:
        context.prec = digits + 10
        value = (-Decimal(x.numerator) / Decimal(x.denominator)).exp()
        return Fraction(int(value.scaleb(digits)), 10**digits)


def close(value, reference, digits=60):
    return abs(value - reference) <= Fraction(1, 10**digits)


def sharp(bounds, bits=300):
    """A number from its enclosure."""
    low, high = bounds(bits)
    assert 0 <= high - low < Fraction(1, 1 << (bits - 80))
    return low
