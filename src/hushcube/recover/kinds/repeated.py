"""Several independent samples of everything: their averages, as if they had been measured at once."""

from __future__ import annotations

from hushcube.model.measurement import Measurement
from hushcube.plan.kinds import RepeatedPlan
from hushcube.plan.plan import Plan
from hushcube.recover.kinds.base import Answers, answers


@answers.register
def _(plan: RepeatedPlan, measurement: Measurement) -> Answers:
    return answers(plan.underlying, plan.merged(measurement))


def averaged(plan: Plan, measurement: Measurement) -> tuple[Plan, Measurement]:
    """The plan and measurement of averages, where there are several samples; others as they are."""
    return (plan.underlying, plan.merged(measurement)) if isinstance(plan, RepeatedPlan) else (plan, measurement)
