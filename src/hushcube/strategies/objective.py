"""What plans are compared by: the total variance (weights count), or the largest weighted variance of a cell."""

from __future__ import annotations

from hushcube.designs import errors as error
from hushcube.designs.design import Design


def objective_value(design: Design) -> float:
    """The exact value, for the noise that is drawn, of the objective that the plan's request names; less is better."""
    return error.max_variance(design) if design.request.objective == "max" else error.weighted_variance(design)
