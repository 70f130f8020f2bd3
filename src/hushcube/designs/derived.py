"""Plans that rest on another plan: what that one measures and answers is theirs too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from hushcube.designs.answers import Answers
from hushcube.designs.block import Block
from hushcube.designs.design import Design
from hushcube.designs.errors import Errors
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.form import Form
from hushcube.model.noise import Measurement
from hushcube.model.schema import Schema


@dataclass(frozen=True, eq=False, repr=False)
class DerivedDesign(Design):
    """A plan whose `underlying` one, of some other kind, says what is counted and how tables come back."""

    base: type[Design]
    measured_by: Mapping[str, Any]
    """The fields that the kind `base` has of its own."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "measured_by", MappingProxyType(dict(self.measured_by)))
        super().__post_init__()

    @property
    @abstractmethod
    def underlying_budgets(self) -> Floats:
        """One for each set of the underlying plan."""

    @cached_property
    def underlying(self) -> Design:
        """The plan under this one; checked like any other."""
        return self.based(self.underlying_budgets)

    def based(self, budgets: Floats, details: Mapping[str, Any] | None = None) -> Design:
        """A plan of the underlying kind with given budgets."""
        own = (self.request, self.strategy, self.budget_rule, self.recovery, self.proof, budgets)
        return self.base(*own, details=details or {}, **self.measured_by)

    @property
    def groups(self) -> int:
        """As many as there are budgets."""
        return len(self.budgets)

    def blocks(self) -> Iterator[Block]:
        """What the underlying plan measures."""
        return self.underlying.blocks()

    @property
    def counted_tables(self) -> int | None:
        """How many tables of plain counts are measured."""
        return self.underlying.counted_tables

    @property
    def is_consistent(self) -> bool:
        """Whether tables agree with each other."""
        return self.underlying.is_consistent

    def proof_variance(self) -> Floats:
        """Nothing: these plans use Laplace noise, whose proof is direct."""
        return np.zeros(len(self.budgets))

    @cached_property
    def errors(self) -> DerivedErrors:
        """Those of the underlying plan, with margins that hold whatever was measured."""
        return DerivedErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """The underlying plan's, from its averages."""
        under, merged = self.averaged(measurement)
        return under.make_answers(merged)

    def averaged(self, measurement: Measurement) -> tuple[Design, Measurement]:
        """The underlying plan, and the measurement as one of it."""
        return self.underlying, measurement

    def is_answerable(self) -> bool:
        """Whether the underlying plan can be made, which checks that it is."""
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


class DerivedErrors(Errors):
    """Variances of the underlying plan."""

    design: DerivedDesign

    @property
    def _under(self) -> Errors:
        return self.design.underlying.errors

    @property
    def slabs_are_alike(self) -> bool:
        """As in the underlying plan."""
        return self._under.slabs_are_alike

    def cell_variances(self, *, exact: bool) -> Floats:
        """Mean cell variances."""
        return self._under.cell_variances(exact=exact)

    def form_variances(self, form: Form, *, exact: bool) -> Floats:
        """Variances of the answers of a form."""
        return self._under.form_variances(form, exact=exact)

    def form_total(self, form: Form, *, exact: bool) -> float:
        """Their sum."""
        return self._under.form_total(form, exact=exact)

    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        """The variance of a weighted sum of cells."""
        return self._under.sum_variance(marginal, weights)

    def cell_variance_table(self, marginal: Marginal) -> Floats:
        """Variances of the cells of a table."""
        return self._under.cell_variance_table(marginal)
