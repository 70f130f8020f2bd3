"""How a budget is divided among tables that are expected near a guess: the least sum of expected absolute errors.

A cell with the guess q is expected to be off by a normal deviation tau = d q sqrt(pi/2), so that the table is off by
d times its people. Measured with noise of variance v, what is left of it has variance 1 / (1/tau² + 1/v), and

    error_B(v) = sqrt(2/pi) sum_c tau_c / sqrt(1 + tau_c² / v)

which is what the guess is off by where noise is large, and what noise does where it is small; cells far below the
noise cost nothing, so that large tables are no dearer than what is in them. The budgets b_B minimise

    sum_B W_B error_B(variance(b_B))   subject to   sum_B cost_B b_B <= budget,     W_B the weights of the tables with B

by the multiplier of the constraint: each set takes from a grid the budget that is best at the price of a unit. Under
Gaussian noise the problem is convex and the answer its optimum, to the grid's steps; under Laplace noise, where small
budgets gain nothing, it is the best for its own price. Many sets get nothing: that is the selection.

For relative errors, with a sanity bound, a table's error is the mean of |error| / max(count, bound) over its cells. If
all cells of B are off by the same part of their guess, the cells of a table A that holds B are off by that part too,
and its mean is the part times s_A, the mean of min(1, q_c / bound) over its own cells. So B counts for A by s_A / s_B:

    error_B(v) = sqrt(2/pi) sum_c tau_c / sqrt(1 + tau_c² / v) / max(q_c, bound) / sum_c min(1, q_c / bound)
    W_B = sum of w_A s_A over the tables A that hold B
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats
from hushcube.model.noise import Law

_BINS: Final = 32
_OCTAVES: Final = 20  # deviations below the largest one by more factors of two are taken together
_STEPS: Final = 160
_LEAST: Final = 1e-8  # of the whole budget: the smallest one on the grid
_TOGETHER: Final = 2**21
_PRICES: Final = 60
_HALF: Final = np.sqrt(np.pi / 2)


@dataclass(frozen=True, eq=False)
class Expected:
    """For each of some sets the deviations tau that its cells are expected to have, and how many have each."""

    taus: Floats
    counts: Floats

    @classmethod
    def of(cls, family: Family, guess: Sequence[Floats], deviations: Floats, bound: float | None = None) -> Expected:
        """Of the tables of a family, an array for each batch, with relative deviations d.

        With a sanity bound `counts` says for how much the errors of cells count, in proportion to the cells.
        """
        taus, counts = np.zeros((len(family), _BINS)), np.zeros((len(family), _BINS))
        for batch, q in zip(family.batches, guess, strict=True):
            for part in batch.parts(_TOGETHER):
                ids, lines = batch.ids[part], q[part].reshape(len(batch.ids[part]), -1)
                top = np.maximum(lines.max(axis=1, keepdims=True), 1e-300)
                depth = np.log2(np.maximum(lines, 1e-300) / top) / -_OCTAVES * _BINS
                bins = np.minimum(depth, _BINS - 1).astype(np.int64)
                places = np.arange(len(ids))[:, None] * _BINS + bins
                shape = (len(ids), _BINS)
                counts[ids] = np.bincount(places.ravel(), minlength=shape[0] * _BINS).reshape(shape)
                sums = np.bincount(places.ravel(), lines.ravel(), minlength=shape[0] * _BINS).reshape(shape)
                mean = np.divide(sums, counts[ids], out=np.zeros(shape), where=counts[ids] > 0)
                taus[ids] = mean * deviations[ids, None] * _HALF
                if bound is not None:
                    scale = 1 / np.maximum(lines, bound)
                    scale /= np.maximum(np.minimum(lines / bound, 1.0).sum(axis=1, keepdims=True), 1e-300)
                    counts[ids] = np.bincount(places.ravel(), scale.ravel(), minlength=shape[0] * _BINS).reshape(shape)
        return cls(taus, counts)

    def __add__(self, other: Expected) -> Expected:
        return Expected(np.concatenate([self.taus, other.taus]), np.concatenate([self.counts, other.counts]))

    def __len__(self) -> int:
        return len(self.taus)

    def left(self, variances: Floats) -> Floats:
        """error_B of each set at a variance of its own."""
        left = self.taus / np.sqrt(1 + self.taus**2 / variances[:, None])
        return np.asarray((self.counts * left).sum(axis=1) / _HALF)

    def errors(self, variances: Floats) -> Iterator[tuple[slice, Floats]]:
        """error_B at each of some variances (infinite: not measured), for a few sets at a time; (sets, variances)."""
        step = max(1, _TOGETHER // (_BINS * len(variances)))
        for start in range(0, len(self), step):
            part = slice(start, start + step)
            t = self.taus[part][:, :, None]
            left = t / np.sqrt(1 + t**2 / variances)
            yield part, np.einsum("sb,sbv->sv", self.counts[part], left) / _HALF


def shares_above(family: Family, guess: Sequence[Floats], bound: float) -> Floats:
    """s of each table: the share of its cells that are not below a sanity bound, those below by their part of it."""
    found = np.zeros(len(family))
    for batch, q in zip(family.batches, guess, strict=True):
        found[batch.ids] = np.minimum(q / bound, 1.0).reshape(len(q), -1).mean(axis=1)
    return found


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

    def weighed(self, weights: Floats) -> Floats:
        """W_B error_B on the grid; (sets, grid)."""
        variances = self.variances(self.grid)
        errors = np.empty((len(self.expected), len(variances)))
        for part, found in self.expected.errors(variances):
            errors[part] = found * weights[part, None]
        return errors

    def variances(self, budgets: Floats) -> Floats:
        """Of the noise under budgets; infinite under none."""
        with np.errstate(divide="ignore"):
            return np.where(budgets > 0, self.law.formula(budgets), np.inf)

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


def allocated(expected: Expected, weights: Floats, costs: Floats, law: Law, budget: float) -> Floats:
    """The budget of each set; zero where none is worth its price."""
    program = Division(expected, costs, law, budget)
    errors = program.weighed(weights)
    total = float(errors[:, 0].sum())
    if not total > 0:
        return program.spending_all(np.zeros(len(expected)))
    high = program.price(errors, 1e-9 * total / budget, 1e9 * total / budget)
    return program.spending_all(program.at(high, errors))
