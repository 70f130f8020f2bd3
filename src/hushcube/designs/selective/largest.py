"""How a budget is divided so that no table is expected to be far off: the objective `max`.

What a table A is off by, as the sum of absolute errors over its cells, is at most what the sets inside it are off by
together. Some of it is past: sets of smaller orders have been measured. The budgets b minimise the largest of

    E_A(b) = w_A ( past_A + sum_{B <= A} error_B(variance(b_B)) )          w_A the weight of the table   [allocation.py]

subject to what they may cost. Whatever multipliers lambda_A >= 0 of the tables with the sum 1, the largest error is at
least sum_A lambda_A E_A, and so the least largest error is at least

    D(lambda) = min_b  sum_A lambda_A w_A past_A  +  sum_B W_B(lambda) error_B(variance(b_B)),
                W_B(lambda) = sum_{A >= B} lambda_A w_A

which is the problem of the sum, with other weights. Tables that come out above the mean gain weight, in proportion to a
power of their error, until the least largest error of the budgets found, or of their running mean, is within `GAP` of
the greatest D. The first step has equal multipliers: the budgets of the objective `total`, so that the largest expected
error is never above theirs. Under Gaussian noise the problem is convex, and the gap closes to the steps of the grid;
under Laplace noise it need not, and the best budgets found are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hushcube.designs.selective.allocation import Division
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints

GAP: Final = 0.01
"""Of the largest expected error: how far it may be from the least possible one when the search ends."""
_ROUNDS: Final = 80
_POWER: Final = 2.0
_FADES: Final = 20  # rounds after which the power is half of the first one
_FAINTEST: Final = 1e-9  # the least multiplier, over the mean one
_CHEAPER: Final = 0.999  # of the price: where under Laplace noise a set is taken that just does not fit, and is cut
_PRICES: Final = 14  # steps to the price, from a factor of eight around the last one


@dataclass(frozen=True, eq=False)
class Inside:
    """Which of some sets are inside which tables, the weights of these, and what is past."""

    tables: Ints
    sets: Ints
    weights: Floats
    past: Floats
    many: int

    @classmethod
    def of(cls, tables: Family, sets: Family, chosen: Ints, weights: Floats, past: Floats) -> Inside:
        """Of the chosen sets of a family; past errors are those of all of its sets, zero for the chosen ones."""
        pairs = list(tables.inclusions(sets))
        big, small = (np.concatenate([getattr(pair, name) for pair in pairs]) for name in ("big", "small"))
        place = np.full(len(sets), -1)
        place[chosen] = np.arange(len(chosen))
        held = place[small] >= 0
        before = np.asarray(np.bincount(big, past[small], len(tables)), np.float64)
        return cls(big[held], place[small[held]], weights, before, len(chosen))

    def errors(self, of_sets: Floats) -> Floats:
        """E_A of each table, given error_B of each set."""
        return np.asarray(self.weights * (self.past + np.bincount(self.tables, of_sets[self.sets], len(self.weights))))

    def set_weights(self, multipliers: Floats) -> Floats:
        """W_B of each set; none is quite without."""
        found = np.bincount(self.sets, (multipliers * self.weights)[self.tables], self.many)
        return np.asarray(np.maximum(found, _FAINTEST * found.max()))


@dataclass(frozen=True, eq=False)
class Least:
    """Budgets of sets, the largest expected error of a table, and what it is at least."""

    budgets: Floats
    largest: float
    bound: float


def least_largest(program: Division, inside: Inside) -> Least:
    """The budgets with the least largest expected error of a table."""
    multipliers = np.full(len(inside.weights), 1 / len(inside.weights))
    errors = program.weighed(np.ones(len(program.expected)))
    best, bound = Least(np.zeros(0), np.inf, -np.inf), -np.inf
    mean, price = np.zeros(len(program.expected)), 0.0
    for step in range(_ROUNDS):
        weights = inside.set_weights(multipliers)
        weighed = errors * weights[:, None]
        total = float(weighed[:, 0].sum())
        if not total > 0:
            return Least(program.spending_all(mean), float(inside.errors(errors[:, 0]).max()), 0.0)
        if step == 0:
            price = program.price(weighed, 1e-9 * total / program.budget, 1e9 * total / program.budget)
        else:
            price = program.price(weighed, *_around(program, weighed, price), steps=_PRICES)
        taken = program.at(price, weighed)
        bound = max(bound, _dual(program, inside, multipliers, weighed, price))
        found = program.spending_all(taken)
        mean += (found - mean) * 2 / (step + 2)
        seen = inside.errors(program.expected.left(program.variances(found)))
        more = program.spending_all(program.at(price * _CHEAPER, weighed))
        for budgets in (found, mean, more):
            largest = float(inside.errors(program.expected.left(program.variances(budgets))).max())
            if largest < best.largest:
                best = Least(budgets.copy(), largest, bound)
        if best.largest - bound <= GAP * best.largest:
            break
        power = _POWER / (1 + step / _FADES)
        multipliers = multipliers * (seen / seen.max()) ** power
        multipliers = np.maximum(multipliers / multipliers.sum(), _FAINTEST / len(multipliers))
        multipliers /= multipliers.sum()
    return Least(best.budgets, best.largest, bound)


def _around(program: Division, weighed: Floats, price: float) -> tuple[float, float]:
    """Two prices, at the lower of which more is spent than there is, at the higher not."""
    low, high = price, price
    while program.costs @ program.at(high, weighed) > program.budget:
        low, high = high, high * 8
    while low == high or program.costs @ program.at(low, weighed) <= program.budget:
        low, high = low / 8, low
        if low < 1e-300:  # everything is worth its price
            break
    return low, high


def _dual(program: Division, inside: Inside, multipliers: Floats, weighed: Floats, price: float) -> float:
    """D of the multipliers, from below: what all sets cost and are off by at a price, less the price of the budget."""
    least = (weighed + price * program.paid).min(axis=1).sum()
    return float(multipliers @ (inside.weights * inside.past) + least - price * program.budget)
