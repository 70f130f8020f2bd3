"""A layer of a stack: what one design measured, on the schema of the whole, and the guarantee that it kept.

The tables asked for may name more levels of an attribute than a layer knows. The schema of the stack then has more
attributes than the layer's: each set is found there by the names of its attributes, which stand in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from hushcube.designs.answers import Answers
from hushcube.designs.errors import Errors
from hushcube.designs.lattice.design import FamilyDesign
from hushcube.designs.request import Request
from hushcube.errors import PlanError
from hushcube.lattice.basis import BASES, Basis
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.family import Family, Rows
from hushcube.model.arrays import Floats, Ints
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema


@dataclass(frozen=True, eq=False)
class Layer:
    """Sets of attributes, measured in a basis under a guarantee."""

    privacy: Privacy
    basis: Basis
    measured: Family

    def check_fits(self, request: Request) -> None:
        """Refuse a layer that protects other people than the whole, or that cannot be combined with the others."""
        own, whole = self.privacy, request.privacy
        if (own.neighbours, own.rows_per_person) != (whole.neighbours, whole.rows_per_person):
            raise bad("protect people by other neighbours or rows per person than the whole", "join layers of one kind")
        if own.is_pure != whole.is_pure or own.delta is not None:
            raise bad("have epsilon, rho and delta mixed", "join layers that all have an epsilon, or all a rho")
        if request.schema.is_nested and not self.basis.holds_cells:
            problem = f"are in the {self.basis.name} basis, and an attribute is asked for at several levels"
            raise bad(problem, "measure tables of counts there, or ask for each attribute at one level")

    def design(self, request: Request, budgets: Floats) -> LayerDesign:
        """The layer as a design, with its budgets; its cost is checked."""
        own = replace(request, privacy=self.privacy)
        return LayerDesign(own, "layer", "given", "gls", "direct", budgets, self.basis, self.measured)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        measured = [level.tolist() for level in self.measured.levels]
        return {"privacy": self.privacy.to_dict(), "basis": self.basis.name, "measured": measured}

    @classmethod
    def from_dict(cls, raw: dict[str, Any], schema: Schema) -> Layer:
        """Read the JSON form."""
        measured = FamilyDesign.from_specification(raw, schema)["measured"]
        return cls(Privacy.from_dict(raw["privacy"]), BASES[raw["basis"]], measured)


@dataclass(frozen=True, eq=False, repr=False)
class LayerDesign(FamilyDesign):
    """A layer, checked like any design. It answers nothing by itself: the stack does."""

    serves_levels = True

    def __post_init__(self) -> None:
        names = [[self.schema.attributes[i].name.partition("@")[0] for i in m] for m in self.measured]
        if self.schema.is_nested and any(len(set(own)) < len(own) for own in names):
            raise ValueError("a table has an attribute at two levels")
        super().__post_init__()

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{len(self.measured):,} set(s) of attributes ({self.basis.name} basis)"

    def is_answerable(self) -> bool:
        """Whatever else is needed is in other layers."""
        return True

    @property
    def errors(self) -> Errors:
        """Those of the stack."""
        return self._not_alone()

    def make_answers(self, measurement: Measurement) -> Answers:  # noqa: ARG002 - the stack looks at it
        """Those of the stack."""
        return self._not_alone()

    def _not_alone(self) -> NoReturn:
        raise PlanError("plan", "is one layer of a stack, and answers nothing by itself", "ask the stack")


@dataclass(frozen=True, eq=False)
class Moved:
    """A design that is to be a layer on another schema of the same attributes, at more levels."""

    design: FamilyDesign
    schema: Schema

    @cached_property
    def _positions(self) -> list[int]:
        """Where the attributes of the design stand in the schema; -1 where they do not."""
        there = {name: at for at, name in enumerate(self.schema.names)}
        return [there.get(name, -1) for name in self.design.schema.names]

    @cached_property
    def layer(self) -> Layer:
        """The layer."""
        own, design = self.design.schema, self.design
        if own.declared != self.schema.declared:
            raise bad("are of another schema than the workload", "join layers of one schema, and ask for its tables")
        lacking = [own.names[i] for i in design.measured.attributes.tolist() if self._positions[i] < 0]
        if lacking:
            problem = f"know {lacking[0]!r}, at a level that no table of the workload is asked for at"
            raise bad(problem, f"ask for a table with {lacking[0]!r}, too")
        sets = [tuple(self._positions[i] for i in marginal) for marginal in design.measured]
        return Layer(design.privacy, design.basis, Family.of(sets, self.schema.sizes))

    @property
    def budgets(self) -> Floats:
        """In the order of the layer."""
        back = (self._back(batch.rows) for batch in self.layer.measured.batches)
        result = np.empty(len(self.layer.measured))
        for batch, rows in zip(self.layer.measured.batches, back, strict=True):
            result[batch.ids] = self.design.budgets[self.design.measured.find(rows)]
        return result

    def values(self, arrays: Sequence[Ints]) -> list[Ints]:
        """A measurement of the design as one of the layer."""
        measured = Coefficients(self.design.measured, tuple(arrays))
        found = [measured.gather(self._back(batch.rows)) for batch in self.layer.measured.batches]
        return [np.asarray(numbers, np.int64) for numbers in found if numbers is not None]

    def _back(self, rows: Rows) -> Rows:
        """The same sets in the design's own schema."""
        there = np.full(len(self.schema), -1, np.int32)
        there[[at for at in self._positions if at >= 0]] = [own for own, at in enumerate(self._positions) if at >= 0]
        return np.asarray(there[rows])


def spent_in_all(layers: Sequence[Privacy]) -> Privacy:
    """The guarantee of several, one after the other."""
    first = layers[0]
    same = {(p.neighbours, p.rows_per_person, p.is_pure, p.delta) for p in layers}
    if len(same) > 1 or first.delta is not None:
        problem = "differ in neighbours, in rows per person, or in kind"
        raise bad(problem, "join layers that all have an epsilon, or all a rho, for the same people")
    amount = "epsilon" if first.is_pure else "rho"
    total = sum((getattr(privacy, amount) for privacy in layers), Fraction(0))
    return Privacy.of(**{amount: total}, neighbours=first.neighbours, rows_per_person=first.rows_per_person)


def bad(problem: str, fix: str) -> PlanError:
    """What is wrong with layers."""
    return PlanError("layers", problem, fix)
