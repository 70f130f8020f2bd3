"""What an adaptive method works on: the exact answers, group by group, and what rates cost.

A group is a table, or a single query: its answers share one rate. Exact answers are used for one thing only, to have
noise added; every decision is made from noisy answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.costs import calibrate
from hushcube.designs.adaptive import make_grids, rate_limits, sanity_bounds, worth
from hushcube.designs.design import Design
from hushcube.designs.grid import Grid
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.refinement import RelativeTarget, Rule
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.private.blocks import transformed
from hushcube.private.engines import ExactCounts


@dataclass(frozen=True, eq=False)
class Subject:
    """The first answers' plan, the rule with plain numbers, and the exact answers of every group."""

    start: Design
    rule: Rule
    free: Bools
    """Groups whose rates the method may choose; the others are public, or paid for already."""
    truth: Sequence[Ints]

    @property
    def rates(self) -> Floats:
        """The rates at the start."""
        return self.start.budgets

    @cached_property
    def chosen(self) -> Ints:
        """The free groups."""
        return np.flatnonzero(self.free)

    @cached_property
    def allowed(self) -> Fraction:
        """What a row of data may cost."""
        return calibrate.row_budget(self.start.privacy, self.start.proof)

    @cached_property
    def worth(self) -> Floats:
        """The weight of each group's error over what a unit of its rate costs by itself."""
        return worth(self.start)

    @cached_property
    def ranks(self) -> Ints:
        """An order of the free groups that is not that of the attributes: tables by names, queries as they come."""
        if not isinstance(self.start, LatticeDesign):
            return np.arange(len(self.chosen))
        names, tables = self.start.schema.names, tuple(self.start.measured)
        by_names = [sorted(names[i] for i in tables[at]) for at in self.chosen.tolist()]
        return np.argsort(sorted(range(len(by_names)), key=by_names.__getitem__))

    @property
    def has_total(self) -> bool:
        """Whether the answers of every group add up to the same: tables do, queries need not."""
        return isinstance(self.start, LatticeDesign)

    @cached_property
    def sanity_bounds(self) -> Floats:
        """delta of (1), for each group."""
        return sanity_bounds(self.start, self.rule)

    def bound(self, at: int | Ints, scale: Floats | float) -> Floats:
        """What counts of a group are taken for at least when they are seen through noise of a mean size."""
        return np.maximum(self.sanity_bounds[at], float(self.rule.caution) * np.asarray(scale))

    @cached_property
    def paid(self) -> Floats:
        """The rates of what is not free, by itself."""
        return np.where(self.free, 0.0, self.rates)

    @cached_property
    def even_rate(self) -> float:
        """The rate of the free groups, had all of them the same and all of the budget."""
        before = self.cost(self.paid)
        unit = self.cost(np.where(self.free, 1.0, self.rates)) - before
        return float((self.allowed - before) / unit) if unit else np.inf

    def cost(self, rates: Floats) -> Fraction:
        """What rates cost a row of data, exactly or rounded up."""
        return self.start.row_cost(rates)

    def unrefined(self) -> tuple[list[tuple[float, ...]], list[Ints]]:
        """The rates and values of all groups, where what is free is still to be put in place."""
        return [(rate,) for rate in self.rates.tolist()], [answers[None] for answers in self.truth]

    def grids(self) -> list[Grid]:
        """The rates that each free group may pass through."""
        return make_grids(self.start, self.rule, self.chosen)

    def limits(self) -> Floats:
        """Rates that no free group can exceed, whatever the others have."""
        return rate_limits(self.start)[self.chosen]


def exact_answers(design: Design, counts: ExactCounts) -> list[Ints]:
    """The exact answers of each group."""
    answers: list[Ints] = [np.zeros(0, np.int64)] * design.groups
    for block, exact in transformed(design, counts):
        for at, numbers in zip(block.sets.tolist(), exact, strict=True):
            answers[at] = numbers
    return answers


def assembled(design: Design, groups: Sequence[Ints]) -> tuple[Ints, ...]:
    """Arrays (samples, cells) of each group as the values of a measurement: samples of one group come one by one."""
    return tuple(
        np.concatenate([groups[at] for at in sets.tolist()]).reshape(-1, *shape[1:])
        for sets, shape in zip(design.sets_of_arrays, design.shapes, strict=True)
    )


@dataclass(frozen=True, eq=False)
class Refined:
    """For each group the rates of its samples, and the samples themselves, (samples, cells)."""

    rates: Sequence[tuple[float, ...]]
    values: Sequence[Ints]
    report: dict[str, Any] = field(default_factory=dict)


def is_met(answers: NDArray[np.number[Any]], scale: float, target: RelativeTarget) -> bool:
    """Whether answers with noise of a mean size say that the target is met."""
    error, above = float(target.relative_error), float(target.above.value)
    in_view = answers + 3 * scale >= above
    return bool((scale <= error * np.maximum(answers[in_view], above)).all())
