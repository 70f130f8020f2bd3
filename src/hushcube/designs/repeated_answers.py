"""Several independent samples of everything: their averages, as if they had been measured at once."""

from __future__ import annotations

from hushcube.designs import RepeatedDesign
from hushcube.designs.answers import Answers, answers
from hushcube.designs.design import Design
from hushcube.model.measurement import Measurement


@answers.register
def _(design: RepeatedDesign, measurement: Measurement) -> Answers:
    return answers(design.underlying, design.merged(measurement))


def averaged(design: Design, measurement: Measurement) -> tuple[Design, Measurement]:
    """The plan and measurement of averages, where there are several samples; others as they are."""
    return (
        (design.underlying, design.merged(measurement)) if isinstance(design, RepeatedDesign) else (design, measurement)
    )
