"""Plans that measure sparse random projections of one large table: t repetitions of b buckets with public signs.

    z_rb = sum over cells c thrown into bucket b of sign_rc x_c + noise             [Yaroslavtsev et al. 2013, III-A]

Cells are thrown anew in each repetition; the seed is in the plan.                           [designs/sketch/throws.py]
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
from typing import Any, Final, Literal, cast, get_args

import numpy as np

from hushcube.costs import calibrate
from hushcube.costs.family_cost import exact_sum
from hushcube.designs.answers import Answers
from hushcube.designs.block import Block
from hushcube.designs.design import Design, read_marginal
from hushcube.designs.sketch.answers import Average, Median
from hushcube.designs.sketch.errors import SketchErrors
from hushcube.designs.sketch.throws import ThrownCells, Throws
from hushcube.errors import PlanError
from hushcube.model.arrays import Floats, Marginal, position_rows
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema

Estimate = Literal["average", "median"]
ESTIMATES: Final[tuple[Estimate, ...]] = get_args(Estimate)
MAX_CELLS: Final = 2**24
MAX_NUMBERS: Final = 2**26
"""Repetitions times buckets: what is measured."""
_PAIRED_CELLS: Final = 1024


@dataclass(frozen=True, eq=False, repr=False)
class SketchDesign(Design, kind="sketch"):
    """Repetitions of buckets over the cells of a marginal."""

    marginal: Marginal
    buckets: int
    seed: int
    estimate: Estimate

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

    @property
    def groups(self) -> int:
        """The repetitions."""
        return len(self.budgets)

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

    def proof_variance(self) -> Floats:
        """What the proof by smoothing adds: a row moves one number of each repetition."""
        return smoothing(self.groups, self.privacy)

    @cached_property
    def errors(self) -> SketchErrors:
        """Predicted errors."""
        return SketchErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """The average or the median of the repetitions."""
        return (Median if self.estimate == "median" else Average)(self, measurement)

    def is_answerable(self) -> bool:
        """Whether the table that is thrown contains all others."""
        return all(set(A) <= set(self.marginal) for A in self.request.marginals)

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        return {
            "design": "sketch",
            "marginal": list(self.marginal),
            "buckets": self.buckets,
            "seed": self.seed,
            "estimate": self.estimate,
        }

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The buckets from the JSON form."""
        return {
            "marginal": read_marginal(raw["marginal"], schema),
            "buckets": int(raw["buckets"]),
            "seed": int(raw["seed"]),
            "estimate": cast("Estimate", raw["estimate"]),
        }


def smoothing(repetitions: int, privacy: Privacy) -> Floats:
    """t² for each repetition."""
    return np.full(repetitions, calibrate.smoothing_variance(privacy, float(repetitions)))


def row_cost(throws: Throws, budgets: Floats, privacy: Privacy) -> Fraction:
    """The exact cost of one row, in epsilon (pure) or rho; for many cells under replace-one, a bound."""
    if not np.isfinite(budgets).all():
        raise OverflowError("exact answers have no finite cost")
    if privacy.neighbours == "add-remove":
        return exact_sum(budgets)
    if throws.cells > _PAIRED_CELLS:
        return exact_sum(budgets) * (2 if privacy.is_pure else 4)
    amounts = [Fraction(b) for b in budgets.tolist()]
    patterns = _changes(throws, pure=privacy.is_pure)
    costs = [sum((b * c for b, c in zip(amounts, line, strict=True)), Fraction(0)) for line in patterns]
    if not privacy.total_is_public:  # rows may also come and go
        costs.append(exact_sum(budgets))
    return max(costs, default=Fraction(0))


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
