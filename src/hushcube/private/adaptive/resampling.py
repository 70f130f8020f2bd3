"""TwoPhase and iResamp: independent samples of a table, averaged [RepeatedDesign].

TwoPhase looks at all tables roughly, then measures them once more with scales made for what was seen. Rescale
minimises sum_A c_A lambda_A under sum_A f/lambda_A <= epsilon_2, with c_A = mean_cells 1/max(y, delta):

    lambda_A proportional to 1 / sqrt(c_A)                                   [Xiao et al. 2011, section 5.2, corrected]

The printed Rescale has the sum of max{delta, y} where the sum of its reciprocals belongs, and is worse than uniform
noise. For the worst cell it minimises sum_A c_A lambda_A², c_A = sum_cells s(y) / (lambda² sqrt(cells)) for the noise
of the first phase [picking.py]: lambda_A is proportional to 1 / cbrt(c_A). As the second phase's scales depend on the
first one's noise, the average is slightly biased.

iResamp takes samples, each of half the scale of the one before, where that pays most.     [Xiao et al. 2011, Figure 12]
k samples of a table cost (2^k - 1) times what the first one costs: 2/lambda_k - 1/lambda_max. What correlated samples
(iReduct) would give for the same price has about half the variance.                                     [Appendix A]
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushcube.costs.calibrate import above
from hushcube.designs.grid import BELOW, mean_size
from hushcube.model.arrays import Floats, Ints
from hushcube.model.noise import laplace_variance
from hushcube.private.adaptive.picking import AHEAD, is_behind, of_table, square
from hushcube.private.adaptive.subject import Refined, Subject, is_met
from hushcube.private.noise import Entropy, discrete_laplace
from hushcube.progress import Progress


def _noisy(truth: Ints, rate: float, entropy: Entropy) -> Ints:
    return np.asarray(truth + discrete_laplace([Fraction(rate)], len(truth), entropy)[0])


def twophase(subject: Subject, entropy: Entropy, report: Progress) -> Refined:
    """A first look with the start's rates, a second one with the rest of the budget."""
    rates, values = subject.unrefined()
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
    first, chosen = subject.rates, subject.chosen
    shape = rescale(subject, seen)
    scaled = subject.paid.copy()
    scaled[chosen] = shape
    unit = subject.cost(scaled) - subject.cost(subject.paid)
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


def rescale(subject: Subject, seen: Sequence[NDArray[np.integer]]) -> Floats:
    """The best rates up to a factor, judged by what was seen of the free groups through the start's noise."""
    chosen = subject.chosen
    scales, worth = mean_size(subject.rates[chosen]), subject.worth[chosen]
    if subject.rule.pick == "worst":
        groups = zip(seen, scales.tolist(), subject.sanity_bounds[chosen].tolist(), strict=True)
        squares = np.array([of_table(square(y.astype(np.float64), s, delta)) / s**2 for y, s, delta in groups])
        return np.asarray(np.cbrt(worth * squares))
    return best_rates(seen, subject.bound(chosen, scales), worth)


def best_rates(answers: Sequence[NDArray[np.integer]], bounds: float | Floats, worth: Floats) -> Floats:
    """The rates of least average error up to a factor, if counts are as seen; `bounds` is delta, or one for each table.

    >>> seen = [np.array([100, 100]), np.array([1, 1, 1, 1])]
    >>> rates = best_rates(seen, 1.0, np.ones(2))
    >>> (rates.sum() / rates * 2).round(9).tolist()  # test vector 14: epsilon 1, replace-one
    [22.0, 2.2]
    """
    pairs = zip(answers, np.broadcast_to(bounds, len(answers)), strict=True)
    return np.asarray(np.sqrt(worth * np.array([float((1 / np.maximum(y, bound)).mean()) for y, bound in pairs])))


class _Table:
    """The samples of one group so far."""

    def __init__(self, at: int, subject: Subject, entropy: Entropy) -> None:
        self._at, self._subject, self._entropy = at, subject, entropy
        self.rates: list[float] = []
        self.samples: list[Ints] = []
        self.sample(float(subject.rates[at]))

    def sample(self, rate: float) -> None:
        """Another independent noisy version."""
        self.rates.append(rate)
        self.samples.append(_noisy(self._subject.truth[self._at], rate, self._entropy))

    def average(self) -> Floats:
        """The linear combination of least variance."""
        weights = 1 / laplace_variance(np.array(self.rates))
        return np.asarray((weights[:, None] * np.array(self.samples)).sum(axis=0) / weights.sum())

    def scale(self, rates: list[float]) -> float:
        """About E|error| of the average, as if it were a single Laplace sample of the same variance."""
        variance = 1 / (1 / laplace_variance(np.array(rates))).sum()
        return float(mean_size(2 * np.arcsinh(np.sqrt(0.5 / variance))))

    def priority(self) -> float:
        """What the next sample would gain for its price.                                                [picking.py]"""
        subject, at, now = self._subject, self._at, self.scale(self.rates)
        rule, answers, worth = subject.rule, self.average(), float(subject.worth[at])
        if rule.target is not None and is_met(answers, now, rule.target):
            return -np.inf
        then, price = self.scale([*self.rates, 2 * self.rates[-1]]), 2 * self.rates[-1]
        if rule.pick == "worst":
            delta = float(subject.sanity_bounds[at])
            if is_behind(sum(self.rates), now, float(answers.min()), delta, subject.even_rate):
                return worth * AHEAD * now
            return worth * of_table(square(answers, now, delta)) * (1 - (then / now) ** 2) / price
        seen = np.maximum(answers, subject.bound(at, now))
        return worth * float((1 / seen).mean()) * (now - then) / price


def iresamp(subject: Subject, entropy: Entropy, report: Progress) -> Refined:
    """Sample where it pays most until the budget is used up."""
    chosen = subject.chosen.tolist()
    tables = {at: _Table(at, subject, entropy) for at in chosen}
    waiting = {at: table.priority() for at, table in tables.items()}
    totals = subject.rates.copy()
    limits = dict(zip(chosen, subject.limits().tolist(), strict=True))  # a query of nobody costs nothing
    ranks = dict(zip(chosen, subject.ranks.tolist(), strict=True))

    def turn(at: int) -> tuple[int, ...]:
        """Of equal priorities: the first table; for the worst cell, the one that was picked least often."""
        return (-len(tables[at].rates), -ranks[at]) if subject.rule.pick == "worst" else (-at,)

    while waiting:
        at = max(waiting, key=lambda a: (waiting[a], *turn(a)))
        if waiting[at] == -np.inf:
            break
        rate = 2 * tables[at].rates[-1]
        more = totals.copy()
        more[at] = above(sum(map(Fraction, [*tables[at].rates, rate]), Fraction(0)))
        if subject.cost(more) > subject.allowed or more[at] > limits[at]:
            del waiting[at]
            continue
        totals = more
        tables[at].sample(rate)
        waiting[at] = tables[at].priority()
        report("measuring", 1 - len(waiting) / len(chosen))
    rates, values = subject.unrefined()
    for at, table in tables.items():
        rates[at], values[at] = tuple(table.rates), np.array(table.samples)
    told = {"steps": sum(len(table.rates) - 1 for table in tables.values())}
    if subject.rule.target is not None:
        told["target_met"] = set(waiting) == set(chosen)
    return Refined(rates, values, told)
