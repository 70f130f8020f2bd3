"""The same request under other budgets: what more privacy would cost, or less would bring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcube.designs.design import Budgets, Recovery
from hushcube.errors import BadInput, PrivacyError
from hushcube.model.privacy import Number, Privacy
from hushcube.planning.pages import scenarios_page
from hushcube.planning.plan import Plan
from hushcube.planning.planner import refuse_unpredictable
from hushcube.planning.question import Question, amount, compare
from hushcube.planning.summary import table_variances
from hushcube.progress import Progress
from hushcube.shown import Page
from hushcube.strategies import AUTO, Choice


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


class Scenarios(tuple[Scenario, ...]):
    """The best plan under each of several budgets."""

    __slots__ = ()

    def __repr__(self) -> str:
        budgets = ", ".join(scenario.budget for scenario in self[:20])
        return f"Scenarios({amount(self[0].plan.privacy)} = {budgets})"

    def __str__(self) -> str:
        return str(self.page())

    def _repr_html_(self) -> str:
        return self.page().html()

    def page(self) -> Page:
        """One row for each budget."""
        return scenarios_page(self, amount(self[0].plan.privacy))


def checked(values: Sequence[Number]) -> Sequence[Number]:
    """Some budgets, all of them possible."""
    example = "list budgets, for example `0.1,0.5,1,2`"
    if isinstance(values, str) or not values:
        raise BadInput("what_if", "there is no list of budgets", example)
    for value in values:
        try:
            Privacy.of(epsilon=value, neighbours="add-remove")
        except PrivacyError as problem:
            raise BadInput("what_if", f"{str(value)[:40]!r}: {problem.problem}", example) from None
    return values


def what_if(
    question: Question,
    values: Sequence[Number],
    *,
    strategy: Choice = AUTO,
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    progress: Progress | None = None,
) -> Scenarios:
    """The best plan under each budget; all are checked before the first is planned."""
    refuse_unpredictable(strategy)
    questions = {str(value): question.under(value) for value in checked(values)}
    scenarios = []
    for done, (text, changed) in enumerate(questions.items()):
        if progress:
            progress("what if", done / len(questions))
        chosen = compare(changed, strategy=strategy, budgets=budgets, recovery=recovery).chosen
        scenarios.append(Scenario(chosen, text))
    return Scenarios(scenarios)
