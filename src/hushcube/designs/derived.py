"""Designs that rest on another one: what that one measures and answers is theirs too.

One kind measures sets several times with independent noise, and averages. Sample j of set A has rate r_Aj. Their
average with weights 1/variance has the least variance among linear ones,

    1 / variance_A = sum_j 1 / variance(r_Aj)                              [Xiao et al. 2011, (16) and Figure 1, line 8]

and a set costs what its samples cost together, sum_j r_Aj. The underlying design has single samples of the same
variance: sinh²(b/2) = sum_j sinh²(r_j/2), for the discrete Laplace law of rate r has variance 1 / (2 sinh²(r/2)). As
sinh is superadditive, b <= sum_j r_j: it never costs more than this one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from hushcube.costs.calibrate import above
from hushcube.designs.answers import Answers
from hushcube.designs.block import Block
from hushcube.designs.design import EVERY_RECOVERY, Design
from hushcube.designs.errors import Along, Errors
from hushcube.errors import PlanError
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.form import Form
from hushcube.model.noise import Measurement, laplace_variance
from hushcube.model.schema import Schema


@dataclass(frozen=True, eq=False, repr=False)
class DerivedDesign(Design):
    """A design whose `underlying` one, of some other kind, says what is counted and how tables come back."""

    base: type[Design]
    measured_by: Mapping[str, Any]
    """The fields that the kind `base` has of its own."""
    recoveries = EVERY_RECOVERY  # the underlying design says which

    def __post_init__(self) -> None:
        object.__setattr__(self, "measured_by", MappingProxyType(dict(self.measured_by)))
        super().__post_init__()

    @property
    def underlying_budgets(self) -> Floats:
        """One for each set of the underlying design."""
        return self.budgets

    @cached_property
    def underlying(self) -> Design:
        """The design under this one; checked like any other."""
        return self.based(self.underlying_budgets)

    def based(self, budgets: Floats, measured_by: Mapping[str, Any] | None = None) -> Design:
        """A design of the underlying kind with given budgets, or other fields."""
        own = (self.request, self.strategy, self.budget_rule, self.recovery, self.proof, budgets)
        return self.base(*own, **(measured_by or self.measured_by))

    def blocks(self) -> Iterator[Block]:
        """What the underlying design measures."""
        return self.underlying.blocks()

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Those of the underlying design."""
        return self.underlying.shapes

    def row_cost(self, budgets: Floats) -> Fraction:
        """What the underlying design costs."""
        return self.underlying.row_cost(budgets)

    @property
    def counted_tables(self) -> int | None:
        """How many tables of plain counts are measured."""
        return self.underlying.counted_tables

    @property
    def is_consistent(self) -> bool:
        """Whether tables agree with each other."""
        return self.underlying.is_consistent

    @cached_property
    def errors(self) -> Errors:
        """Those of the underlying design, with margins that hold whatever was measured."""
        return _DerivedErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """The underlying design's, from its averages."""
        under, merged = self.averaged(measurement)
        return under.make_answers(merged)

    def averaged(self, measurement: Measurement) -> tuple[Design, Measurement]:
        """The underlying design, and the measurement as one of it."""
        return self.underlying, measurement

    def is_answerable(self) -> bool:
        """Whether the underlying design can be made, which checks that it is."""
        return self.underlying.is_answerable()

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        return {"under": self.underlying.specification()}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The underlying kind and its fields from the JSON form."""
        base = Design.kinds[raw["under"]["design"]]
        if issubclass(base, DerivedDesign):
            raise ValueError
        return {"base": base, "measured_by": base.from_specification(raw["under"], schema)}


class _DerivedErrors(Errors):
    def __init__(self, design: DerivedDesign) -> None:
        super().__init__(design)
        self._under = design.underlying.errors
        self.slabs_are_alike = self._under.slabs_are_alike

    def cell_variances(self, *, exact: bool) -> Floats:
        return self._under.cell_variances(exact=exact)

    def form_variances(self, form: Form, *, exact: bool) -> Floats:
        return self._under.form_variances(form, exact=exact)

    def form_total(self, form: Form, *, exact: bool) -> float:
        return self._under.form_total(form, exact=exact)

    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        return self._under.sum_variance(marginal, weights)

    def cell_variance_table(self, marginal: Marginal) -> Floats:
        return self._under.cell_variance_table(marginal)

    def covariances(self, marginal: Marginal, rows: Along, totals: Along) -> Floats:
        return self._under.covariances(marginal, rows, totals)

    def sum_covariance(self, marginal: Marginal, first: Floats, second: Floats) -> float:
        return self._under.sum_covariance(marginal, first, second)

    def cell_covariances(self, marginal: Marginal) -> Floats | None:
        return self._under.cell_covariances(marginal)


@dataclass(frozen=True, eq=False, repr=False)
class RepeatedDesign(DerivedDesign, kind="repeated"):
    """Budget i is that of one sample of the set `sample_of[i]` of the underlying design; the sets come in order."""

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
        """Those of the underlying design, with a line for each sample: sets in their order, samples in theirs."""
        return [(len(chosen), *shape[1:]) for chosen, shape in self._lines()]

    def blocks(self) -> Iterator[Block]:
        """None: how often each set is measured was decided by a run that is over."""
        raise PlanError("plan", "records what a run ended with, and cannot be carried out again", "plan again")

    def row_cost(self, budgets: Floats) -> Fraction:
        """What all samples cost together: sums of rates are rounded up, if at all."""
        samples = np.split(budgets, np.flatnonzero(np.diff(self.sample_of)) + 1)
        sums = [above(sum(map(Fraction, own.tolist()))) if np.isfinite(own).all() else np.inf for own in samples]
        return self.underlying.row_cost(np.array(sums))

    def averaged(self, measurement: Measurement) -> tuple[Design, Measurement]:
        """The underlying design, and the averages of the samples as a measurement of it."""
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
        """For each array of the underlying design: the samples of its sets, and its shape."""
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
