"""The part of `hushcube plan` that looks at other budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hushcube.cli.options import chosen_strategy
from hushcube.progress import Progress

if TYPE_CHECKING:
    from hushcube.planning.question import Comparison
    from hushcube.planning.what_if import Scenario, Scenarios


def read_budgets(numbers: str) -> list[str]:
    """The budgets in an option's text, checked before any work is done for them."""
    from hushcube.planning.what_if import checked

    values = [text.strip() for text in numbers.split(",")]
    checked(values)
    return values


def other_budgets(comparison: Comparison, values: list[str], options: dict[str, Any], progress: Progress) -> Scenarios:
    """The same question under other budgets of the same kind."""
    from hushcube.planning.what_if import what_if

    return what_if(
        comparison.question,
        values,
        strategy=chosen_strategy(options),
        budgets=options["budgets"],
        recovery=options["recovery"],
        progress=progress,
    )


def scenario_list(scenarios: Sequence[Scenario]) -> list[dict[str, Any]]:
    """The scenarios for the JSON document; fields mean what they mean elsewhere in it."""
    from hushcube.planning.question import amount

    result = []
    for scenario in scenarios:
        plan = scenario.plan.count
        total = plan.errors.total_variance(exact=False)
        result.append(
            {
                amount(scenario.plan.privacy): scenario.budget,
                "strategy": plan.strategy,
                "budgets": plan.budget_rule,
                "recovery": plan.recovery,
                "total_variance": total,
                "rmse": math.sqrt(total / plan.workload.cells),
                "total_variance_discrete": scenario.total_variance,
                "median_std_error": scenario.median_std_error,
                "worst_std_error": scenario.worst_std_error,
            }
        )
    return result
