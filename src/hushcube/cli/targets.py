"""The part of `hushcube plan` that finds the smallest budget for targets on the error.

The part of `hushcube plan` that looks at other budgets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hushcube.cli.options import asked
from hushcube.errors import BadInput
from hushcube.progress import Progress

if TYPE_CHECKING:
    from hushcube.planning.inverse import Found
import math
from typing import TYPE_CHECKING

from hushcube.cli.options import chosen_strategy

if TYPE_CHECKING:
    from hushcube.planning.question import Comparison
    from hushcube.planning.what_if import Scenario, Scenarios

FIND = "find"
"""Stands where a budget is not given but found."""


def check_find(options: dict[str, Any], targets: Sequence[str]) -> bool:
    """Whether a budget is to be found: targets and the word `find` go together."""
    found = [name for name in ("epsilon", "rho") if options[name] == FIND]
    given = [name for name in ("epsilon", "rho") if options[name] is not None]
    if found and not targets:
        example = 'say which error is wanted, for example `--target "age*sex: stderr<=20"`'
        raise BadInput(f"--{found[0]}", "`find` needs a target", example)
    if targets and (not found or len(given) > 1):
        problem = (
            "cannot be combined with a budget that is given" if given and not found else "needs one budget to find"
        )
        raise BadInput("--target", problem, "write `--epsilon find`, `--epsilon find --delta D` or `--rho find`")
    return bool(found)


def find_plan(options: dict[str, Any], measured: dict[str, Any], targets: Sequence[str], progress: Progress) -> Found:
    """The smallest budget found that meets the targets, and its plan."""
    from hushcube.verbs.planning import find_budget

    guarantee: Any = "rho" if options["rho"] == FIND else "epsilon"
    return find_budget(
        **asked(options), **measured, targets=targets, guarantee=guarantee, delta=options["delta"], progress=progress
    )


def found_document(found: Found) -> dict[str, Any]:
    """The fields that targets add to the JSON document."""
    from hushcube.planning.question import amount

    return {
        "found": {amount(found.plan.privacy): found.budget},
        "searched": found.searched,
        "targets": [
            {
                "target": str(goal.target),
                "tables": len(goal.tables),
                **({"quantity": str(goal.quantity)} if goal.quantity.measure else {}),
                "measure": goal.target.error,
                "bound": goal.target.bound,
                "reached": reached,
            }
            for goal, reached in zip(found.goals, found.reached, strict=True)
        ],
    }


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
