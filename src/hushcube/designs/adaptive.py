"""Designs whose noise is only the start: a method refines the answers while the budget lasts.

Measured are the workload's own tables, or the rows of a matrix of queries, each with a scale of its own. The scales are
in the proportions of the base allocation, uniform or optimal for squared errors; the largest of them is lambda_max.

The budgets are those of the first answers, so predicted errors are the largest that a release can have: noise only
becomes smaller. What a run ends with depends on its noisy answers; it is a design of its own, checked to cost no more
than the same guarantee.

A group is a table, or a single query: its answers share one rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.costs import calibrate, row_cost as cost
from hushcube.designs.budgets import fitted
from hushcube.designs.derived import DerivedDesign
from hushcube.designs.design import ADAPTING, Budgets, Design
from hushcube.designs.grid import BELOW, Grid, too_many
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.matrix.design import MatrixDesign
from hushcube.designs.refinement import MOST_PEOPLE, Rule, step_too_large
from hushcube.designs.request import Request
from hushcube.designs.sanity import table_bounds
from hushcube.errors import BadInput, PlanError
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.model.arrays import Bools, Floats
from hushcube.model.noise import LAPLACE
from hushcube.model.queries import QueryTable
from hushcube.model.schema import Schema

MOST_STEPS: Final = 2**24  # of all tables together: their priorities are held
_NOTE: Final = (
    "errors shown are those of the first answers, the largest that the release can have; the method makes them smaller "
    "where that helps relative errors most, and `release` reports what it ended with; `dwork` shows uniform noise"
)


@dataclass(frozen=True, eq=False)
class Measured:
    """What an adaptive method measures: a kind of design, its fields, and what rates cost one row of data."""

    kind: type[Design]
    fields: Mapping[str, Any]
    proportions: Floats
    """Of the rates at the start."""
    fixed: Floats
    """Rates that are not the method's to choose; NaN where they are."""
    cost: Callable[[Floats], Fraction]

    @classmethod
    def of(cls, request: Request, budgets: Budgets, people_epsilon: Fraction | None) -> Measured:
        """The tables or queries of a request."""
        queries = request.workload.queries
        return cls._tables(request, budgets, people_epsilon) if queries is None else cls._queries(request, queries)

    @classmethod
    def _tables(cls, request: Request, budgets: Budgets, people_epsilon: Fraction | None) -> Measured:
        privacy, measured = request.privacy, request.marginals
        is_public = privacy.total_is_public
        if (is_public or people_epsilon is not None) and not len(measured.levels[0]):
            measured = Family(measured.sizes, [np.zeros((1, 0), np.int32), *measured.levels[1:]])
        s = np.ones(len(measured))
        s[measured.ids(request.marginals)] = request.energies
        fixed = np.full(len(measured), np.nan)
        if is_public:
            fixed[cost.unchanged_by_replacing(measured)] = np.inf
        elif people_epsilon is not None:
            fixed[measured.ids([()])] = float(people_epsilon / privacy.rows_per_person) * BELOW
        shape = LAPLACE.best_budgets(s, np.ones(len(s))) if budgets == "optimal" else np.ones(len(s))
        costs = partial(cost.cost_of_sets, MARGINAL, measured, privacy=privacy)
        return cls(LatticeDesign, {"basis": MARGINAL, "measured": measured}, shape, fixed, costs)

    @classmethod
    def _queries(cls, request: Request, queries: QueryTable) -> Measured:
        rows = queries.rows
        fixed = np.full(len(rows), np.nan)
        if request.privacy.total_is_public:
            fixed[cost.constant_rows(rows)] = np.inf
        groups = np.arange(len(rows))
        own = {"marginal": queries.marginal, "rows": rows, "group_of": tuple(groups.tolist())}
        costs = partial(cost.cost_of_rows, rows, groups, privacy=request.privacy)
        return cls(MatrixDesign, own, np.ones(len(rows)), fixed, costs)

    @property
    def free(self) -> Bools:
        """What the method may refine."""
        return np.isnan(self.fixed)

    def rates(self, free: Floats | float) -> Floats:
        """Rates for all of it, given those of what is free."""
        return np.where(self.free, free, self.fixed)


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveDesign(DerivedDesign, kind="adaptive"):
    """The start, and the rule by which it is refined; the strategy names the method."""

    adapts = True
    rule: Rule

    def __post_init__(self) -> None:
        if not self.privacy.is_pure:
            raise PlanError("plan, privacy", "adaptive methods are for pure epsilon", "plan again")
        if self.strategy not in ADAPTING or self.rule.sanity_bound is None:
            raise PlanError("plan, rule", "does not say how to carry the plan out", "plan again")
        table_bounds(self.rule.sanity_bound, self.request.workload)  # refuses bounds of tables that are not there
        super().__post_init__()
        # what is measured follows from the request and the rule: what is not free to be refined is public or paid
        measured = Measured.of(self.request, self.budget_rule, self.rule.people_epsilon)
        fixed = ~measured.free
        asked = self.base is measured.kind and self.based(self.budgets, measured.fields).specification()
        if asked != self.underlying.specification() or (self.budgets[fixed] != measured.fixed[fixed]).any():
            raise PlanError("plan, under", "is not what the workload and the rule ask for", "plan again")

    @property
    def note(self) -> str | None:
        """Its errors are those of the start."""
        return _NOTE

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{self.underlying.in_words}, first roughly and then more precisely where relative errors are large"

    def specification(self) -> dict[str, Any]:
        """The JSON form of the start and the rule."""
        return {"design": "adaptive", **super().specification(), "rule": self.rule.to_dict()}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The start and the rule from the JSON form."""
        return {**super().from_specification(raw, schema), "rule": Rule.from_dict(raw["rule"])}


def start_rates(
    measured: Measured, request: Request, rule: Rule, *, first_share: Fraction | None, people: int | None
) -> Floats:
    """The rates of the first answers.

    They cost `first_share` of the budget if that is given; otherwise they follow from lambda_max, or cost the rule's
    share. `people` is the noisy number, where one was paid for; before it is known, the largest possible one is taken.
    """
    allowed = calibrate.row_budget(request.privacy, "direct")
    paid = measured.cost(measured.rates(0.0))
    left = allowed - paid
    if left * 1000 < allowed:
        fix = "give a small part of epsilon, such as a hundredth"
        raise BadInput("people_epsilon", "leaves nothing for the tables", fix)
    if first_share is not None:
        return _costing(measured, left * first_share)
    is_unknown = rule.people_epsilon is not None and people is None
    settled = rule.settled(MOST_PEOPLE if is_unknown else people)
    if settled.lambda_max is None:
        return _costing(measured, left * rule.start_share)
    largest = settled.lambda_max.value
    if settled.lambda_step is not None and settled.lambda_step.value >= largest and not is_unknown:
        raise step_too_large()
    shape = measured.proportions
    rates = measured.rates(shape / shape[measured.free].min(initial=np.inf) * float(1 / largest) * BELOW)
    spent = measured.cost(rates)
    if spent <= allowed:
        return rates
    raise BadInput(
        "lambda_max",
        f"epsilon is too small to start: noise of this scale costs {float(spent):.6g} for a row of data, "
        f"and {float(allowed):.6g} is allowed",
        f"give a `lambda_max` of at least {_rounded_up(float(largest * (spent - paid) / left))}, or a larger epsilon",
    )


def full_rates(measured: Measured, request: Request) -> Floats:
    """Everything is spent at once, in the proportions of the base allocation."""
    shape = np.where(np.isinf(measured.fixed), np.inf, measured.proportions)
    return fitted(shape, measured.cost, request.privacy, "direct", None)


def _costing(measured: Measured, budget: Fraction) -> Floats:
    """Rates that cost a given part of the budget, besides what is fixed."""
    unit = measured.cost(np.where(measured.free, measured.proportions, np.where(np.isinf(measured.fixed), np.inf, 0.0)))
    return measured.rates(measured.proportions * (float(budget / unit) if unit else 1.0) * BELOW)


def _rounded_up(value: float) -> str:
    """Four significant digits, never below.

    >>> _rounded_up(123456.7), _rounded_up(0.012341)
    ('123500', '0.01235')
    """
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    return f"{math.ceil(value / unit) * unit:.10g}"


def unit_costs(start: Design) -> Floats:
    """What a unit of each group's rate costs, if all other rates are zero; 1 where it costs nothing."""
    if isinstance(start, LatticeDesign):
        is_replaced = start.privacy.neighbours == "replace-one"
        return np.asarray(np.where(is_replaced & ~cost.unchanged_by_replacing(start.measured), 2.0, 1.0))
    if not isinstance(start, MatrixDesign):
        raise NotImplementedError(type(start).__name__)
    rows = start.rows.dense()
    costs = {"add-remove": np.abs(rows).max(axis=1), "replace-one": rows.max(axis=1) - rows.min(axis=1)}
    return np.asarray(np.maximum(np.max([costs[change] for change in start.privacy.row_changes], axis=0), 1.0))


def worth(start: Design) -> Floats:
    """The weight of each group's error over what a unit of its rate costs, up to a factor."""
    if not isinstance(start, LatticeDesign):
        return np.asarray(1 / unit_costs(start))
    weights = np.zeros(len(start.measured))
    weights[start.measured.ids(start.request.marginals)] = start.request.as_asked.weights
    return weights


def sanity_bounds(start: Design, rule: Rule) -> Floats:
    """The sanity bound of each group of a start, for a rule with plain numbers; 1 for what is not asked for."""
    bounds = np.ones(start.groups)
    if rule.sanity_bound is None:
        return bounds
    asked = table_bounds(rule.sanity_bound, start.workload)
    if isinstance(start, LatticeDesign):
        bounds[start.measured.ids(start.workload.marginals)] = [float(bound) for bound in asked]
        return bounds
    return np.broadcast_to(asked[0], start.groups)


def rate_limits(start: Design) -> Floats:
    """Rates that no group of a start can exceed, whatever the others have."""
    allowed = float(calibrate.row_budget(start.privacy, start.proof))
    return allowed * (1 + 1e-9) / unit_costs(start)


def make_grids(start: Design, rule: Rule, chosen: NDArray[np.intp]) -> list[Grid]:
    """The rates that each chosen group of a start may pass through; groups that start alike share a grid."""
    shared = cache(partial(_from, rule))
    grids = list(map(shared, start.budgets[chosen].tolist(), rate_limits(start)[chosen].tolist()))
    if sum(map(len, grids)) > MOST_STEPS:
        raise too_many(f"{sum(map(len, grids)):,} steps of all tables are more than {MOST_STEPS:,}")
    return grids


def _from(rule: Rule, rate: float, limit: float) -> Grid:
    """The grid that begins with a given rate."""
    if rule.lambda_step is None:
        grid = Grid.geometric(1 / Fraction(rate), rule.lambda_factor, limit)
    else:
        step = rule.lambda_step.value
        # a whole number of fractions of a step: the start is the nominal scale where that is a round number
        largest = round(1 / (Fraction(rate) * step) * 2**10) * step / 2**10
        grid = Grid.arithmetic(max(largest, step / 2**10), step, limit)
    return Grid(np.concatenate([[rate], grid.rates[1:][grid.rates[1:] > rate]]))
