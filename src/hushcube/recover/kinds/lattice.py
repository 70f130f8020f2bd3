"""Marginals and parts of marginals: least squares over the residual spaces, or none."""

from __future__ import annotations

from hushcube.model.measurement import Measurement
from hushcube.plan.kinds import LatticePlan
from hushcube.recover.direct import DirectTables, InverseFourier
from hushcube.recover.kinds.base import Answers, answers
from hushcube.recover.least_squares import estimate


@answers.register
def _(plan: LatticePlan, measurement: Measurement) -> Answers:
    if plan.recovery == "none" and plan.basis.name == "marginal":
        return DirectTables(plan, measurement)
    if plan.recovery == "none" and plan.basis.name == "fourier":
        return InverseFourier(plan, measurement)
    return estimate(plan, measurement)
