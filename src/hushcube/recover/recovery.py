"""From a measurement to tables, as the plan says: least squares (generalised or ordinary), or none."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import BundleError
from hushcube.model.measurement import Measurement
from hushcube.plan.plan import Plan
from hushcube.recover.direct import DirectTables, InverseFourier
from hushcube.recover.least_squares import estimate


class Answers(Protocol):
    """Tables on demand, many of one shape at a time, so that a large release streams to disk."""

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> NDArray[np.float64]:
        """The tables of marginals (rows of positions) of one shape; (marginals, *shape)."""


def recover(plan: Plan, measurement: Measurement) -> Answers:
    """The answers that the plan's recovery gives."""
    if measurement.plan_digest != plan.digest:
        raise BundleError("measurements", "belong to another plan", "use the plan that they were made with")
    if plan.recovery == "none" and plan.basis.name == "marginal":
        return DirectTables(plan, measurement)
    if plan.recovery == "none" and plan.basis.name == "fourier":
        return InverseFourier(plan, measurement)
    return estimate(plan, measurement)
