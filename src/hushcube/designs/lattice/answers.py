"""Marginals and parts of marginals: least squares over the residual spaces, or none."""

from __future__ import annotations

from hushcube.designs import LatticeDesign
from hushcube.designs.answers import Answers, answers
from hushcube.designs.lattice.direct import DirectTables, InverseFourier
from hushcube.designs.lattice.least_squares import estimate
from hushcube.model.measurement import Measurement


@answers.register
def _(design: LatticeDesign, measurement: Measurement) -> Answers:
    if design.recovery == "none" and design.basis.name == "marginal":
        return DirectTables(design, measurement)
    if design.recovery == "none" and design.basis.name == "fourier":
        return InverseFourier(design, measurement)
    return estimate(design, measurement)
