"""TwoPhase: look at all tables roughly, then measure them once more with scales made for what was seen.

Rescale minimises sum_A c_A lambda_A under sum_A f/lambda_A <= epsilon_2, with c_A = mean_cells 1/max(y, delta):

    lambda_A proportional to 1 / sqrt(c_A)                                   [Xiao et al. 2011, section 5.2, corrected]

The printed Rescale has the sum of max{delta, y} where the sum of its reciprocals belongs, and is worse than uniform
noise. For the worst cell, lambda_A is proportional to max(min y, delta). Both phases are averaged [RepeatedDesign]; as
the second one's scales depend on the first one's noise, the average is slightly biased.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.adaptive.grid import BELOW, mean_size
from hushcube.designs.refinement import Pick
from hushcube.model.arrays import Floats, Ints
from hushcube.private.adaptive.subject import Refined, Subject
from hushcube.private.noise import Entropy, discrete_laplace
from hushcube.progress import Progress


def twophase(subject: Subject, entropy: Entropy, report: Progress) -> Refined:
    """A first look with the start's rates, a second one with the rest of the budget."""
    rates: list[tuple[float, ...]] = [(rate,) for rate in subject.rates.tolist()]
    values = [answers[None] for answers in subject.truth]
    chosen = subject.chosen.tolist()
    first = [_noisy(subject.truth[at], float(subject.rates[at]), entropy) for at in chosen]
    report("measuring", 0.5)
    second = second_rates(subject, first)
    for at, seen, rate in zip(chosen, first, second.tolist(), strict=True):
        again = _noisy(subject.truth[at], rate, entropy)
        rates[at], values[at] = (float(subject.rates[at]), rate), np.stack([seen, again])
    report("measuring", 1.0)
    return Refined(rates, values, {"steps": len(chosen)})


def second_rates(subject: Subject, seen: Sequence[NDArray[np.integer]]) -> Floats:
    """The rates of the second phase; together with the first they cost what is allowed, exactly or a little less."""
    if not subject.chosen.size:
        return np.zeros(0)
    first = subject.rates
    bounds = subject.bound(mean_size(first[subject.chosen]))
    shape = rescale(seen, bounds, subject.rule.pick, subject.worth[subject.chosen])
    alone = np.where(subject.free, 0.0, first)
    scaled = alone.copy()
    scaled[subject.chosen] = shape
    unit = subject.cost(scaled) - subject.cost(alone)
    rates = shape * float((subject.allowed - subject.cost(first)) / unit)
    less = 1 - BELOW
    while subject.cost(_together(subject, rates)) > subject.allowed:
        rates, less = rates * (1 - less), 2 * less
    return np.asarray(rates)


def _together(subject: Subject, second: Floats) -> Floats:
    """The sums of both rates, never below them."""
    both = subject.rates.copy()
    both[subject.chosen] = np.nextafter(both[subject.chosen] + second, np.inf)
    return both


def rescale(seen: Sequence[NDArray[np.integer]], bounds: float | Floats, pick: Pick, worth: Floats) -> Floats:
    """The optimal rates up to a factor, if the counts are as seen; `bounds` is delta, or a number for each table.

    >>> seen = [np.array([100, 100]), np.array([1, 1, 1, 1])]
    >>> rates = rescale(seen, 1.0, "average", np.ones(2))
    >>> (rates.sum() / rates * 2).round(9).tolist()  # test vector 14: epsilon 1, replace-one
    [22.0, 2.2]
    """
    clipped = [np.maximum(t, bound) for t, bound in zip(seen, np.broadcast_to(bounds, len(seen)), strict=True)]
    if pick == "worst":
        return np.array([1 / float(answers.min()) for answers in clipped])
    return np.asarray(np.sqrt(worth * np.array([float((1 / answers).mean()) for answers in clipped])))


def _noisy(truth: Ints, rate: float, entropy: Entropy) -> Ints:
    return np.asarray(truth + discrete_laplace([Fraction(rate)], len(truth), entropy)[0])
