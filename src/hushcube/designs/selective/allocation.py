"""How a budget is divided among sets whose tables are expected near a guess: the least sum of expected errors.

The sets inside a table are measured independently, and what each leaves is expected in directions of its own. So the
squares of their errors add up, those of sets that were measured before among them:

    E_A(b) = w_A sqrt( past_A² + sum_{B <= A} error_B(variance(b_B))² )       w_A the weight of the table  [expected.py]

and the budgets b minimise sum_A E_A subject to sum_B cost_B b_B <= budget. The root is a concave function of the sum:
at any budgets with the values T_A of the roots it lies below its tangent, so that

    sum_A E_A  <=  sum_B W_B error_B² + a constant,       W_B = sum_{A >= B} w_A / (2 T_A)

with equality there. The right side falls apart into sets: at the price of a unit of cost each set takes from a grid
the budget that is best for it, and the price is the one at which all is spent. The least budgets of the right side are
where the next tangent is taken; a few of them suffice. The first budgets are those that minimise the sum of
w_A sum_{B <= A} error_B, a bound of the error, and the best ones seen are kept, so that the sum of E_A is never above
theirs. Many sets get nothing: that is the selection.

Under Gaussian noise error_B is convex in b_B, and so are its square and the norm E_A: the answer is the optimum, to the
grid's steps. Under Laplace noise, where small budgets gain nothing, it is the best of what was tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from hushcube.designs.selective.expected import Expected
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints
from hushcube.model.noise import Law

_STEPS: Final = 160
_LEAST: Final = 1e-8  # of the whole budget: the smallest one on the grid
_PRICES: Final = 60
_TANGENTS: Final = 4
_FAINTEST: Final = 1e-9  # of the largest: the least weight of a set, and the least error of a table


@dataclass(frozen=True, eq=False)
class Division:
    """What sets are expected to be off by at each budget of a grid, and what those cost."""

    expected: Expected
    costs: Floats
    law: Law
    budget: float

    @cached_property
    def grid(self) -> Floats:
        """The budgets that a set may get; none, and from a small part of the whole to all of it."""
        largest = self.budget / self.costs.min()
        return np.concatenate([[0.0], largest * np.geomspace(_LEAST, 1.0, _STEPS)])

    @cached_property
    def paid(self) -> Floats:
        """What they cost; (sets, grid)."""
        return np.asarray(self.costs[:, None] * self.grid)

    @cached_property
    def errors(self) -> Floats:
        """error_B on the grid; (sets, grid)."""
        variances = self.variances(self.grid)
        errors = np.empty((len(self.expected), len(variances)))
        for part, found in self.expected.errors(variances):
            errors[part] = found
        return errors

    def variances(self, budgets: Floats) -> Floats:
        """Of the noise under budgets; infinite under none."""
        with np.errstate(divide="ignore"):
            return np.where(budgets > 0, self.law.formula(budgets), np.inf)

    def left(self, budgets: Floats) -> Floats:
        """error_B of each set under a budget of its own."""
        return self.expected.left(self.variances(budgets))

    def at(self, price: float, errors: Floats) -> Floats:
        """What each set takes if a unit of cost is worth that much, given weighed errors."""
        return np.asarray(self.grid[np.argmin(errors + price * self.paid, axis=1)])

    def price(self, errors: Floats, low: float, high: float, steps: int = _PRICES) -> float:
        """The least price found between two at which no more than the budget is spent."""
        for _ in range(steps):
            price = float(np.sqrt(low * high))
            low, high = (price, high) if self.costs @ self.at(price, errors) > self.budget else (low, price)
        return high

    def spending_all(self, found: Floats) -> Floats:
        """Budgets in the same proportions that cost all there is."""
        spent = float(self.costs @ found)
        return found * (self.budget / spent) if spent > 0 else np.full(len(found), self.budget / self.costs.sum())

    def least(self, weighed: Floats) -> Floats:
        """The budgets with the least sum of weighed errors on the grid; even ones where nothing is off."""
        total = float(weighed[:, 0].sum())
        if not total > 0:
            return self.spending_all(np.zeros(len(weighed)))
        price = self.price(weighed, 1e-9 * total / self.budget, 1e9 * total / self.budget)
        return self.spending_all(self.at(price, weighed))


@dataclass(frozen=True, eq=False)
class Inside:
    """Which of some sets are inside which tables, the weights of these, and the squares of what is past."""

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
        before = np.asarray(np.bincount(big, past[small] ** 2, len(tables)), np.float64)
        return cls(big[held], place[small[held]], weights, before, len(chosen))

    def roots(self, of_sets: Floats) -> Floats:
        """T_A of each table, given error_B of each set; none is quite zero."""
        found = np.sqrt(self.past + np.bincount(self.tables, of_sets[self.sets] ** 2, len(self.weights)))
        return np.asarray(np.maximum(found, max(_FAINTEST * found.max(initial=0.0), 1e-300)))

    def errors(self, of_sets: Floats) -> Floats:
        """E_A of each table."""
        return np.asarray(self.weights * self.roots(of_sets))

    def set_weights(self, of_tables: Floats) -> Floats:
        """The sum over the tables that hold a set, for each set; none is quite without."""
        found = np.bincount(self.sets, of_tables[self.tables], self.many)
        return np.asarray(np.maximum(found, _FAINTEST * found.max()))

    def supposing(self, shared: int, cases: int) -> Inside:
        """In each of some cases, all as likely: the first sets are shared by all cases, each has later ones of its own.

        These follow each other, those of the first case first.
        """
        later = self.many - shared
        sets = [np.where(self.sets < shared, self.sets, self.sets + case * later) for case in range(cases)]
        tables = [self.tables + case * len(self.weights) for case in range(cases)]
        weights, past = np.tile(self.weights / cases, cases), np.tile(self.past, cases)
        return Inside(np.concatenate(tables), np.concatenate(sets), weights, past, shared + cases * later)


def least_bound(program: Division, inside: Inside) -> Floats:
    """The budgets with the least sum over tables of what their sets are off by, as if nothing cancelled."""
    return program.least(program.errors * inside.set_weights(inside.weights)[:, None])


def least_total(program: Division, inside: Inside) -> Floats:
    """The budgets of sets with the least sum of E_A; zero where none is worth its price."""
    best = least_bound(program, inside)
    roots, squares = inside.roots(program.left(best)), program.errors**2
    for _ in range(_TANGENTS):
        now = program.least(squares * inside.set_weights(inside.weights / (2 * roots))[:, None])
        before, roots = roots, inside.roots(program.left(now))
        if inside.weights @ roots >= inside.weights @ before:  # to the grid's steps there is nothing better
            break
        best = now
    return best
