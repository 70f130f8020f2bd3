"""From a measurement to tables, as the plan says: least squares (generalised or ordinary), or none."""

from __future__ import annotations

from hushcube.designs.answering import Answers, answers
from hushcube.designs.design import Design
from hushcube.errors import BundleError
from hushcube.model.measurement import Measurement


def recover(design: Design, measurement: Measurement) -> Answers:
    """The answers that the plan's recovery gives."""
    if measurement.plan_digest != design.digest:
        raise BundleError("measurements", "belong to another plan", "use the plan that they were made with")
    return answers(design, measurement)
