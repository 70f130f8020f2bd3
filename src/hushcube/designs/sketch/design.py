"""Designs that measure sparse random projections of one large table: t repetitions of b buckets with public signs.

    z_rb = sum over cells c thrown into bucket b of sign_rc x_c + noise             [Yaroslavtsev et al. 2013, III-A]

Cells are thrown anew in each repetition, from a public seed that is in the design, the same on every machine:

    word = mix(seed + (repetition 2^40 + cell + 1) * 0x9E3779B97F4A7C15)      modulo 2^64        [Vigna's splitmix64]
    mix(z): z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9, z = (z ^ z >> 27) * 0x94D049BB133111EB, z ^ z >> 31
    bucket = (upper 32 bits * buckets) >> 32            sign = 1 - 2 (lowest bit)

The signs and buckets decide what is measured and protect nobody.
A cell has one +-1 in each repetition, so repetitions are groups with C = 1 that share the budget equally:

    add-remove    t beta
    replace-one   max over pairs of cells of sum_r beta change_r, where they can all be looked at:
                  change = 2 in different buckets; in the same one 0, or with opposite signs 2 (Laplace), 4 (Gaussian).
                  Beyond, 2 t beta (Laplace), 4 t beta (Gaussian)

Each repetition estimates x_c by sign_rc z_rb, and a sum of cells by the sum of these; the average or the median over
the repetitions is the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hushcube.costs.row_cost import exact_sum, largest_cost
from hushcube.designs.answers import Answers, OneByOne, summed
from hushcube.designs.block import Block
from hushcube.designs.design import EVERY_RECOVERY, Design, read_marginal
from hushcube.designs.sketch.errors import SketchErrors
from hushcube.errors import PlanError
from hushcube.model.arrays import Floats, Ints, Marginal, position_rows
from hushcube.model.form import Form
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema

Estimate = Literal["average", "median"]
ESTIMATES: Final[tuple[Estimate, ...]] = get_args(Estimate)
MAX_CELLS: Final = 2**24
MAX_NUMBERS: Final = 2**26  # repetitions times buckets: what is measured
_PAIRED_CELLS: Final = 1024
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True)
class Throws:
    """Where the cells fall in every repetition: a public choice.

    >>> bucket, sign = Throws(cells=6, repetitions=1, buckets=4, seed=1).repetition(0)
    >>> bucket.tolist(), sign.tolist()
    ([2, 2, 3, 1, 1, 3], [-1, -1, 1, -1, -1, 1])
    """

    cells: int
    repetitions: int
    buckets: int
    seed: int

    def __iter__(self) -> Iterator[tuple[Ints, Ints]]:
        return map(self.repetition, range(self.repetitions))

    def repetition(self, r: int) -> tuple[Ints, Ints]:
        """The bucket and the sign of each cell in one repetition."""
        place = np.arange(self.cells, dtype=np.uint64) + np.uint64((r << 40) + 1)
        z = place * _STEP + np.uint64(self.seed)
        z = (z ^ z >> np.uint64(30)) * _FIRST
        z = (z ^ z >> np.uint64(27)) * _SECOND
        z ^= z >> np.uint64(31)
        bucket = ((z >> np.uint64(32)) * np.uint64(self.buckets)) >> np.uint64(32)
        return bucket.astype(np.int64), 1 - 2 * (z & np.uint64(1)).astype(np.int64)


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


@dataclass(frozen=True, eq=False, repr=False)
class SketchDesign(Design, kind="sketch"):
    """Repetitions of buckets over the cells of a marginal."""

    marginal: Marginal
    buckets: int
    seed: int
    estimate: Estimate
    recoveries = EVERY_RECOVERY  # all tables are summed from one, and agree

    def __post_init__(self) -> None:
        if not 0 < self.cells <= MAX_CELLS or not 0 < self.buckets * len(self.budgets) <= MAX_NUMBERS:
            raise PlanError("plan, buckets", "there are too many cells or buckets, or none", "plan again")
        if not 0 <= self.seed < 2**64:
            raise PlanError("plan, seed", "is not a 64-bit number", "plan again")
        if self.estimate not in ESTIMATES or (self.estimate == "median" and len(self.budgets) % 2 == 0):
            raise PlanError("plan, estimate", "must be average, or the median of an odd number", "plan again")
        super().__post_init__()
        if len(set(self.budgets.tolist())) != 1:
            raise PlanError("plan, budget", "repetitions must be alike", "plan again")

    @property
    def cells(self) -> int:
        """Of the table that is thrown into buckets."""
        return self.schema.cells(self.marginal)

    @property
    def throws(self) -> Throws:
        """Where its cells fall."""
        return Throws(self.cells, self.groups, self.buckets, self.seed)

    def blocks(self) -> Iterator[Block]:
        """One repetition after the other."""
        counted = position_rows(self.marginal)
        for r in range(self.groups):
            lines = slice(r, r + 1)
            thrown = ThrownCells(self.throws, r)
            yield Block(counted, thrown, np.array([r]), self.budgets[lines], self.buckets, lines=lines)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Repetitions of buckets."""
        return [(self.groups, self.buckets)]

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{self.groups:,} repetition(s) of {self.buckets:,} buckets of {self.schema.describe(self.marginal)}"

    @property
    def collisions(self) -> float:
        """What other cells in a bucket add to the variance of a cell, over the sum of the squared counts of all."""
        t, b = self.groups, self.buckets
        return 2 * t / (t + 1) / b if self.estimate == "median" else 1 / (t * b)

    @property
    def note(self) -> str | None:
        """Collisions are errors too."""
        if self.estimate == "median":
            return (
                "the standard errors are those of the noise; with collisions the mean squared error of a cell is at "
                f"most {self.collisions * self.buckets:.3g} times that of one repetition: its noise variance "
                f"{self.errors.unit_variance(exact=True):.6g}, and 1/{self.buckets} of the sum of the squared counts "
                "of all cells, on average over throws, or 2k - 2 times that for a sum of k cells"
            )
        return (
            "the standard errors are those of the noise; collisions add to the variance of a cell at most "
            f"{self.collisions:.3g} times the sum of the squared counts of all cells, on average over throws, "
            "and 2k - 2 times that to a sum of k cells"
        )

    @property
    def is_consistent(self) -> bool:
        """Averages of sums are sums of averages; medians are not."""
        return self.estimate == "average"

    def row_cost(self, budgets: Floats) -> Fraction:
        """The exact cost of one row; for many cells under replace-one, a bound."""
        return row_cost(self.throws, budgets, self.privacy)

    def moves(self) -> Floats:
        """By 1, or in one bucket to the other sign."""
        return np.full(self.groups, 2.0 if self.privacy.neighbours == "replace-one" else 1.0)

    @cached_property
    def errors(self) -> SketchErrors:
        """Predicted errors."""
        return SketchErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """The average or the median of the repetitions."""
        if self.estimate == "median":
            return _Median(self, measurement)
        table = sum(self.repetitions(measurement), np.zeros(self.schema.shape(self.marginal))) / self.groups
        return OneByOne(lambda marginal: summed(table, self.marginal, marginal))

    def repetitions(self, measurement: Measurement) -> Iterator[Floats]:
        """Each repetition's estimate of the whole table."""
        for numbers, (bucket, sign) in zip(measurement.values[0], self.throws, strict=True):
            yield (sign * numbers[bucket]).astype(np.float64).reshape(self.schema.shape(self.marginal))

    def is_answerable(self) -> bool:
        """Whether the table that is thrown contains all others."""
        return all(set(A) <= set(self.marginal) for A in self.request.marginals)

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        own = {"buckets": self.buckets, "seed": self.seed, "estimate": self.estimate}
        return {"design": "sketch", "marginal": list(self.marginal), **own}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The buckets from the JSON form."""
        own = {"buckets": int(raw["buckets"]), "seed": int(raw["seed"]), "estimate": raw["estimate"]}
        return {"marginal": read_marginal(raw["marginal"], schema), **own}


@dataclass(frozen=True, eq=False)
class _Median:
    """Medians of the repetitions' sums: tables do not add up to each other."""

    design: SketchDesign
    measurement: Measurement

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        estimates = np.empty((self.design.groups, len(rows), *shape))
        for r, table in enumerate(self.design.repetitions(self.measurement)):
            for at, row in enumerate(rows.tolist()):
                estimates[r, at] = summed(table, self.design.marginal, tuple(row))
        return np.asarray(np.median(estimates, axis=0))

    def form(self, form: Form) -> Floats:
        """The answers of a form, each the median of its own estimates."""
        tables = self.design.repetitions(self.measurement)
        carriers = (summed(table, self.design.marginal, form.marginal) for table in tables)
        return np.asarray(np.median([form.evaluate(table) for table in carriers], axis=0))


def row_cost(throws: Throws, budgets: Floats, privacy: Privacy) -> Fraction:
    """The exact cost of one row, in epsilon (pure) or rho; for many cells under replace-one, a bound."""

    def replaced(spent: Floats) -> Fraction:
        if throws.cells > _PAIRED_CELLS:
            return exact_sum(spent) * (2 if privacy.is_pure else 4)
        amounts = [Fraction(b) for b in spent.tolist()]
        patterns = _changes(throws, pure=privacy.is_pure)
        costs = (sum((b * c for b, c in zip(amounts, line, strict=True)), Fraction(0)) for line in patterns)
        return max(costs, default=Fraction(0))

    return largest_cost(budgets, np.ones(len(budgets), dtype=bool), privacy, exact_sum, replaced)


@lru_cache(maxsize=8)
def _changes(throws: Throws, *, pure: bool) -> tuple[tuple[int, ...], ...]:
    """The different ways in which two cells differ in the repetitions."""
    first, second = np.triu_indices(throws.cells, 1)
    lines = np.zeros((len(first), throws.repetitions), np.int8)
    for r, (bucket, sign) in enumerate(throws):
        apart = bucket[first] != bucket[second]
        opposite = sign[first] != sign[second]
        lines[:, r] = np.where(apart, 2, (2 if pure else 4) * opposite)
    return tuple(map(tuple, np.unique(lines, axis=0).tolist()))
