"""Designs of what was measured one after the other, answered by least squares over everything.

A stack has layers. Each is what one design measured, with its own guarantee; several may have measured the same sets.
What they spent adds up,                                                                         [docs/privacy.md, 7]

    pure epsilon    epsilon >= sum of the layers' epsilons         rho-zCDP    rho >= sum of the layers' rhos

and where later layers were chosen by earlier answers, the guarantee is what all of them were allowed to spend together.
One row costs at most the sum of what it costs each layer. Under add-remove that is exact, for all columns of a basis
are alike; under replace-one the layers of one basis are maximised together, as one design whose budgets are sums.

Tables are recovered residual space by residual space, or, at nested levels, in the coordinates of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice
from typing import Any, Final, Self

import numpy as np

from hushcube.costs.calibrate import above
from hushcube.costs.row_cost import cost_of_sets
from hushcube.designs.answers import Answers
from hushcube.designs.block import Block
from hushcube.designs.design import Design
from hushcube.designs.errors import Errors
from hushcube.designs.lattice.design import FamilyDesign
from hushcube.designs.levels.design import TOO_COUPLED, level_answers
from hushcube.designs.levels.nesting import Frame, Nesting, nesting
from hushcube.designs.request import Request
from hushcube.designs.stacked.layer import Layer, LayerDesign, Moved, bad, spent_in_all
from hushcube.designs.stacked.levels import StackedLevelErrors, mean_tables
from hushcube.designs.stacked.pool import Pool
from hushcube.designs.stacked.spaces import StackedErrors, estimates
from hushcube.errors import BudgetExceeded, BundleError, NotApplicable, PlanError
from hushcube.lattice.basis import BASES
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload

STACKED: Final = "stacked"


@dataclass(frozen=True, eq=False, repr=False)
class StackedDesign(Design, kind=STACKED):
    """Layers, from the first to the last; the budgets are theirs, one layer's after the other's."""

    serves_levels = True
    recoveries = ("gls",)
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        if not self.layers or len(self.budgets) != self.groups:
            raise PlanError("plan, layers", "do not fit the budgets", "join the layers again")
        if self.privacy.delta is not None:
            fix = "join layers that have an epsilon or a rho, and turn the whole rho into epsilon and delta once"
            raise NotApplicable(self.strategy, f"the deltas of layers would add up: {fix}")
        for layer in self.layers:
            layer.check_fits(self.request)
        for name in ("epsilon", "rho"):
            spent, whole = (getattr(each, name) or Fraction(0) for each in (self.spent, self.privacy))
            if spent > whole:
                raise BudgetExceeded(spent, whole, f"{name} for all layers")
        if self.schema.is_nested and self.frame is None:
            raise NotApplicable(self.strategy, TOO_COUPLED)
        super().__post_init__()

    @classmethod
    def of(cls, designs: Sequence[Design], workload: Workload, *, allowed: Privacy | None = None) -> Self:
        """The stack of what designs measured, to answer a workload.

        Its guarantee is what they were allowed to spend together, or, unless that is given, what they spent.
        """
        moved = [each for design in designs for each in _moved(design, workload.schema)]
        if not moved:
            raise bad("are none", "give at least one design")
        spent = spent_in_all([each.design.privacy for each in moved])
        request = Request(workload, spent if allowed is None else allowed)
        budgets = np.concatenate([each.budgets for each in moved])
        return cls(request, STACKED, "given", "gls", "direct", budgets, tuple(each.layer for each in moved))

    @classmethod
    def join(
        cls,
        designs: Sequence[Design],
        measurements: Sequence[Measurement],
        workload: Workload,
        *,
        allowed: Privacy | None = None,
    ) -> tuple[Self, Measurement]:
        """The stack of what designs measured, and all measurements as one of it."""
        values = []
        for design, measurement in zip(designs, measurements, strict=True):
            if measurement.plan_digest != design.digest:
                raise BundleError("measurements", "belong to another plan", "give each design its own measurement")
            arrays = iter(measurement.values)
            for each in _moved(design, workload.schema):
                values += each.values(list(islice(arrays, len(each.design.shapes))))
        stack = cls.of(designs, workload, allowed=allowed)
        joined = Measurement(stack.digest, tuple(values), private=all(each.private for each in measurements))
        if len({total for pool in stack.pools for total in pool.public_totals(joined)}) > 1:
            problem = "have public totals that differ: they are not of the same people"
            raise BundleError("measurements", problem, "join measurements of one data set")
        return stack, joined

    @cached_property
    def designs(self) -> tuple[LayerDesign, ...]:
        """Each layer as a design of its own, checked like any other."""
        pairs = zip(self.layers, self._split(self.budgets), strict=True)
        return tuple(layer.design(self.request, own) for layer, own in pairs)

    def _split(self, budgets: Floats) -> list[Floats]:
        """The budgets of each layer."""
        return np.split(budgets, np.cumsum([len(layer.measured) for layer in self.layers])[:-1])

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """The layers by their bases."""
        return Pool.each(self.designs)

    @property
    def groups(self) -> int:
        """The sets of all layers; one that several have measured counts as often."""
        return sum(len(layer.measured) for layer in self.layers)

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        bases = " and ".join(dict.fromkeys(layer.basis.name for layer in self.layers))
        return f"{self.groups:,} set(s) of attributes ({bases} basis) in {len(self.layers):,} layer(s)"

    @cached_property
    def spent(self) -> Privacy:
        """What the layers cost together."""
        return spent_in_all([layer.privacy for layer in self.layers])

    @property
    def composition(self) -> str | None:
        """What the layers cost together, and when that is the guarantee."""
        if len(self.layers) == 1 and self.spent == self.privacy:
            return None
        return (
            f"It was measured in {len(self.layers):,} layer(s), one after the other, each with a guarantee of its own; "
            f"together they cost {self.spent.amounts}. If a layer was chosen by what earlier ones had answered, the "
            "guarantee is what the layers were allowed to spend together, and that sum is what this outcome cost."
        )

    @property
    def note(self) -> str | None:
        """Whoever chose a layer may have seen the answers of earlier ones."""
        chosen = "a later layer may have been chosen by what earlier ones answered"
        return f"{chosen}; errors are those of layers chosen beforehand" if len(self.layers) > 1 else None

    @property
    def pools_sets(self) -> bool:
        """All that sees a residual space is combined."""
        return not self.schema.is_nested

    def blocks(self) -> Iterator[Block]:
        """What the layers measure, one after the other."""
        arrays = sets = 0
        for design in self.designs:
            for block in design.blocks():
                yield replace(block, array=block.array + arrays, sets=block.sets + sets)
            arrays, sets = arrays + len(design.shapes), sets + design.groups

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The arrays of all layers."""
        return list(chain.from_iterable(design.shapes for design in self.designs))

    def row_cost(self, budgets: Floats) -> Fraction:
        """What one row costs at most: each layer alone, or, if that is less, those of one basis together."""
        split = self._split(budgets)
        apart = sum((each.row_cost(own) for each, own in zip(self.designs, split, strict=True)), Fraction(0))
        return min(apart, self._cost_together(split)) if "replace-one" in self.privacy.row_changes else apart

    def moves(self) -> Floats:
        """As far as a row moves the numbers of each layer."""
        return np.concatenate([design.moves() for design in self.designs])

    def _cost_together(self, split: Sequence[Floats]) -> Fraction:
        """The cost of the layers of each basis as one design, whose budgets are sums, rounded up; bases add up."""
        together: dict[str, dict[Marginal, list[float]]] = {}
        for layer, own in zip(self.layers, split, strict=True):
            for marginal, budget in zip(layer.measured, own.tolist(), strict=True):
                together.setdefault(layer.basis.name, {}).setdefault(marginal, []).append(budget)
        result = Fraction(0)
        for name, found in together.items():
            measured = Family.of(found, self.schema.sizes)
            sums = np.array([_sum(found[marginal]) for marginal in measured])
            result += cost_of_sets(BASES[name], measured, sums, self.privacy)
        return result

    def is_drawable(self) -> bool:
        """Whether all noise fits 64-bit integers; the layers have been checked."""
        return all(design.is_drawable() for design in self.designs)

    # ------------------------------------------------------------------------------------------------ least squares

    @cached_property
    def nesting(self) -> Nesting:
        """The levels of the schema."""
        return nesting(self.schema)

    @cached_property
    def measured(self) -> Family:
        """The sets of all layers, each once."""
        every = {marginal for layer in self.layers for marginal in layer.measured}
        return Family.of(every, self.schema.sizes)

    @cached_property
    def frame(self) -> Frame | None:
        """At nested levels, the coordinates in which tables are combined."""
        return Frame.of(self.nesting, list(self.measured))

    def is_answerable(self) -> bool:
        """Whether every residual space is seen; at nested levels, whether some table holds each that is needed."""
        if self.schema.is_nested:
            return self.nesting.all_held(self.request.marginals, self.measured)
        return bool(np.isfinite(self.errors.cell_variances(exact=False)).all())

    @cached_property
    def errors(self) -> Errors:
        """Predicted errors."""
        return StackedLevelErrors(self) if self.schema.is_nested else StackedErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """Least squares over everything."""
        if isinstance(self.errors, StackedLevelErrors):
            (pool,) = self.pools
            return level_answers(self.errors, mean_tables(pool, measurement))
        return estimates(self.pools, measurement, self.request.spaces)

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        return {"design": STACKED, "layers": [layer.to_dict() for layer in self.layers]}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The layers from the JSON form."""
        return {"layers": tuple(Layer.from_dict(layer, schema) for layer in raw["layers"])}


def _sum(budgets: Sequence[float]) -> float:
    """The least float that is not below the exact sum."""
    return above(sum(map(Fraction, budgets), Fraction(0))) if math.isfinite(max(budgets)) else math.inf


def _moved(design: Design, schema: Schema) -> list[Moved]:
    """What a design measured, as layers on a schema; a stack has several."""
    if isinstance(design, StackedDesign):
        return [Moved(layer, schema) for layer in design.designs]
    if not isinstance(design, FamilyDesign) or design.is_outcome:
        reason = "only tables, and parts of tables, whose noise was planned can be layers of a stack"
        raise NotApplicable(design.strategy, reason)
    return [Moved(design, schema)]
