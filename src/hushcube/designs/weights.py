"""A recovery with weights of the user's own: each table a weighted sum of measured ones, as words.

    a: a=1/2, a*b=1/2; a*b: a*b=1, a=1, a*b>a=-1

says that the table `a` is the mean of two estimates, and that `a*b` is measured `a*b` moved so that its sums are those
of measured `a`. `a*b>a` is the table `a*b` summed to `a`; a table with fewer attributes than the answer is spread out
evenly. What this means, and what it costs in error, is in designs/lattice/weighted.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from hushcube.errors import BadInput
from hushcube.model.privacy import exact_number
from hushcube.model.workload import named_number
from hushcube.text import short

SUMMED: Final = ">"
_EXAMPLE: Final = "write for example `a: a=1/2, a*b=1/2; b: a*b=1`"


@dataclass(frozen=True)
class Weights:
    """For each answered table, the weights of measured ones, by their words.

    >>> Weights.read("a: a=0.5, a * b=1/2").to_dict()
    {'a': {'a': '1/2', 'a*b': '1/2'}}
    """

    rules: tuple[tuple[str, tuple[tuple[str, Fraction], ...]], ...]

    @classmethod
    def read(cls, given: Any) -> Weights:
        """From a text, or from a mapping of answered tables to mappings of measured ones to their weights."""
        if isinstance(given, cls):
            return given
        if isinstance(given, str):
            given = dict(_rule(part) for part in given.replace("\n", ";").split(";") if part.strip())
        if not isinstance(given, Mapping) or not given or not all(isinstance(v, Mapping) and v for v in given.values()):
            raise BadInput("recovery", f"{short(given)} gives no table its weights", _EXAMPLE)
        rules = {
            _plain(table): {_plain(word): _weight(weight) for word, weight in terms.items()}
            for table, terms in given.items()
        }
        return cls(tuple((table, tuple(terms.items())) for table, terms in rules.items()))

    def to_dict(self) -> dict[str, dict[str, str]]:
        """The JSON form; weights are exact."""
        return {table: {word: str(weight) for word, weight in terms} for table, terms in self.rules}

    def __str__(self) -> str:
        return "weights"


def _plain(word: Any) -> str:
    return SUMMED.join(named_number(part)[0] for part in str(word).split(SUMMED))


def _weight(given: Any) -> Fraction:
    """A number that may be negative."""
    if isinstance(given, str) and given.strip().startswith("-"):
        return -exact_number("recovery", given.strip()[1:], BadInput)
    return exact_number("recovery", given, BadInput)


def _rule(text: str) -> tuple[str, dict[str, str]]:
    """One table and its weights: `a: a=1/2, a*b=1/2`."""
    table, colon, rest = text.partition(":")
    pairs = [named_number(word) for word in rest.split(",")]
    if not colon or not all(word and number for word, number in pairs):
        raise BadInput("recovery", f"{short(text.strip())} cannot be read", _EXAMPLE)
    return table, {word: number or "" for word, number in pairs}
