"""From an adaptive plan and exact counts to what was measured in the end: a plan of its own, and its measurement.

Which noise the last answers have depends on earlier noisy answers, and so does the plan that describes them; it is
public like the answers. That plan is checked, like every plan, to cost no more than the guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from hushcube.designs import AdaptiveDesign, RepeatedDesign
from hushcube.designs.adaptive import Measured, make_grids
from hushcube.designs.design import Design
from hushcube.designs.refinement import MOST_PEOPLE, Rule
from hushcube.errors import BadInput
from hushcube.model.noise import Measurement
from hushcube.private.adaptive.ireduct import ireduct
from hushcube.private.adaptive.resampling import iresamp, twophase
from hushcube.private.adaptive.subject import Refined, Subject, assembled, exact_answers
from hushcube.private.engines import ExactCounts
from hushcube.private.noise import Entropy, discrete_laplace
from hushcube.progress import Progress
from hushcube.strategies.adaptive import ADAPTIVE

Method = Callable[[Subject, Entropy, Progress], Refined]
"""How a start is refined: the samples that it ends with."""
METHODS: Final[dict[str, Method]] = {"twophase": twophase, "iresamp": iresamp, "ireduct": ireduct}


def run(
    design: AdaptiveDesign, counts: ExactCounts, entropy: Entropy, report: Progress, *, private: bool
) -> tuple[Design, Measurement]:
    """Refine the start of a plan, and describe the result."""
    subject = prepared(design, counts, entropy)
    return outcome(design, subject, METHODS[design.strategy](subject, entropy, report), private=private)


def prepared(design: AdaptiveDesign, counts: ExactCounts, entropy: Entropy) -> Subject:
    """The start with plain numbers; where a noisy number of people is to be paid for, it is drawn here."""
    measured = Measured.of(design.request, design.budget_rule, design.rule.people_epsilon)
    truth = exact_answers(design.underlying, counts)
    if design.rule.people_epsilon is None:
        return Subject(design.underlying, design.rule.settled(), measured.free, truth)
    total = int(np.flatnonzero(~measured.free)[0])
    rate = Fraction(float(design.budgets[total]))
    truth[total] = truth[total] + discrete_laplace([rate], 1, entropy)[0]
    start, rule = with_people(design, measured, min(max(1, int(truth[total][0])), MOST_PEOPLE))
    return Subject(start, rule, measured.free, truth)


def with_people(design: AdaptiveDesign, measured: Measured, people: int) -> tuple[Design, Rule]:
    """The start and the rule for a noisy number of people; where that number makes them impossible, the usual ones."""
    asked, method = design.rule.settled(people), ADAPTIVE[design.strategy]
    try:
        start = design.based(method.start(measured, design.request, asked, people))
        make_grids(start, asked, np.flatnonzero(measured.free))
    except BadInput:  # the number is paid for: the run must not fail because of it
        usual = replace(asked, lambda_max=None, lambda_step=None)
        return design.based(method.start(measured, design.request, usual, people)), usual
    return start, asked


def outcome(design: AdaptiveDesign, subject: Subject, refined: Refined, *, private: bool) -> tuple[Design, Measurement]:
    """The plan of the samples that a method ended with, and the samples."""
    rates = np.array([rate for group in refined.rates for rate in group])
    is_single = len(rates) == len(refined.rates)
    own = (design.request, design.strategy, design.budget_rule, design.recovery, design.proof, rates)
    owners = tuple(at for at, group in enumerate(refined.rates) for _ in group)
    made = design.based(rates) if is_single else RepeatedDesign(*own, design.base, design.measured_by, owners)
    told = {  # what readers may know of a run: its rule, and what it spent
        "method": design.strategy,
        "asked": design.rule.to_dict(),
        "settled": subject.rule.to_dict(),
        **refined.report,
        "spent": float(made.person_cost),
        "left": float(made.person_rest),
    }
    made = replace(made, details={"adaptive": told})
    return made, Measurement(made.digest, assembled(subject.start, refined.values), private)
