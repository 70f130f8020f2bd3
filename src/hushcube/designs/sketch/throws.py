"""Where a sketch throws a cell: buckets and signs from a public seed, the same on every machine.

    word = mix(seed + (repetition 2^40 + cell + 1) * 0x9E3779B97F4A7C15)      modulo 2^64        [Vigna's splitmix64]
    mix(z): z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9, z = (z ^ z >> 27) * 0x94D049BB133111EB, z ^ z >> 31
    bucket = (upper 32 bits * buckets) >> 32            sign = 1 - 2 (lowest bit)

The signs and buckets are public: they decide what is measured and protect nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushcube.model.arrays import Ints

MAX_BUCKETS: Final = 2**26
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


def throw(seed: int, repetition: int, cells: int, buckets: int) -> tuple[Ints, Ints]:
    """The bucket and the sign of each cell in one repetition.

    >>> bucket, sign = throw(1, 0, 6, 4)
    >>> bucket.tolist(), sign.tolist()
    ([2, 2, 3, 1, 1, 3], [-1, -1, 1, -1, -1, 1])
    """
    place = np.arange(cells, dtype=np.uint64) + np.uint64((repetition << 40) + 1)
    z = place * _STEP + np.uint64(seed)
    z = (z ^ z >> np.uint64(30)) * _FIRST
    z = (z ^ z >> np.uint64(27)) * _SECOND
    z ^= z >> np.uint64(31)
    bucket = ((z >> np.uint64(32)) * np.uint64(buckets)) >> np.uint64(32)
    return bucket.astype(np.int64), 1 - 2 * (z & np.uint64(1)).astype(np.int64)


@dataclass(frozen=True)
class Throws:
    """Where the cells fall in every repetition: a public choice."""

    cells: int
    repetitions: int
    buckets: int
    seed: int

    def __iter__(self) -> Iterator[tuple[Ints, Ints]]:
        """The bucket and the sign of each cell, for one repetition after the other."""
        return map(self.repetition, range(self.repetitions))

    def repetition(self, r: int) -> tuple[Ints, Ints]:
        """The bucket and the sign of each cell in one repetition."""
        return throw(self.seed, r, self.cells, self.buckets)


@dataclass(frozen=True)
class ThrownCells:
    """Signed sums of a table's cells in the buckets of one repetition."""

    throws: Throws
    repetition: int

    def apply(self, tables: Ints) -> Ints:
        """One number for each bucket; floats add up fewer than 2^53 people without rounding."""
        bucket, sign = self.throws.repetition(self.repetition)
        sums = np.bincount(bucket, weights=sign * tables.reshape(-1), minlength=self.throws.buckets)
        return sums.astype(np.int64)
