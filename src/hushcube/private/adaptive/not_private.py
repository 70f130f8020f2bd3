"""Methods that choose their noise by the exact counts. They are NOT private: for experiments against the truth only.

    oracle         all cells of a table share a scale, lambda_A proportional to 1/sqrt(c_A), c_A = mean 1/max(q, delta):
                   of such scales those with the least expected overall error         [Xiao et al. 2011, section 5.2]
                   (for the worst cell, lambda_A proportional to max(min q, delta) / w_A)
    proportional   every cell has a scale of its own, proportional to max(q, delta): equal expected relative errors
                                                                                      [section 3.1, Example 1]

Both are scaled until the generalised sensitivity is what epsilon allows. A row that is replaced leaves one cell of a
table and enters another, so that with a rate r = 1/lambda for every cell

    GS = sum over tables of (r_(1) + r_(2)), the two largest rates of each;   add-remove: of r_(1).     [Definition 4]

As neighbouring data have other scales, this bounds nothing: what comes out is no plan, and no release is made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Final

import numpy as np

from hushcube.designs import LatticeDesign, MatrixDesign
from hushcube.designs.design import Design
from hushcube.designs.grid import BELOW
from hushcube.model.arrays import Floats, Ints
from hushcube.model.noise import SMALLEST_RATE
from hushcube.private.adaptive.resampling import best_rates
from hushcube.private.adaptive.subject import Subject
from hushcube.private.noise import Entropy, Laws


@dataclass(frozen=True, eq=False)
class Exposed:
    """The rate of every cell, group by group, and the noisy answers; both tell about the exact counts."""

    rates: Sequence[Floats]
    answers: Sequence[Ints]
    sensitivity: float
    """GS for one row of data: what noise of these rates would cost, had they been chosen without the data."""


def oracle(subject: Subject, entropy: Entropy) -> Exposed:
    """The scales of least expected error, of the chosen kind."""
    truth = [subject.truth[at] for at in subject.chosen]
    bounds, worth = subject.sanity_bounds[subject.chosen], subject.worth[subject.chosen]
    if subject.rule.pick == "worst":
        shape = worth / [max(float(q.min()), delta) for q, delta in zip(truth, bounds.tolist(), strict=True)]
    else:
        shape = best_rates(truth, bounds, worth)
    return _exposed(subject, [np.full(len(q), r) for q, r in zip(truth, shape.tolist(), strict=True)], entropy)


def proportional(subject: Subject, entropy: Entropy) -> Exposed:
    """Every cell's scale in proportion to its count."""
    shape = [1 / np.maximum(subject.truth[at], subject.sanity_bounds[at]) for at in subject.chosen]
    return _exposed(subject, shape, entropy)


METHODS: Final[dict[str, Callable[[Subject, Entropy], Exposed]]] = {"oracle": oracle, "proportional": proportional}


def _exposed(subject: Subject, shape: Sequence[Floats], entropy: Entropy) -> Exposed:
    """Noise of rates in these proportions that use up what is allowed."""
    start, allowed = subject.start, float(subject.allowed)

    def rates(factor: float) -> list[Floats]:
        """Those of all groups; what is not the method's to choose is as it was, and 64-bit integers hold the noise."""
        every = [np.full(len(q), rate) for q, rate in zip(subject.truth, subject.rates.tolist(), strict=True)]
        for at, own in zip(subject.chosen.tolist(), shape, strict=True):
            every[at] = np.maximum(own * factor, SMALLEST_RATE) if factor else np.zeros(len(own))
        return every

    paid = sensitivity(start, rates(0.0))
    unit = sensitivity(start, rates(1.0)) - paid
    final = rates((allowed - paid) / unit * BELOW if unit else 1.0)
    answers = list(subject.truth)
    for at in subject.chosen.tolist():
        different, which = np.unique(final[at], return_inverse=True)
        answers[at] = answers[at] + Laws([Fraction(rate) for rate in different.tolist()]).each(which, entropy)
    return Exposed(final, answers, sensitivity(start, final))


@singledispatch
def sensitivity(design: Design, rates: Sequence[Floats]) -> float:
    """The generalised sensitivity of what a plan measures, if every cell has a rate of its own; exact cells are public.

    An infinite rate stands for an answer that no neighbour can change.
    """
    raise NotImplementedError(type(design).__name__)


@sensitivity.register
def _(design: LatticeDesign, rates: Sequence[Floats]) -> float:
    moved = 2 if design.privacy.neighbours == "replace-one" else 1
    return float(sum(np.sort(own)[-moved:].sum() for own in rates if np.isfinite(own).all()))


@sensitivity.register
def _(design: MatrixDesign, rates: Sequence[Floats]) -> float:
    return float(design.row_cost(np.concatenate(rates)))
