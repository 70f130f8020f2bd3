"""How a budget is divided so that no table is expected to be far off: the objective `max`.

The budgets b minimise the largest of

    E_A(b) = w_A sqrt( past_A² + sum_{B <= A} error_B(variance(b_B))² )                                 [allocation.py]

subject to what they may cost. Squares add up over sets, and the largest E_A has the largest square. Whatever
multipliers lambda_A >= 0 of the tables with the sum 1, that is at least sum_A lambda_A E_A², and so the least of the
largest squares is at least

    D(lambda) = min_b  sum_A lambda_A w_A² past_A²  +  sum_B W_B(lambda) error_B(variance(b_B))²,
                W_B(lambda) = sum_{A >= B} lambda_A w_A²

which falls apart into sets, as a tangent of the sum does. Tables that come out above the mean gain weight, in
proportion to a power of their error, until the least largest error of the budgets found, or of their running mean, is
within `GAP` of the root of the greatest D. The budgets of the objective `total` are looked at before all others, so
that the largest expected error is never above theirs. Under Gaussian noise the problem is convex, and the gap closes to
the steps of the grid; under Laplace noise it need not, and the best budgets found are taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushcube.designs.selective.allocation import Division, Inside, least_total
from hushcube.model.arrays import Floats

GAP: Final = 0.01
"""Of the largest expected error: how far it may be from the least possible one when the search ends."""
_ROUNDS: Final = 80
_POWER: Final = 2.0
_FADES: Final = 20  # rounds after which the power is half of the first one
_FAINTEST: Final = 1e-9  # the least multiplier, over the mean one
_CHEAPER: Final = 0.999  # of the price: where under Laplace noise a set is taken that just does not fit, and is cut
_PRICES: Final = 14  # steps to the price, from a factor of eight around the last one


@dataclass(frozen=True, eq=False)
class Least:
    """Budgets of sets, the largest expected error of a table, and what it is at least."""

    budgets: Floats
    largest: float
    bound: float


def least_largest(program: Division, inside: Inside) -> Least:
    """The budgets with the least largest expected error of a table."""
    multipliers = np.full(len(inside.weights), 1 / len(inside.weights))
    squares = program.errors**2
    mean, price = np.zeros(len(program.expected)), 0.0

    def largest(budgets: Floats) -> float:
        return float(inside.errors(program.left(budgets)).max())

    first = least_total(program, inside)
    best, bound = Least(first, largest(first), 0.0), 0.0
    for step in range(_ROUNDS):
        weighed = squares * inside.set_weights(multipliers * inside.weights**2)[:, None]
        total = float(weighed[:, 0].sum())
        if not total > 0:
            return Least(program.spending_all(mean), best.largest, 0.0)
        if step == 0:
            price = program.price(weighed, 1e-9 * total / program.budget, 1e9 * total / program.budget)
        else:
            price = program.price(weighed, *_around(program, weighed, price), steps=_PRICES)
        taken = program.at(price, weighed)
        bound = max(bound, _dual(program, inside, multipliers, weighed, price))
        found = program.spending_all(taken)
        mean += (found - mean) * 2 / (step + 2)
        seen = inside.errors(program.left(found))
        more = program.spending_all(program.at(price * _CHEAPER, weighed))
        for budgets in (found, mean, more):
            if (off := largest(budgets)) < best.largest:
                best = Least(budgets.copy(), off, bound)
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
    """The root of D, from below: what all sets cost and are off by at a price, less the price of the budget."""
    least = (weighed + price * program.paid).min(axis=1).sum()
    square = float(multipliers @ (inside.weights**2 * inside.past) + least - price * program.budget)
    return math.sqrt(max(square, 0.0))
