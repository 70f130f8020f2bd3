"""Plans that measure sets several times with independent noise, and average.

Sample j of set A has rate r_Aj. Their average with weights 1/variance has the least variance among linear ones,

    1 / variance_A = sum_j 1 / variance(r_Aj)                              [Xiao et al. 2011, (16) and Figure 1, line 8]

and a set costs what its samples cost together, sum_j r_Aj. The underlying plan has single samples of the same variance:
sinh²(b/2) = sum_j sinh²(r_j/2), for the discrete Laplace law of rate r has variance 1 / (2 sinh²(r/2)). As sinh is
superadditive, b <= sum_j r_j: it never costs more than this one does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hushcube.designs.block import Block
from hushcube.designs.derived import DerivedDesign
from hushcube.designs.design import Design
from hushcube.errors import PlanError
from hushcube.model.arrays import Floats, Ints
from hushcube.model.noise import Measurement, laplace_variance
from hushcube.model.schema import Schema


@dataclass(frozen=True, eq=False, repr=False)
class RepeatedDesign(DerivedDesign, kind="repeated"):
    """Budget i is that of one sample of the set `sample_of[i]` of the underlying plan; the sets come in order."""

    sample_of: tuple[int, ...]

    def __post_init__(self) -> None:
        owners = np.array(self.sample_of)
        in_order = len(owners) == len(self.budgets) > 0 and owners[0] == 0 and np.isin(np.diff(owners), (0, 1)).all()
        if not self.privacy.is_pure or not in_order:
            raise PlanError("plan, sample_of", "does not fit the budgets", "plan again")
        super().__post_init__()

    @property
    def underlying_budgets(self) -> Floats:
        """The rates of single samples of the same variance."""
        squares = np.bincount(self.sample_of, weights=np.sinh(np.minimum(self.budgets, 700.0) / 2) ** 2)
        single = 2 * np.arcsinh(np.sqrt(squares))
        alone = np.bincount(self.sample_of) == 1
        first = self.budgets[np.flatnonzero(np.diff(self.sample_of, prepend=-1))]
        return np.where(alone, first, single * (1 - 2.0**-50))

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{self.underlying.in_words}, {len(self.budgets):,} independent samples in all"

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Those of the underlying plan, with a line for each sample: sets in their order, samples in theirs."""
        return [(len(chosen), *shape[1:]) for chosen, shape in self._lines()]

    def blocks(self) -> Iterator[Block]:
        """None: how often each set is measured was decided by a run that is over."""
        raise PlanError("plan", "records what a run ended with, and cannot be carried out again", "plan again")

    def row_cost(self, budgets: Floats) -> Fraction:
        """What all samples cost together: sums of rates are rounded up, if at all."""
        totals = [Fraction(0)] * (self.sample_of[-1] + 1)
        infinite = set()
        for owner, budget in zip(self.sample_of, budgets.tolist(), strict=True):
            if np.isinf(budget):
                infinite.add(owner)
            else:
                totals[owner] += Fraction(budget)
        sums = [np.inf if owner in infinite else rounded_up(total) for owner, total in enumerate(totals)]
        return self.underlying.row_cost(np.array(sums))

    def averaged(self, measurement: Measurement) -> tuple[Design, Measurement]:
        """The underlying plan, and the averages of the samples as a measurement of it."""
        precision = np.where(np.isinf(self.budgets), 1.0, 1 / laplace_variance(np.minimum(self.budgets, 600.0)))
        owners = np.array(self.sample_of)
        weights = precision / np.bincount(owners, weights=precision)[owners]
        averages = []
        for (chosen, shape), values in zip(self._lines(), measurement.values, strict=True):
            sets, place = np.unique(owners[chosen], return_inverse=True)
            result = np.zeros((len(sets), *shape[1:]))
            np.add.at(result, place, values * weights[chosen].reshape(-1, *[1] * (len(shape) - 1)))
            averages.append(result)
        merged = Measurement(self.underlying.digest, tuple(averages), measurement.private)  # type: ignore[arg-type]
        return self.underlying, merged

    def _lines(self) -> list[tuple[Ints, tuple[int, ...]]]:
        """For each array of the underlying plan: the samples of its sets, and its shape."""
        under, owners = self.underlying, np.array(self.sample_of)
        pairs = zip(under.sets_of_arrays, under.shapes, strict=True)
        return [(np.flatnonzero(np.isin(owners, sets)), shape) for sets, shape in pairs]

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured, and how often."""
        return {"design": "repeated", **super().specification(), "sample_of": list(self.sample_of)}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """What is measured, and how often, from the JSON form."""
        return {**super().from_specification(raw, schema), "sample_of": tuple(map(int, raw["sample_of"]))}


def rounded_up(value: Fraction) -> float:
    """The least float that is not below.

    >>> Fraction(rounded_up(Fraction(1, 3))) >= Fraction(1, 3)
    True
    """
    near = float(value)
    return near if Fraction(near) >= value else float(np.nextafter(near, np.inf))
