"""Optimal budgets for any rows: the convex program of the main paper, solved with a certificate.

    minimise sum_i s_i / eta_i^p    subject to    A eta <= 1,  eta >= 0           [Yaroslavtsev et al. 2013, (1)-(3)]

A has a line for each column of the strategy and a place for each of its rows: A = |S|^T with p = 2 for Laplace noise
(eta are rates), A = (S²)^T with p = 1 for Gaussian noise (eta are 1/(2 variance)). The dual is a maximum over weights
of the columns, which also bounds the optimum from below for any weights mu >= 0 that sum to one:

    (sum_i (s_i (A^T mu)_i^p)^(1/(p+1)))^(p+1)  <=  optimum  <=  sum_i s_i / eta_i^p, any feasible eta.

With a single constraint both sides meet in Corollary 3.3. In general a primal-dual interior-point method closes the
gap [Boyd and Vandenberghe 2004, section 11.7]; its linear equations have the size of the smaller of rows and columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hushcube.model.arrays import Floats

TOLERANCE: Final = 1e-11  # the relative gap at which the iteration stops
_MOST_STEPS: Final = 200
_SHRINK: Final = 30.0  # by which factor a step tries to reduce the gap
_CENTRAL: Final = 1e-4
"""The least product w_j lam_j, in terms of their mean: steps that run into a boundary are shortened."""
_NEGLIGIBLE: Final = 1e-8
"""Columns far from being tight add less than this to Newton's matrix, whose least eigenvalue is 1."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Feasible budgets, their objective, and a proven lower bound of the optimum."""

    eta: Floats
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """By which share the value may exceed the optimum."""
        return self.value / self.bound - 1 if self.bound else 0.0


def minimise(s: Floats, A: Floats, p: int) -> Solution:
    """The optimal budgets; a row with s_i = 0 gets none.

    >>> rows = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    >>> found = minimise(np.ones(5), rows.T, 2)
    >>> round(2 * found.value, 9), found.gap < 1e-10
    (39.083932611, True)
    """
    used = s > 0
    if not used.any():
        return Solution(np.zeros(len(s)), 0.0, 0.0)
    columns = distinct(A[:, used])
    if (columns.max(axis=0) == 0).any():
        raise ValueError("a row that counts is zero: its budget has no bound")
    found = _Program(s[used], columns, p).solve()
    eta = np.zeros(len(s))
    eta[used] = found.eta
    return Solution(eta, found.value, found.bound)


def distinct(A: Floats) -> Floats:
    """The different non-zero lines of A: a repeated constraint says nothing new.

    >>> distinct(np.array([[1.0, 0], [0, 0], [1, 0], [0, 1]])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    first = {line.tobytes(): at for at, line in reversed(list(enumerate(np.ascontiguousarray(A))))}
    kept = sorted(first.values())
    return A[[at for at in kept if A[at].any()]]


def feasible(s: Floats, A: Floats, p: int, eta: Floats) -> tuple[Floats, float]:
    """Budgets scaled to meet the tightest constraint, and their objective."""
    scaled = eta / (A @ eta).max()
    return scaled, float((s / scaled**p).sum())


def dual_value(s: Floats, c: Floats, p: int) -> float:
    """The lower bound that column weights mu >= 0 of sum one prove; c = A^T mu."""
    return float(((s * c**p) ** (1 / (p + 1))).sum() ** (p + 1))


class _Program:
    """The iteration: multipliers lam and slacks w, all products w_j lam_j brought to zero together.

        eta_i = (p s_i / (A^T lam)_i)^(1/(p+1))         r = 1 - A eta - w = 0         w_j lam_j = mean / shrink

    eta makes the Lagrangian least for any lam, so every lam gives a bound. Steps are shortened until both residuals
    shrink. Units: the first eta are ones.
    """

    def __init__(self, s: Floats, A: Floats, p: int) -> None:
        start = (s / A.sum(axis=0)) ** (1 / (p + 1))
        self.unit = start * (0.5 / (A @ start).max())
        self.value_unit = float((s / self.unit**p).sum())
        self.s, self.A, self.p = s / self.unit**p / self.value_unit, A * self.unit, p
        self.lam = np.full(len(A), p * float(self.s[0]) / float(self.A[:, 0].sum()))
        self.eta = self._eta(self.lam)
        self.w = 1 - self.A @ self.eta
        self.best = Solution(self.eta, np.inf, 0.0)

    def _eta(self, lam: Floats) -> Floats:
        eta: Floats = (self.p * self.s / (lam @ self.A)) ** (1 / (self.p + 1))
        return eta

    def solve(self) -> Solution:
        """Steps until the gap is closed, or no step closes it further."""
        idle = 0
        for _ in range(_MOST_STEPS):
            idle = 0 if self._certify() else idle + 1
            if self.best.gap <= TOLERANCE or idle > 5 or not self._step():
                break
        return Solution(self.best.eta * self.unit, self.best.value * self.value_unit, self.best.bound * self.value_unit)

    def _certify(self) -> bool:
        """Keep the best value and the best bound so far; whether either improved."""
        s, A, p = self.s, self.A, self.p
        bound = max(self.best.bound, dual_value(s, (self.lam / self.lam.sum()) @ A, p))
        choices = [(self.best.eta, self.best.value), feasible(s, A, p, self.eta)]
        eta, value = min(choices, key=lambda choice: choice[1])
        improved = value < self.best.value * (1 - 1e-13) or bound > self.best.bound * (1 + 1e-13)
        self.best = Solution(eta, value, bound)
        return improved

    def _step(self) -> bool:
        """One step; False where Newton's equations can no longer be solved or lead nowhere."""
        w, lam = self.w, self.lam
        r = 1 - self.A @ self.eta - w
        mean = float(w @ lam) / len(w)
        uneven = float(np.abs(r) @ lam) > len(w) * mean  # then w lam says little about the gap: centre first
        target = mean if uneven else mean / _SHRINK
        complement = target - w * lam
        try:
            d_lam, d_w = self._direction(r, complement)
        except np.linalg.LinAlgError:
            return False
        size = min(1.0, 0.99 * min(_longest(w, d_w), _longest(lam, d_lam)))
        before = _size(r * lam, complement)
        for _ in range(40):
            self.lam, self.w = lam + size * d_lam, w + size * d_w
            self.eta = self._eta(self.lam)
            r = 1 - self.A @ self.eta - self.w
            products = self.w * self.lam
            closer = _size(r * lam, target - products) <= (1 - 0.01 * size) * before
            if closer and products.min() >= _CENTRAL * products.mean():
                return True
            size /= 2
        return False

    def _direction(self, r: Floats, complement: Floats) -> tuple[Floats, Floats]:
        """d_w = r - A d_eta,  d_eta = -k A^T d_lam,  lam d_w + w d_lam = complement; by the shorter side of A."""
        A, w, lam = self.A, self.w, self.lam
        k = np.sqrt(self.eta / ((self.p + 1) * (lam @ A)))
        root = np.sqrt(lam / w)
        X = A * root[:, None] * k
        if A.shape[1] <= A.shape[0]:  # (1/k² + A^T lam/w A) d_eta = A^T (lam r - complement) / w
            X = X[np.einsum("ji,ji->j", X, X) > _NEGLIGIBLE]
            d_eta = k * np.linalg.solve(_plus_one(X.T @ X), k * (((lam * r - complement) / w) @ A))
            d_w = r - A @ d_eta
            return (complement - lam * d_w) / w, d_w
        d_lam = root * np.linalg.solve(_plus_one(X @ X.T), root * (complement / lam - r))  # (w/lam + A k² A^T) d_lam
        return d_lam, (complement - w * d_lam) / lam


def _size(*residuals: Floats) -> float:
    return float(np.sqrt(sum(float(x @ x) for x in residuals)))


def _plus_one(matrix: Floats) -> Floats:
    matrix.flat[:: len(matrix) + 1] += 1
    return matrix


def _longest(x: Floats, d: Floats) -> float:
    """The longest step along which all numbers stay positive."""
    falling = d < 0
    return float((-x[falling] / d[falling]).min(initial=np.inf))
