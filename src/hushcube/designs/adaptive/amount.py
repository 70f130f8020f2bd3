"""A public number that may be given as a share of the people."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from hushcube.errors import BadInput, PrivacyError
from hushcube.model.privacy import exact_number

SMALLEST: Final = Fraction(1, 10**9)
LARGEST: Final = Fraction(10**15)
"""Noise of a larger scale would not fit 64-bit integers."""


@dataclass(frozen=True)
class Amount:
    """A positive number, or a share of the people.

    >>> Amount.parse("500", "sanity-bound").of(None)
    Fraction(500, 1)
    >>> str(Amount.parse("0.01%", "sanity-bound")), Amount.parse("0.01%", "sanity-bound").of(1_000_000)
    ('0.01%', Fraction(100, 1))
    """

    value: Fraction
    is_share: bool = False

    @classmethod
    def parse(cls, raw: object, field: str) -> Amount:
        """Read `500`, or `0.01%` of the people."""
        if isinstance(raw, cls):
            return raw
        is_share = isinstance(raw, str) and raw.strip().endswith("%")
        body = raw.strip().removesuffix("%").strip() if isinstance(raw, str) else raw
        value = positive(body, field)
        return cls(value / 100 if is_share else value, is_share)

    def of(self, people: int | None) -> Fraction:
        """The number itself, given how many people there are."""
        if not self.is_share:
            return self.value
        if people is None:
            raise BadInput("people", "is not given, but an amount is a share of it", "declare the number of people")
        return self.value * people

    def __str__(self) -> str:
        return f"{_decimal(self.value * 100)}%" if self.is_share else _decimal(self.value)


def positive(raw: object, field: str) -> Fraction:
    """A positive number within reason, with the meaning its decimal digits have."""
    value = _number(raw, field)
    if value <= 0:
        raise BadInput(field, "must be above zero", "give a positive number")
    if not SMALLEST <= value <= LARGEST:
        raise BadInput(
            field, f"is not between {float(SMALLEST):g} and {float(LARGEST):g}", "give a number between them"
        )
    return value


def share(raw: object, field: str, *, or_zero: bool = False) -> Fraction:
    """A number between 0 and 1, both excluded unless zero is allowed."""
    if or_zero and _number(raw, field) == 0:
        return Fraction(0)
    value = positive(raw, field)
    if value >= 1:
        raise BadInput(field, "must be below 1", "give a number between 0 and 1, such as 0.05")
    return value


def _number(raw: object, field: str) -> Fraction:
    try:
        return exact_number(field, raw)
    except PrivacyError as problem:
        raise BadInput(field, problem.problem, problem.fix) from None


def _decimal(value: Fraction) -> str:
    """Digits where they are exact, a ratio elsewhere."""
    text = format(float(value), ".15g")
    return text if Fraction(text) == value else str(value)
