"""Budgets for many candidate supports at once, by descent on their logarithms.

For pure epsilon and tables A with Laplace budgets e_A (sum 1), generalised least squares gives the total error

    F(e) = 2 (sum_A e_A)² sum_B k_B / K_B,   K_B = sum_{A >= B} e_A² / cells(A),   k_B = m_B sum_{W >= B} a_W / cells(W)

over the workload's residual spaces B. In t = log e:   dlog F / dt_A = 2 e_A / sum e - 2 e_A² (M (k/K²))_A / sum(k/K),
with M_AB = [B <= A] / cells(A). Not convex: the derivative at e_A = 0 never revives a table, so supports are searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcube.designs.budgets import closed_form
from hushcube.designs.request import Request
from hushcube.model.arrays import Floats
from hushcube.model.marginal import Marginal
from hushcube.strategies.search.descent import minimise

_ABSENT = -80.0
"""The log-budget of a padding table."""
UNSEEN = 1e-120
"""K of a space that no table sees: far below any other, and so that k / K² fits a float for all weights and queries."""


@dataclass(frozen=True)
class Support:
    """Tables with budgets (their sum is 1) and the total error at epsilon 1, add-remove, weights counted."""

    sets: tuple[Marginal, ...]
    budgets: Floats
    error: float


class SupportProblem:
    """The search's objective for one request."""

    def __init__(self, request: Request) -> None:
        spaces = request.spaces
        self.sizes = np.asarray(request.schema.sizes, dtype=np.float64)
        self.k = request.space_weights
        self._members = _membership(list(spaces), len(self.sizes))
        self._orders = self._members.sum(axis=1)

    def matrix(self, sets: Sequence[Marginal]) -> Floats:
        """M_AB for some tables."""
        rows = _membership(sets, len(self.sizes))
        inside = rows @ self._members.T == self._orders
        cells = np.array([np.prod(self.sizes[list(s)]) for s in sets])
        return np.asarray(inside / cells[:, None])

    def optimise(
        self, supports: Sequence[Sequence[Marginal]], starts: Sequence[Floats] | None = None, *, steps: int
    ) -> list[Support]:
        """Descend from equal budgets (or given log-budgets) on each support."""
        width = max(map(len, supports))
        M = np.zeros((len(supports), width, len(self.k)))
        t = np.full((len(supports), width), _ABSENT)
        for i, support in enumerate(supports):
            M[i, : len(support)] = self.matrix(support)
            t[i, : len(support)] = 0.0 if starts is None else starts[i]
        t, _ = self.descend(M, t, steps)
        return [self._support(s, M[i, : len(s)], t[i, : len(s)]) for i, s in enumerate(supports)]

    def optimise_shared(self, sets: Sequence[Marginal], starts: Floats, *, steps: int) -> list[Support]:
        """Descend from several starts on one support."""
        M = self.matrix(sets)
        return [self._support(sets, M, row) for row in self.descend(M, starts, steps)[0]]

    def descend(self, M: Floats, t: Floats, steps: int) -> tuple[Floats, Floats]:
        """Minimise log F from each row of t; M is (tables, spaces), or one such matrix for each row."""
        k, Mt = self.k, np.swapaxes(M, -1, -2)

        def objective(t: Floats) -> tuple[Floats, Floats]:
            e = np.exp(t - t.max(axis=1, keepdims=True))  # F does not depend on the scale
            q = e**2
            total = e.sum(axis=1)
            K = np.maximum((q[:, None, :] @ M)[:, 0], UNSEEN)
            E = (k / K).sum(axis=1)
            pull = ((k / K**2)[:, None, :] @ Mt)[:, 0]
            value = np.log(2 * total**2 * E)
            return value, 2 * e / total[:, None] - 2 * q * pull / E[:, None]

        return minimise(objective, t, steps=steps)

    def _support(self, sets: Sequence[Marginal], M: Floats, t: Floats) -> Support:
        """The tables that still matter, their budgets, and what they really achieve."""
        e = np.exp(t - t.max())
        keep = np.flatnonzero(e > 2e-3 * e.max())
        budgets = e[keep] / e[keep].sum()
        K = budgets**2 @ M[keep]
        needed = self.k > 0
        error = float(2 * (self.k[needed] / K[needed]).sum()) if (K[needed] > 0).all() else np.inf
        return Support(tuple(sets[i] for i in keep.tolist()), budgets, error)


def optimise_own_tables(request: Request, *, steps: int) -> Support:
    """Descend from the cube-root budgets on the workload's own tables, by subset sums instead of matrices."""
    marginals, spaces = request.marginals, request.spaces
    k = request.space_weights

    def objective(t: Floats) -> tuple[Floats, Floats]:
        e = np.exp(t[0] - t.max())
        K = np.maximum(marginals.sum_over_supersets(spaces, e**2 / marginals.cells), UNSEEN)
        E = (k / K).sum()
        pull = marginals.sum_over_subsets(spaces, k / K**2) / marginals.cells
        value = np.log(2 * e.sum() ** 2 * E)
        return np.array([value]), (2 * e / e.sum() - 2 * e**2 * pull / E)[None]

    start = np.log(closed_form(request.energies, np.ones(len(marginals)), pure=True))
    t, value = minimise(objective, start[None], steps=steps)
    e = np.exp(t[0] - t.max())
    return Support(tuple(marginals), e / e.sum(), float(np.exp(value[0])))


def _membership(sets: Sequence[Marginal], d: int) -> Floats:
    rows = np.zeros((len(sets), d))
    for i, s in enumerate(sets):
        rows[i, list(s)] = 1.0
    return rows
