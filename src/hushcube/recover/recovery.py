"""From a measurement to tables, as the plan says: least squares (generalised or ordinary), or none."""

from __future__ import annotations

from hushcube.errors import BundleError
from hushcube.model.measurement import Measurement
from hushcube.plan.plan import Plan
from hushcube.recover.kinds import Answers, answers


def recover(plan: Plan, measurement: Measurement) -> Answers:
    """The answers that the plan's recovery gives."""
    if measurement.plan_digest != plan.digest:
        raise BundleError("measurements", "belong to another plan", "use the plan that they were made with")
    return answers(plan, measurement)
