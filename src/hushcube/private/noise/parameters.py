"""Checks and bookkeeping shared by the samplers."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 16  # draws worked on at a time: a dozen temporaries of this size stay in the cache


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
    # glibc gives freed blocks above a threshold back to the system, and each temporary is then paged in anew,
    # at the price of the draws themselves. Freeing one larger block, untouched, raises that threshold.
    np.empty(16 * BLOCK)
    height = max(1, BLOCK // columns)
    for top in range(0, rows, height):
        for left in range(0, columns, BLOCK):
            yield slice(top, min(top + height, rows)), slice(left, min(left + BLOCK, columns))
