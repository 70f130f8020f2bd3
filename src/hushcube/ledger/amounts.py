"""Amounts of a ledger: whole multiples of 10^-15, so that a database compares and adds them as integers, exactly.

    charges are rounded up, totals down

A budget is at most 500, so all sums that are ever formed fit 64 bits with room to spare.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

UNITS: Final = 10**15
"""How many units are one."""
_PLACES: Final = 15
BEYOND: Final = 2**62
"""More than any total, and still within 64 bits."""


def rounded_up(amount: Fraction) -> int:
    """What is charged, in units.

    >>> rounded_up(Fraction(1, 3)), rounded_up(Fraction("0.01"))
    (333333333333334, 10000000000000)
    """
    return -(-amount.numerator * UNITS // amount.denominator)


def rounded_down(amount: Fraction) -> int:
    """What is allowed, in units.

    >>> rounded_down(Fraction(1, 3))
    333333333333333
    """
    return amount.numerator * UNITS // amount.denominator


def in_full(units: int) -> Fraction:
    """The amount of so many units."""
    return Fraction(units, UNITS)


def digits(units: int) -> str:
    """The exact decimal of an amount that is not negative, in the one form that it has in entries.

    >>> digits(333333333333334), digits(4 * UNITS), digits(10**13)
    ('0.333333333333334', '4', '0.01')
    """
    whole, rest = divmod(units, UNITS)
    return f"{whole}.{rest:0{_PLACES}d}".rstrip("0").rstrip(".")


def exactly(amount: Fraction) -> str:
    """The digits of an amount that is a whole number of units."""
    return digits(rounded_up(amount))


def from_digits(text: str) -> int:
    """The units of an exact decimal; ValueError for any other text.

    >>> from_digits("0.01")
    10000000000000
    """
    units = Fraction(text) * UNITS
    if units.denominator != 1 or units < 0 or digits(units.numerator) != text:
        raise ValueError("is not an amount")
    return units.numerator
