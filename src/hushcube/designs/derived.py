"""Plans that rest on another plan: what that one measures and answers is theirs too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.designs import errors as error
from hushcube.designs.block import Block
from hushcube.designs.design import Design
from hushcube.model.form import Form
from hushcube.model.marginal import Marginal
from hushcube.model.schema import Schema

Floats = NDArray[np.float64]


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


@error.cell_variances.register
def _cell_variances(design: DerivedDesign, *, exact: bool) -> Floats:
    return error.cell_variances(design.underlying, exact=exact)


@error.form_variances.register
def _form_variances(design: DerivedDesign, form: Form, *, exact: bool) -> Floats:
    return error.form_variances(design.underlying, form, exact=exact)


@error.form_total.register
def _form_total(design: DerivedDesign, form: Form, *, exact: bool) -> float:
    return error.form_total(design.underlying, form, exact=exact)


@error.sum_variance.register
def _sum_variance(design: DerivedDesign, marginal: Marginal, weights: Floats) -> float:
    return error.sum_variance(design.underlying, marginal, weights)


@error.cell_variance_table.register
def _cell_variance_table(design: DerivedDesign, marginal: Marginal) -> Floats:
    return error.cell_variance_table(design.underlying, marginal)
