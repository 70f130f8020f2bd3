"""Budgets whose largest error is least, by exponential multipliers and descent on log-budgets.

Errors F_A >= 0 of answers, homogeneous of degree -k in the budgets e (k = 1: Gaussian, k = 2: Laplace noise):

    separable   F = P H (e^-k)          each error is a sum of the sets' variances
    pooled      F = P (1 / (G e^k))     each residual space pools the precisions of the sets that see it

minimise over e > 0     k log(sum_B c_B e_B) + max_A log F_A(e)         (free of scale; c_B: what a unit of e_B costs)

The maximum is softened to (1/p) log sum_A a_A F_A^p, whose minimum gives the next multipliers a_A <- a_A F_A^p. That is
a proximal step of the dual problem, so it closes in quickly with a modest p.    [Tseng, Bertsekas 1993]
In t = log e the separable problem is convex (a geometric program); the pooled one is convex in e for k = 1, and then a
point where the gradient by t vanishes and all e_B > 0 is its minimum. Pooled with k = 2 is not convex.

Certificate: for any weights l_A >= 0 of sum 1, at cost 1, max_A F_A >= sum_A l_A F_A, and with s = Pᵀ l

    separable   sum_B (Hᵀs)_B e_B^-k >= (sum_B (c_B^k (Hᵀs)_B)^(1/(k+1)))^(k+1)                       (Hölder)
    pooled      sum_C s_C / K_C >= (sum_C sqrt(s_C q_C))² / max_B (Gᵀq)_B / c_B,  K = G e, any q >= 0   (Cauchy; k = 1)

Two q are tried: s / K², which is the best one at the optimum, and one that is given, such as the dimensions of residual
spaces, for which the bound is that of all linear strategies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from hushcube.model.arrays import Floats, Ints
from hushcube.strategies.search.descent import minimise

TOLERANCE: Final = 3e-7
"""The relative gap at which a solution is good enough; sums of many terms do not allow for much less."""
_SHARPNESS: Final = (10, 30, 100, 300, 1000, 1000, 3000, 3000, 10_000, 10_000)  # p, stage by stage
_STEPS: Final = 300
_PATIENCE: Final = 2  # stages without progress after which a problem without a bound is given up
_LEAST_CURVATURE: Final = 1e-2  # in units of the mean: sets that are nearly left out are not scaled further
_REVIVED: Final = 1e-3  # in units of the mean: what a set starts a stage from, if it had less and wants to grow
_LEAST_LOG: Final = -150.0
"""Of a budget, the largest being 1: far enough for a set that is left out, and powers stay finite."""
_FORGOTTEN: Final = 60.0
"""Multipliers are kept above exp(-60) of the largest: below, an answer would take long to be noticed again."""


@dataclass(frozen=True)
class Sparse:
    """A matrix as a list of entries: at (row, column) a value.

    >>> m = Sparse(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0]), (2, 2))
    >>> (m @ np.array([1.0, 10.0])).tolist(), (m.transposed @ np.array([1.0, 10.0])).tolist()
    ([21.0, 30.0], [1.0, 32.0])
    """

    rows: Ints
    columns: Ints
    values: Floats
    shape: tuple[int, int]

    def __matmul__(self, x: Floats) -> Floats:
        return np.bincount(self.rows, self.values * x[self.columns], self.shape[0]).astype(np.float64, copy=False)

    @cached_property
    def transposed(self) -> Sparse:
        """The same, rows and columns exchanged."""
        return Sparse(self.columns, self.rows, self.values, self.shape[::-1])

    def times(self, other: Sparse) -> Sparse:
        """The product of two matrices.

        >>> m = Sparse(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0]), (2, 2))
        >>> squared = m.times(m)
        >>> squared.rows.tolist(), squared.columns.tolist(), squared.values.tolist()
        ([0, 0, 1], [0, 1, 1], [1.0, 8.0, 9.0])
        """
        order = np.argsort(other.rows, kind="stable")
        lengths = np.bincount(other.rows, minlength=other.shape[0])
        counts = lengths[self.columns]  # each entry meets a row of the other
        first = (np.cumsum(lengths) - lengths)[self.columns] - (np.cumsum(counts) - counts)
        met = order[np.repeat(first, counts) + np.arange(counts.sum())]
        places = np.repeat(self.rows, counts) * other.shape[1] + other.columns[met]
        present, at = np.unique(places, return_inverse=True)
        values = np.bincount(at, np.repeat(self.values, counts) * other.values[met], len(present)).astype(np.float64)
        rows, columns = np.divmod(present, other.shape[1])
        return Sparse(rows, columns, values, (self.shape[0], other.shape[1]))

    def with_row(self, columns: Ints, values: Floats) -> Sparse:
        """The same with one more row."""
        rows = np.concatenate((self.rows, np.full(len(columns), self.shape[0])))
        columns, values = np.concatenate((self.columns, columns)), np.concatenate((self.values, values))
        return Sparse(rows, columns, values, (self.shape[0] + 1, self.shape[1]))


@dataclass(frozen=True)
class Problem:
    """The largest error as a function of budgets; `inner` is H, or G where the sets are pooled, and then q is given."""

    P: Sparse
    inner: Sparse
    c: Floats
    k: int
    q: Floats | None = None

    @property
    def is_pooled(self) -> bool:
        """Whether precisions are pooled."""
        return self.q is not None

    @property
    def has_bound(self) -> bool:
        """Whether the problem is convex."""
        return self.k == 1 or not self.is_pooled

    def spaces(self, e: Floats) -> Floats:
        """What P combines."""
        return 1 / np.maximum(self.inner @ e**self.k, 1e-140) if self.is_pooled else self.inner @ e**-self.k

    def errors(self, e: Floats) -> Floats:
        """F_A."""
        return self.P @ self.spaces(e)

    def slope(self, e: Floats, s: Floats) -> Floats:
        """-d/dt_B of sum_C s_C spaces_C, t = log e."""
        if self.is_pooled:
            return self.k * e**self.k * (self.inner.transposed @ (s * self.spaces(e) ** 2))
        return self.k * e**-self.k * (self.inner.transposed @ s)

    def value(self, e: Floats) -> float:
        """The largest error, were the budgets scaled to cost 1."""
        return float(self.errors(e).max() * (self.c @ e) ** self.k)

    def bound(self, e: Floats, weights: Floats) -> float:
        """No budgets of cost 1 have a smaller largest error: the certificate for weights of sum 1."""
        s = self.P.transposed @ weights
        if self.q is None:
            return float(((self.c**self.k * (self.inner.transposed @ s)) ** (1 / (self.k + 1))).sum() ** (self.k + 1))
        tried = (self.q, s * self.spaces(e) ** 2)
        return max(float(np.sqrt(s * q).sum() ** 2 / ((self.inner.transposed @ q) / self.c).max()) for q in tried)


@dataclass(frozen=True)
class Solution:
    """Budgets of cost 1, their largest error, and a bound that no budgets beat (zero where none is known)."""

    budgets: Floats
    value: float
    bound: float
    weights: Floats | None = None
    """Of the errors, with sum 1: those that prove the bound."""

    @property
    def gap(self) -> float:
        """How much worse than the optimum the budgets can be, relatively."""
        return max(self.value / self.bound - 1, 0.0) if self.bound > 0 else math.inf


def solve(problem: Problem, start: Floats, *, tolerance: float = TOLERANCE) -> Solution:
    """Descend from the start; never worse than it."""
    best = Solution(start / (problem.c @ start), problem.value(start), 0.0)
    t, multipliers, idle = np.log(start / start.max()), np.zeros(problem.P.shape[0]), 0
    for p in _SHARPNESS:
        t = _descend(problem, t, multipliers, p)
        e = np.exp(t)
        errors = problem.errors(e)
        multipliers = multipliers + p * np.log(errors)
        multipliers = np.maximum(multipliers - multipliers.max(), -_FORGOTTEN)
        before, best = best, _better(problem, best, e, np.exp(multipliers) / errors)
        idle = 0 if best.value < before.value * (1 - TOLERANCE) else idle + 1
        if best.gap <= tolerance or (idle == _PATIENCE and not problem.has_bound):
            break
    return best


def _descend(problem: Problem, start: Floats, multipliers: Floats, p: float) -> Floats:
    """The minimum of the softened problem, as log-budgets of maximum 0.

    Curvature is about in proportion to a set's share of the cost: steps are scaled by its root, t = start + x / root.
    From nearly nothing a set would not come back, for its slope by t is as small; if it has one, it starts from more.
    """
    e = np.exp(start)
    share = problem.c * e / (problem.c @ e)
    growing = _softened(problem, e, multipliers, p)[1] > problem.k * share
    share *= len(share)
    start = start + np.where(growing, np.log(np.maximum(_REVIVED / share, 1.0)), 0.0)
    scale = 1 / np.sqrt(np.maximum(share, _LEAST_CURVATURE))

    def objective(x: Floats) -> tuple[Floats, Floats]:
        t = start + scale * x[0]
        e = np.exp(np.maximum(t - t.max(), _LEAST_LOG))
        spent = problem.c @ e
        value, slope = _softened(problem, e, multipliers, p)
        gradient = problem.k * problem.c * e / spent - slope
        return np.array([problem.k * np.log(spent) + value]), (scale * gradient)[None]

    x = minimise(objective, np.zeros((1, len(start))), steps=_STEPS, memory=20, tolerance=max(1e-9 / p, 1e-13))[0][0]
    t = start + scale * x
    return np.asarray(np.maximum(t - t.max(), _LEAST_LOG))


def _softened(problem: Problem, e: Floats, multipliers: Floats, p: float) -> tuple[float, Floats]:
    """(1/p) log sum_A a_A F_A^p and its slope, -d/dt_B."""
    errors = problem.errors(e)
    powers = multipliers + p * np.log(errors)
    weights = np.exp(powers - powers.max())
    value = float(powers.max() + np.log(weights.sum())) / p
    return value, problem.slope(e, problem.P.transposed @ (weights / weights.sum() / errors))


def _better(problem: Problem, best: Solution, e: Floats, weights: Floats) -> Solution:
    """The best budgets and the best bound so far."""
    weights = weights / weights.sum()
    bound, proof = best.bound, best.weights
    if problem.has_bound and (proven := problem.bound(e, weights)) > bound:
        bound, proof = proven, weights
    choices = [e]
    if not problem.is_pooled:  # the optimum for these weights
        optimum = (problem.inner.transposed @ (problem.P.transposed @ weights) / problem.c) ** (1 / (problem.k + 1))
        choices.append(np.maximum(optimum, np.exp(_LEAST_LOG) * optimum.max()))
    found = min(choices, key=problem.value)
    if problem.value(found) < best.value:
        return Solution(found / (problem.c @ found), problem.value(found), bound, proof)
    return Solution(best.budgets, best.value, bound, proof)
