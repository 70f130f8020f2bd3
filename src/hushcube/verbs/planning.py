"""The verbs before data is touched: plan, compare strategies, find a budget, look at other budgets.

>>> from hushcube.model.attribute import Attribute
>>> schema = Schema([Attribute("sex", values=["F", "M"]), Attribute("age", range=[0, 9])])
>>> plan(schema, "<=2-way", rho="0.5", neighbours="add-remove").strategy
'residual'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from hushcube.designs.design import Budgets, Recovery
from hushcube.designs.request import Effort, Objective
from hushcube.errors import BadInput
from hushcube.model.privacy import Number, Privacy
from hushcube.model.schema import Schema
from hushcube.planning.inverse import Found
from hushcube.planning.inverse import find_budget as search_budget
from hushcube.planning.plan import Plan
from hushcube.planning.question import Amount, Comparison, Queries, Question
from hushcube.planning.question import compare as compare_plans
from hushcube.planning.targets import Target
from hushcube.planning.what_if import Scenarios
from hushcube.planning.what_if import what_if as compare_budgets
from hushcube.progress import Progress
from hushcube.strategies import Choice, Strategy, read_strategies
from hushcube.verbs.schemas import schema_of


def compare(
    schema: Schema | str | Path,
    workload: str | Sequence[str],
    *,
    queries: Queries | None = None,
    measures: str | Sequence[str] = (),
    shares: Mapping[str, Number] | None = None,
    neighbours: str,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    strategy: Choice = "all",
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    objective: Objective = "total",
    effort: Effort = "default",
    progress: Progress | None = None,
    settle: bool = True,
) -> Comparison:
    """Every applicable plan with its predicted error, and the best one; no data, no cost.

    `measures` are words such as `avg(wage)` and `sum(days)`, of the same tables and under the same guarantee; `shares`
    divides it among `count` and the measures, or else it is divided so that averages err least.
    With the strategy `auto`, a design that is proven to be the best ends the comparison, unless it may not `settle`.
    """
    schema = schema_of(schema)
    rows = schema.rows_per_person(rows_per_person)
    privacy = Privacy.of(epsilon=epsilon, rho=rho, delta=delta, neighbours=neighbours, rows_per_person=rows)
    chosen, named = _chosen(strategy, schema)
    question = Question.of(
        schema,
        workload,
        privacy,
        objective=objective,
        effort=effort,
        named=named,
        queries=queries,
        measures=measures,
        shares=shares,
    )
    return compare_plans(
        question, strategy=chosen, budgets=budgets, recovery=recovery, progress=progress, settle=settle
    )


def plan(
    schema: Schema | str | Path,
    workload: str | Sequence[str],
    *,
    queries: Queries | None = None,
    measures: str | Sequence[str] = (),
    shares: Mapping[str, Number] | None = None,
    neighbours: str,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    strategy: Choice = "auto",
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    objective: Objective = "total",
    effort: Effort = "default",
) -> Plan:
    """The plan of one strategy, or of the best one; no data, no cost. Words are those of `compare`."""
    return compare(
        schema,
        workload,
        queries=queries,
        measures=measures,
        shares=shares,
        neighbours=neighbours,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        rows_per_person=rows_per_person,
        strategy=strategy,
        budgets=budgets,
        recovery=recovery,
        objective=objective,
        effort=effort,
    ).chosen


def find_budget(
    schema: Schema | str | Path,
    workload: str | Sequence[str],
    *,
    queries: Queries | None = None,
    measures: str | Sequence[str] = (),
    shares: Mapping[str, Number] | None = None,
    targets: Sequence[str | Target],
    guarantee: Amount = "epsilon",
    neighbours: str,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    strategy: Choice = "auto",
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    objective: Objective = "total",
    effort: Effort = "default",
    progress: Progress | None = None,
) -> Found:
    """The smallest epsilon or rho found to meet all targets, and the plan that does; no data, no cost.

    Plans are made for the workload as a whole; one made for the targets alone might need less (`Found.searched`).

    >>> from hushcube import Attribute, Schema
    >>> schema = Schema((Attribute(name="sex", values=("F", "M")), Attribute(name="age", range=(0, 9))))
    >>> found = find_budget(schema, "<=2-way", targets=["age*sex: stderr<=20"], neighbours="add-remove")
    >>> found.budget, round(found.reached[0], 2)
    ('0.0707', 20.0)
    """
    if guarantee not in get_args(Amount):
        raise BadInput("guarantee", f"{guarantee!r} is unknown", "choose epsilon or rho")
    schema = schema_of(schema)
    rows = schema.rows_per_person(rows_per_person)
    privacy = Privacy.of(**{guarantee: 1}, delta=delta, neighbours=neighbours, rows_per_person=rows)
    chosen, named = _chosen(strategy, schema)
    question = Question.of(
        schema,
        workload,
        privacy,
        objective=objective,
        effort=effort,
        named=named,
        queries=queries,
        measures=measures,
        shares=shares,
    )
    return search_budget(question, targets, strategy=chosen, budgets=budgets, recovery=recovery, progress=progress)


def what_if(
    schema: Schema | str | Path,
    workload: str | Sequence[str],
    *,
    queries: Queries | None = None,
    measures: str | Sequence[str] = (),
    shares: Mapping[str, Number] | None = None,
    neighbours: str,
    epsilon: Sequence[Number] | None = None,
    rho: Sequence[Number] | None = None,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    strategy: Choice = "auto",
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    objective: Objective = "total",
    effort: Effort = "default",
    progress: Progress | None = None,
) -> Scenarios:
    """The best plan under each of several budgets, epsilon or rho; no data, no cost."""
    kind = {name: 1 for name, values in (("epsilon", epsilon), ("rho", rho)) if values is not None}
    schema = schema_of(schema)
    rows = schema.rows_per_person(rows_per_person)
    privacy = Privacy.of(**kind, delta=delta, neighbours=neighbours, rows_per_person=rows)
    chosen, named = _chosen(strategy, schema)
    question = Question.of(
        schema,
        workload,
        privacy,
        objective=objective,
        effort=effort,
        named=named,
        queries=queries,
        measures=measures,
        shares=shares,
    )
    values = list(epsilon if epsilon is not None else rho or ())
    return compare_budgets(question, values, strategy=chosen, budgets=budgets, recovery=recovery, progress=progress)


def _chosen(strategy: Choice, schema: Schema) -> tuple[Choice, list[str]]:
    """The strategies with the files read that their options name, and the attributes that these name."""
    named, words = read_strategies(strategy)
    read = [one.on(schema) for one in named]
    chosen: list[str | Strategy] = [*sorted(words), *read]
    return chosen[0] if len(chosen) == 1 else chosen, [name for one in read for name in one.attributes]
