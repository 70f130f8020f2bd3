"""What plans are compared by: the total variance (weights count), or the largest weighted variance of a cell."""

from __future__ import annotations

from hushcube.plan import error
from hushcube.plan.plan import Plan


def objective_value(plan: Plan) -> float:
    """The exact value, for the noise that is drawn, of the objective that the plan's request names; less is better."""
    return error.max_variance(plan) if plan.request.options.objective == "max" else error.weighted_variance(plan)
