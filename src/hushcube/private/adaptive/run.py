"""From an adaptive plan and exact counts to what was measured in the end: a plan of its own, and its measurement.

Which noise the last answers have depends on earlier noisy answers, and so does the plan that describes them; it is
public like the answers. That plan is checked, like every plan, to cost no more than the guarantee.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np

from hushcube.errors import BadInput
from hushcube.model.measurement import Measurement
from hushcube.plan.adaptive.groups import make_grids
from hushcube.plan.adaptive.rule import MOST_PEOPLE, Rule
from hushcube.plan.adaptive.start import Measured
from hushcube.plan.kinds import AdaptivePlan, RepeatedPlan
from hushcube.plan.plan import Plan
from hushcube.plan.strategies.adaptive import ADAPTIVE
from hushcube.private.adaptive.ireduct import ireduct
from hushcube.private.adaptive.iresamp import iresamp
from hushcube.private.adaptive.refined import Refined
from hushcube.private.adaptive.subject import Subject, assembled, exact_answers
from hushcube.private.adaptive.twophase import twophase
from hushcube.private.engines import ExactCounts
from hushcube.private.kinds import Report
from hushcube.private.noise import Entropy, discrete_laplace


class Method(Protocol):
    """How a start is refined."""

    def __call__(self, subject: Subject, entropy: Entropy, report: Report) -> Refined:
        """The samples that a method ends with."""
        ...


METHODS: Final[dict[str, Method]] = {"twophase": twophase, "iresamp": iresamp, "ireduct": ireduct}


def run(plan: AdaptivePlan, counts: ExactCounts, entropy: Entropy, report: Report) -> tuple[Plan, Measurement]:
    """Refine the start of a plan, and describe the result."""
    subject = prepared(plan, counts, entropy)
    return outcome(plan, subject, METHODS[plan.strategy](subject, entropy, report), private=entropy.private)


def prepared(plan: AdaptivePlan, counts: ExactCounts, entropy: Entropy) -> Subject:
    """The start with plain numbers; where a noisy number of people is to be paid for, it is drawn here."""
    measured = Measured.of(plan.request, plan.budget_rule, plan.rule.people_epsilon)
    truth = exact_answers(plan.underlying, counts)
    if plan.rule.people_epsilon is None:
        return Subject(plan.underlying, plan.rule.settled(), measured.free, truth)
    total = int(np.flatnonzero(~measured.free)[0])
    rate = Fraction(float(plan.budgets[total]))
    truth[total] = truth[total] + discrete_laplace([rate], 1, entropy)[0]
    start, rule = with_people(plan, measured, min(max(1, int(truth[total][0])), MOST_PEOPLE))
    return Subject(start, rule, measured.free, truth)


def with_people(plan: AdaptivePlan, measured: Measured, people: int) -> tuple[Plan, Rule]:
    """The start and the rule for a noisy number of people; where that number makes them impossible, the usual ones."""
    asked, method = plan.rule.settled(people), ADAPTIVE[plan.strategy]
    try:
        start = plan.based(method.start(measured, plan.request, asked, people))
        make_grids(start, asked, np.flatnonzero(measured.free))
    except BadInput:  # the number is paid for: the run must not fail because of it
        usual = replace(asked, lambda_max=None, lambda_step=None)
        return plan.based(method.start(measured, plan.request, usual, people)), usual
    return start, asked


def outcome(plan: AdaptivePlan, subject: Subject, refined: Refined, *, private: bool) -> tuple[Plan, Measurement]:
    """The plan of the samples that a method ended with, and the samples."""
    rates = np.array([rate for group in refined.rates for rate in group])
    is_single = len(rates) == len(refined.rates)
    own = (plan.request, plan.strategy, plan.budget_rule, plan.recovery, plan.proof, rates)
    owners = tuple(at for at, group in enumerate(refined.rates) for _ in group)
    made = plan.based(rates) if is_single else RepeatedPlan(*own, plan.base, plan.measured_by, owners)
    made = replace(made, details=_told(plan, made, subject.rule, refined.report))
    return made, Measurement(made.digest, assembled(subject.start, refined.values), private)


def _told(plan: AdaptivePlan, made: Plan, settled: Rule, report: dict[str, Any]) -> dict[str, Any]:
    """What readers may know of a run: its rule, and what it spent."""
    return {
        "adaptive": {
            "method": plan.strategy,
            "asked": plan.rule.to_dict(),
            "settled": settled.to_dict(),
            **report,
            "spent": float(made.person_cost),
            "left": float(made.person_rest),
        },
    }
