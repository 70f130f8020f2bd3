"""What a plan is asked for, and the plans that answer it, compared; the same under other budgets.

A question splits into one request for each part: the count, and each measure's sums. The average of a cell of n people
with mean m errs by about (Var S + (m - center)² Var C) / n². With |m - center| taken as a quarter of the range, the sum
of these errors over the measures, each relative to its range, is least for shares in proportion to

    w^(1/3) under Laplace, w^(1/2) under Gaussian noise,      w = (Q resolution / range)²; for the count, 1/16 a measure
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from hushcube.designs.design import Budgets, Design, Recovery, read_recovery
from hushcube.designs.request import Effort, Objective, Request
from hushcube.errors import BadInput, PrivacyError
from hushcube.model.measure import Measure
from hushcube.model.privacy import Number, Privacy, exact_number
from hushcube.model.queries import QueryTable, query_table
from hushcube.model.schema import COUNT, Schema
from hushcube.model.workload import Quantity, Workload, public_part
from hushcube.planning.plan import Plan, part_privacy, plain, seen_by
from hushcube.planning.planner import Ranking, Variant, compare as rank, refuse_unpredictable
from hushcube.planning.summary import (
    BALANCE,
    EVERY,
    LARGEST,
    MORE,
    TABLES,
    imprecise_headline,
    parts_page,
    ranking_page,
    table_variances,
    tables_page,
)
from hushcube.progress import Progress, silent
from hushcube.shown import Column, Grid, Page, Remark, Shown, columns, number
from hushcube.strategies import AUTO, Choice, read_strategies
from hushcube.strategies.strategy import objective_value

Amount = Literal["epsilon", "rho"]
Queries = QueryTable | tuple[Sequence[str] | None, Any]
"""A matrix of queries: the attributes of a table (None: all), and rows over its cells, dense or sparse."""


@dataclass(frozen=True)
class Question:
    """The tables, the measures and the guarantee that a plan is asked for, how that is shared, and what is tried."""

    schema: Schema
    workload: Workload
    privacy: Privacy
    objective: Objective = "total"
    effort: Effort = "default"
    asked: tuple[Quantity, ...] = ()
    shares: Mapping[str, Fraction] | None = None
    """Of the count and each measure; None where averages are to err least."""
    strategy: Choice = AUTO
    budgets: Budgets | None = None
    recovery: Recovery | None = None

    @classmethod
    def of(
        cls,
        schema: Schema,
        workload: str | Sequence[str],
        privacy: Privacy,
        *,
        queries: Queries | None = None,
        measures: str | Sequence[str] = (),
        shares: Mapping[str, Number] | None = None,
        strategy: Choice = AUTO,
        balance: bool = False,
        **how: Any,
    ) -> Question:
        """Read the words; what mapping files hold and nobody needs is left out of the schema.

        Attributes that a strategy's options name are needed. With `balance` plans are made with weights for which
        tables count alike. `how` holds the fields that are not words.
        """
        if balance and how.get("objective", "total") == "max":
            fix = "leave one of them out"
            raise BadInput("balance", "is for the total variance: the objective max counts tables alike already", fix)
        named, comparing = read_strategies(strategy)
        read = [one.on(schema) for one in named]
        how["strategy"] = (*sorted(comparing), *read)
        how["recovery"] = None if how.get("recovery") is None else read_recovery(how["recovery"])
        if how.get("budgets") is not None and not comparing and all(one.own_budgets for one in read):
            raise BadInput("budgets", "shares of the budget are given with the tables", "leave one of them out")
        words = [measures] if isinstance(measures, str) else list(measures)
        if not words and shares is None:
            others = None if queries is not None else [name for one in read for name in one.attributes]
            needed = public_part(schema, workload, others)
            wanted = _workload(workload, needed, queries)
            return cls(needed, wanted.balanced if balance else wanted, privacy, **how)
        if queries is not None:
            raise BadInput("queries", "cannot be combined with measures", "ask for tables with the workload")
        needed = public_part(schema, workload)
        found = dict.fromkeys(Quantity.parse(word, needed) for text in words for word in text.split(","))
        asked = tuple(quantity for quantity in found if quantity.measure)
        if not asked:
            raise BadInput("measure", "no measure is asked for", "ask for example for `avg(wage)`")
        given = None if shares is None else {name: exact_number("shares", share) for name, share in shares.items()}
        wanted = Workload.parse(workload, plain(needed))
        return cls(needed, wanted.balanced if balance else wanted, privacy, asked=asked, shares=given, **how)

    def __post_init__(self) -> None:
        if self.shares is None:
            return
        names = [COUNT, *(measure.name for measure in self.measures)]
        if self.shares.keys() != set(names):
            problem = "do not name the count and every measure asked for"
            raise BadInput("shares", problem, f"name {', '.join(names)}")
        if any(share <= 0 for share in self.shares.values()) or sum(self.shares.values()) > 1:
            raise BadInput("shares", "must be positive and sum to at most 1", "give for example count=0.3, wage=0.7")

    @property
    def measures(self) -> list[Measure]:
        """The measures asked for, each once."""
        return [self.schema.measure(name) for name in dict.fromkeys(quantity.measure for quantity in self.asked)]

    @property
    def tried(self) -> dict[str, Any]:
        """What is tried, as the planner takes it."""
        return {"strategy": self.strategy, "budgets": self.budgets, "recovery": self.recovery}

    @cached_property
    def requests(self) -> dict[str, Request]:
        """What is asked of each part's design."""
        if not self.asked:
            return {COUNT: self._request(self.privacy)}
        shares = shares_of(self.privacy, self.measures) if self.shares is None else self.shares
        parts: dict[str, Measure | None] = {COUNT: None, **{measure.name: measure for measure in self.measures}}
        return {
            name: self._request(part_privacy(self.privacy, shares[name], measure)) for name, measure in parts.items()
        }

    def _request(self, privacy: Privacy) -> Request:
        return Request(self.workload, privacy, objective=self.objective, effort=self.effort)

    def under(self, budget: Number) -> Question:
        """The same under another budget of the same kind; delta, neighbours and rows per person stay."""
        privacy = self.privacy
        return replace(self, privacy=Privacy.from_dict({**privacy.to_dict(), amount(privacy): budget}))

    def plan(self, designs: Mapping[str, Design]) -> Plan:
        """The plan that some designs make."""
        count = designs[COUNT]
        if not self.asked:
            return Plan.of_counts(count)
        return Plan(seen_by(count.workload, self.schema), self.privacy, self.asked, designs)

    def planned(self, variant: Variant) -> Plan:
        """The plan of one strategy for all parts."""
        strategy, rule, recovery = variant
        return self.plan({part: strategy.plan(request, rule, recovery) for part, request in self.requests.items()})


def _workload(words: str | Sequence[str], schema: Schema, queries: Queries | None) -> Workload:
    if queries is None:
        return Workload.parse(words, schema)
    if isinstance(queries, QueryTable):
        own = tuple(schema[attribute.name] for attribute in queries.attributes)
        return Workload.parse(words, schema, replace(queries, attributes=own))
    return Workload.parse(words, schema, query_table(schema, *queries))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """The designs that were compared for each part, and the plan of the best of each."""

    question: Question
    parts: Mapping[str, Ranking]

    def __repr__(self) -> str:
        return f"Comparison({len(self.plans):,} plans, chosen: {self.chosen!r})"

    def page(
        self,
        *,
        every_variant: bool = False,
        rows: int = TABLES,
        more: str = MORE,
        every: str = EVERY,
        balance: str = BALANCE,
        largest: str = LARGEST,
    ) -> Page:
        """The strategies, or every variant of them, and the expected error of each table of the chosen plan."""
        plan, counts = self.chosen, self.parts[COUNT]
        above = parts_page(plan) if plan.asked else ranking_page(counts, every_variant=every_variant, every=every)
        below = tables_page(plan, rows, more)
        if (headline := imprecise_headline(plan)) is None or self.question.workload.origin is not None:
            return above + below
        told = f"{headline}: {balance} counts tables alike, {largest} makes the worst ones as precise as possible"
        return above + below + Page((Remark(told),))

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of one strategy for all parts, in the order tried."""
        found = [{_variant(c.plan): c.plan for c in ranking.candidates} for ranking in self.parts.values()]
        shared = [variant for variant in found[0] if all(variant in part for part in found)]
        parts = ({name: part[v] for name, part in zip(self.parts, found, strict=True)} for v in shared)
        return tuple(map(self.question.plan, parts))

    @cached_property
    def chosen(self) -> Plan:
        """The best of each part: one of the plans, if one strategy is the best for all parts."""
        best = {name: ranking.chosen for name, ranking in self.parts.items()}
        alike = (plan for plan in self.plans if dict(plan.designs) == best)
        return next(alike, None) or self.question.plan(best)

    def choosing(self, plan: Plan) -> Comparison:
        """The same comparison, of which another plan is chosen."""
        parts = {name: replace(ranking, chosen=plan.designs[name]) for name, ranking in self.parts.items()}
        return replace(self, parts=parts)

    @property
    def skipped(self) -> dict[str, str]:
        """The strategies that do not apply to some part, with the reason."""
        return {name: reason for ranking in self.parts.values() for name, reason in ranking.skipped.items()}

    @property
    def is_optimal(self) -> bool:
        """Whether every part is proven to be the best possible."""
        return all(ranking.is_optimal for ranking in self.parts.values())


def compare(question: Question, *, progress: Progress | None = None, settle: bool = True) -> Comparison:
    """Compare designs for every part, as `planner.compare` does for one."""
    given: dict[str, Any] = {**question.tried, "progress": progress, "settle": settle}
    comparison = Comparison(question, {name: rank(request, **given) for name, request in question.requests.items()})
    _ = comparison.chosen  # refused here, if the best designs make no plan
    return comparison


def objective_of(plan: Plan) -> float:
    """What plans are compared by: the product of their parts' objectives, which have units of their own."""
    return math.prod(map(objective_value, plan.designs.values()))


def _variant(design: Design) -> tuple[str, Budgets, Recovery]:
    return design.strategy, design.budget_rule, design.recovery


@dataclass(frozen=True)
class Scenario:
    """The best plan under one budget, and the errors of its counts, exact for the noise that is drawn."""

    plan: Plan
    budget: str
    """As a decimal number, or as it was given."""

    @property
    def total_variance(self) -> float:
        """The expected sum of squared errors over all cells."""
        return self.plan.count.errors.total_variance(exact=True)

    @property
    def rmse(self) -> float:
        """Its root mean over cells."""
        return math.sqrt(self.total_variance / self.plan.workload.cells)

    @property
    def median_std_error(self) -> float:
        """The standard error of a cell in the median table."""
        return float(np.sqrt(np.median(table_variances(self.plan))))

    @property
    def worst_std_error(self) -> float:
        """The standard error of a cell in the worst table."""
        return float(np.sqrt(table_variances(self.plan).max()))


class Scenarios(Shown, tuple[Scenario, ...]):
    """The best plan under each of several budgets."""

    __slots__ = ()

    def __repr__(self) -> str:
        budgets = ", ".join(scenario.budget for scenario in self[:20])
        return f"Scenarios({amount(self[0].plan.privacy)} = {budgets})"

    def page(self) -> Page:
        """One row for each budget."""
        numbers = ("total variance", "typical error", "median table", "worst table")
        budget = Column(amount(self[0].plan.privacy), right=True)
        rows = []
        for each in self:
            errors = (each.rmse, each.median_std_error, each.worst_std_error)
            told = (number(each.total_variance), *(f"± {number(error)}" for error in errors))
            rows.append([each.budget, *map(str, _variant(each.plan.count)), *told])
        headings = [budget, *columns(("strategy", "budgets", "recovery"), numbers)]
        return Page((Grid("what if the budget were another", headings, rows),))


def checked(values: Sequence[Number], field: str = "what_if") -> Sequence[Number]:
    """Some budgets, all of them possible; `field` is what asks for them."""
    example = "list budgets, for example `0.1,0.5,1,2`"
    if isinstance(values, str) or not values:
        raise BadInput(field, "there is no list of budgets", example)
    for value in values:
        try:
            Privacy.of(epsilon=value, neighbours="add-remove")
        except PrivacyError as problem:
            raise BadInput(field, f"{str(value)[:40]!r}: {problem.problem}", example) from None
    return values


def what_if(question: Question, values: Sequence[Number], *, progress: Progress | None = None) -> Scenarios:
    """The best plan under each budget; all are checked before the first is planned."""
    refuse_unpredictable(question.strategy)
    questions = {str(value): question.under(value) for value in checked(values)}
    scenarios = []
    for done, (text, changed) in enumerate(questions.items()):
        (progress or silent)("what if", done / len(questions))
        scenarios.append(Scenario(compare(changed).chosen, text))
    return Scenarios(scenarios)


def shares_of(privacy: Privacy, measures: Sequence[Measure]) -> dict[str, Fraction]:
    """The shares that make the asked averages' errors least; they sum to one, exactly."""
    power = 1 / 3 if privacy.is_pure else 1 / 2
    weights = {COUNT: (len(measures) / 16) ** power}
    for measure in measures:
        low, high = measure.bounds
        weights[measure.name] = float(measure.largest * measure.resolution / (high - low)) ** (2 * power)
    total = sum(weights.values())
    shares = {m.name: Fraction(round(10_000 * weights[m.name] / total), 10_000) for m in measures}
    return {COUNT: 1 - sum(shares.values(), Fraction(0)), **shares}


def amount(privacy: Privacy) -> Amount:
    """Which budget a guarantee has."""
    return "epsilon" if privacy.rho is None else "rho"
