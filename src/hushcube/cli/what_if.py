"""The part of `hushcube plan` that looks at other budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hushcube.cli.options import chosen_strategy
from hushcube.cli.output import console, number
from hushcube.progress import Progress

if TYPE_CHECKING:
    from hushcube.planning.question import Comparison
    from hushcube.planning.what_if import Scenario


def read_budgets(numbers: str) -> list[str]:
    """The budgets in an option's text, checked before any work is done for them."""
    from hushcube.planning.what_if import checked

    values = [text.strip() for text in numbers.split(",")]
    checked(values)
    return values


def other_budgets(
    comparison: Comparison, values: list[str], options: dict[str, Any], progress: Progress
) -> tuple[Scenario, ...]:
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


def show_scenarios(scenarios: Sequence[Scenario]) -> None:
    """One row for each budget."""
    from rich.table import Table

    from hushcube.planning.question import amount

    grid = Table(title="what if the budget were another", title_justify="left")
    grid.add_column(amount(scenarios[0].plan.privacy), justify="right")
    for name in ("strategy", "budgets", "recovery"):
        grid.add_column(name)
    for name in ("total variance", "typical error", "median table", "worst table"):
        grid.add_column(name, justify="right")
    for scenario in scenarios:
        plan = scenario.plan.count
        errors = (scenario.rmse, scenario.median_std_error, scenario.worst_std_error)
        grid.add_row(
            scenario.budget,
            plan.strategy,
            plan.budget_rule,
            plan.recovery,
            number(scenario.total_variance),
            *(f"± {number(value)}" for value in errors),
        )
    console().print(grid)
