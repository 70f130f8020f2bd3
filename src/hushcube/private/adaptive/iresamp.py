"""iResamp: independent samples, each of half the scale of the one before, averaged.       [Xiao et al. 2011, Figure 12]

k samples of a table cost (2^k - 1) times what the first one costs: 2/lambda_k - 1/lambda_max. What correlated samples
(iReduct) would give for the same price has about half the variance.                                     [Appendix A]
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hushcube.designs.adaptive.grid import mean_size
from hushcube.designs.repeated import rounded_up
from hushcube.model.arrays import Floats, Ints
from hushcube.model.noise import laplace_variance
from hushcube.private.adaptive.pick import is_met
from hushcube.private.adaptive.subject import Refined, Subject
from hushcube.private.noise import Entropy, discrete_laplace
from hushcube.progress import Progress


class _Table:
    """The samples of one group so far."""

    def __init__(self, truth: Ints, rate: float, worth: float, subject: Subject, entropy: Entropy) -> None:
        self._truth, self._entropy = truth, entropy
        self._worth, self._subject = worth, subject
        self.rates: list[float] = []
        self.samples: list[Ints] = []
        self.sample(rate)

    def sample(self, rate: float) -> None:
        """Another independent noisy version."""
        self.rates.append(rate)
        self.samples.append(self._truth + discrete_laplace([Fraction(rate)], len(self._truth), self._entropy)[0])

    def average(self) -> Floats:
        """The linear combination of least variance."""
        weights = 1 / laplace_variance(np.array(self.rates))
        return np.asarray((weights[:, None] * np.array(self.samples)).sum(axis=0) / weights.sum())

    def scale(self, rates: list[float]) -> float:
        """About E|error| of the average, as if it were a single Laplace sample of the same variance."""
        variance = 1 / (1 / laplace_variance(np.array(rates))).sum()
        return float(mean_size(2 * np.arcsinh(np.sqrt(0.5 / variance))))

    def priority(self) -> float:
        """What the next sample would gain for its price, or the worst relative error.               [pick.py]"""
        subject, now = self._subject, self.scale(self.rates)
        seen = np.maximum(self.average(), subject.bound(now))
        if subject.rule.target is not None and is_met(self.average(), now, subject.rule.target):
            return -np.inf
        if subject.rule.pick == "worst":
            return now / float(seen.min())
        then = self.scale([*self.rates, 2 * self.rates[-1]])
        return self._worth * float((1 / seen).mean()) * (now - then) / (2 * self.rates[-1])


def iresamp(subject: Subject, entropy: Entropy, report: Progress) -> Refined:
    """Sample where it pays most until the budget is used up."""
    chosen = subject.chosen.tolist()
    tables = {
        at: _Table(subject.truth[at], float(subject.rates[at]), float(subject.worth[at]), subject, entropy)
        for at in chosen
    }
    waiting = {at: table.priority() for at, table in tables.items()}
    totals = subject.rates.copy()
    limits = dict(zip(chosen, subject.limits().tolist(), strict=True))  # a query of nobody costs nothing
    while waiting:
        at = max(waiting, key=lambda a: (waiting[a], -a))
        if waiting[at] == -np.inf:
            break
        rate = 2 * tables[at].rates[-1]
        more = totals.copy()
        more[at] = rounded_up(sum(map(Fraction, [*tables[at].rates, rate]), Fraction(0)))
        if subject.cost(more) > subject.allowed or more[at] > limits[at]:
            del waiting[at]
            continue
        totals = more
        tables[at].sample(rate)
        waiting[at] = tables[at].priority()
        report("measuring", 1 - len(waiting) / len(chosen))
    rates = [tuple(tables[at].rates) if at in tables else (rate,) for at, rate in enumerate(subject.rates.tolist())]
    values = [
        np.array(tables[at].samples) if at in tables else answers[None] for at, answers in enumerate(subject.truth)
    ]
    told = {"steps": sum(len(table.rates) - 1 for table in tables.values())}
    if subject.rule.target is not None:
        told["target_met"] = set(waiting) == set(chosen)
    return Refined(rates, values, told)
