"""The rates of noise that a table may pass through, from coarse to fine.

    arithmetic    lambda_k = lambda_0 - k step     while it is above zero       [Xiao et al. 2011, Figure 4, line 9]
    geometric     lambda_k = lambda_0 factor^k

The paper has no guard: from 15 in steps of 10 it would go on to 5 and -5, whose negative cost passes the budget test.
Rates are floats a hair below 1 / lambda_k, so that scales which add up to epsilon exactly are never refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import BadInput
from hushcube.model.arrays import Floats

MOST_LEVELS: Final = 2**21
BELOW: Final = 1 - 2.0**-50  # three roundings of relative size 2^-53 lie between 1 / lambda and its float


@dataclass(frozen=True, eq=False)
class Grid:
    """Rates of the noise that one table may pass through, increasing; `scales` are its mean sizes, decreasing."""

    rates: Floats

    @classmethod
    def arithmetic(cls, largest: Fraction, step: Fraction, limit: float) -> Grid:
        """Scales down from the largest in equal steps; rates up to the limit.

        >>> (1 / Grid.arithmetic(Fraction(15), Fraction(10), 1.0).rates).round(9).tolist()
        [15.0, 5.0]
        """
        unit = math.lcm(largest.denominator, step.denominator)
        first, down = int(largest * unit), int(step * unit)
        finest = max(Fraction(unit) / Fraction(limit), Fraction(1))
        levels = max(0, math.floor((first - finest) / down)) + 1
        _check(levels)
        if first >= 2**62 or unit >= 2**53:
            raise BadInput("lambda_step", "has too many digits", "round it, and `lambda_max`, to fewer decimals")
        remaining = (first - down * np.arange(levels, dtype=np.int64)).astype(np.float64)
        return cls(_within(unit / remaining * BELOW, limit))

    @classmethod
    def geometric(cls, largest: Fraction, factor: Fraction, limit: float) -> Grid:
        """Scales down from the largest by one factor; rates up to the limit.

        >>> (1 / Grid.geometric(Fraction(8), Fraction(1, 2), 1.0).rates).round(9).tolist()
        [8.0, 4.0, 2.0, 1.0]
        """
        first = float(1 / largest) * BELOW
        levels = max(0, math.floor(math.log(limit / first) / -math.log(float(factor)) + 1e-9)) + 1
        _check(levels)
        return cls(_within(first * float(1 / factor) ** np.arange(levels), limit))

    def __len__(self) -> int:
        return len(self.rates)

    @property
    def scales(self) -> Floats:
        """E|X|, nearly lambda."""
        return mean_size(self.rates)


def mean_size(rate: Floats) -> Floats:
    """E|X| = 2p/(1 - p²) = 1/sinh(rate) of the discrete Laplace law."""
    return np.asarray(1 / np.sinh(np.minimum(rate, 700.0)))


def _within(rates: NDArray[np.floating[Any]], limit: float) -> Floats:
    """The first rate always; of the others those within the limit."""
    return np.concatenate([rates[:1], rates[1:][rates[1:] <= limit]]).astype(np.float64)


def _check(levels: int) -> None:
    if levels > MOST_LEVELS:
        raise too_many(f"{levels:,} steps of a table are more than {MOST_LEVELS:,}")


def too_many(problem: str) -> BadInput:
    """The error for progressions that would take too long."""
    fix = "give a larger step, a smaller `lambda_max`, or a smaller `lambda_factor`"
    return BadInput("lambda_step", problem, fix)
