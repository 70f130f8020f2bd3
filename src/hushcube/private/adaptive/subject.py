"""What an adaptive method works on: the exact answers, group by group, and what rates cost.

A group is a table, or a single query: its answers share one rate. Exact answers are used for one thing only, to have
noise added; every decision is made from noisy answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, singledispatch

import numpy as np
from numpy.typing import NDArray

from hushcube.plan import calibrate
from hushcube.plan.adaptive.rule import Rule
from hushcube.plan.kinds import LatticePlan, MatrixPlan
from hushcube.plan.plan import Plan
from hushcube.private.engines import ExactCounts
from hushcube.private.kinds import row_sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Subject:
    """The first answers' plan, the rule with plain numbers, and the exact answers of every group."""

    start: Plan
    rule: Rule
    free: NDArray[np.bool_]
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

    @property
    def sanity_bound(self) -> float:
        """delta of (1)."""
        return 0.0 if self.rule.sanity_bound is None else float(self.rule.sanity_bound.value)

    def cost(self, rates: Floats) -> Fraction:
        """What rates cost a row of data, exactly or rounded up."""
        return self.start.row_cost(rates)

    def limits(self) -> Floats:
        """The largest rate that each free group could have with all others as at the start."""
        spare = float(self.allowed - self.cost(self.rates)) * (1 + 1e-9)
        step = self.unit_costs[self.chosen]
        return np.asarray(self.rates[self.chosen] + spare / step)

    @cached_property
    def unit_costs(self) -> Floats:
        """At least what a group costs for each unit of its rate."""
        factor = 2.0 if self.start.privacy.neighbours == "replace-one" else 1.0
        return factor * sizes_of_change(self.start)

    def with_start(self, start: Plan) -> Subject:
        """The same answers under another start."""
        return replace(self, start=start)


@singledispatch
def exact_answers(plan: Plan, counts: ExactCounts) -> list[Ints]:
    """The exact answers of each group."""
    raise NotImplementedError(type(plan).__name__)


@exact_answers.register
def _(plan: LatticePlan, counts: ExactCounts) -> list[Ints]:
    answers: list[Ints] = [np.zeros(0, np.int64)] * len(plan.measured)
    for batch in plan.measured.batches:
        tables = counts.tables(batch.rows).reshape(len(batch.ids), -1)
        for at, table in zip(batch.ids.tolist(), tables, strict=True):
            answers[at] = table
    return answers


@exact_answers.register
def _(plan: MatrixPlan, counts: ExactCounts) -> list[Ints]:
    return list(row_sums(plan, counts)[:, None])


@singledispatch
def assembled(plan: Plan, groups: Sequence[Ints]) -> tuple[Ints, ...]:
    """Arrays (samples, cells) of each group as the values of a measurement: samples of one group come one by one."""
    raise NotImplementedError(type(plan).__name__)


@assembled.register
def _(plan: LatticePlan, groups: Sequence[Ints]) -> tuple[Ints, ...]:
    return tuple(
        np.concatenate([groups[at] for at in batch.ids.tolist()]).reshape(-1, *batch.shape)
        for batch in plan.measured.batches
    )


@assembled.register
def _(plan: MatrixPlan, groups: Sequence[Ints]) -> tuple[Ints, ...]:  # noqa: ARG001 - one number a row
    return (np.concatenate([group.reshape(-1) for group in groups]),)


@singledispatch
def worth(plan: Plan) -> Floats:
    """The weight of each group's error over what a unit of its rate costs."""
    raise NotImplementedError(type(plan).__name__)


@worth.register
def _(plan: LatticePlan) -> Floats:
    weights = np.zeros(len(plan.measured))
    weights[plan.measured.ids(plan.request.marginals)] = plan.request.weights
    return weights


@worth.register
def _(plan: MatrixPlan) -> Floats:
    return np.asarray(1 / sizes_of_change(plan))


@singledispatch
def sizes_of_change(plan: Plan) -> Floats:
    """By how much a row of data that comes or goes moves each group's answers."""
    raise NotImplementedError(type(plan).__name__)


@sizes_of_change.register
def _(plan: LatticePlan) -> Floats:
    return np.ones(len(plan.measured))


@sizes_of_change.register
def _(plan: MatrixPlan) -> Floats:
    _, values, row_of = plan.rows.arrays
    largest = np.ones(len(plan.rows))
    np.maximum.at(largest, row_of, np.abs(values))
    return largest
