"""What plans are compared by: the total variance (weights count), or the largest weighted variance of a cell."""

from __future__ import annotations

from hushcube.designs.design import Design


def objective_value(design: Design) -> float:
    """The exact value, for the noise that is drawn, of the objective that the plan's request names; less is better."""
    errors = design.errors
    return errors.max_variance() if design.request.objective == "max" else errors.weighted_variance()
