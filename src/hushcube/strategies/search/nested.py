"""Budgets for tables at nested levels, and which tables to measure: the exact error under least squares is minimised.

With w_i = e_i^p (p = 2 for Laplace noise of rate e, p = 1 for Gaussian noise of budget e), G = sum_i w_i F_i and the
errors E_A = tr(G^-1 F_A) of the tables and forms asked for [lattice/nested_blocks.py],

    minimise    p log sum_i e_i + log f(E),      f = sum_A a_A E_A,    or, for the objective `max`, a norm of high order
    d f / d w_i = - tr(G^-1 F_i G^-1 K),         K = sum_A (d f / d E_A) F_A

by descent on log e. Convex in the budgets for Gaussian noise; for Laplace noise the Gaussian optimum is one of several
starts, each of the simpler sets of tables another. Tables that got little are then left out, and the others optimised
again: a table fewer leaves more for each.

Which tables are worth measuring is first judged by a simpler error, that of tables which are summed from one source i
with the weights W_i = sum of a_A over its tables:  (sum_i (W_i cells_i)^(1/(p+1)))^(p+1).  Tables are merged, two at
a time, while that falls.                                                       [Yaroslavtsev et al. 2013, C+, greedy]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import numpy as np

from hushcube.designs.levels.design import asked_sums, form_rows
from hushcube.designs.levels.nesting import Frame, Nesting
from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.lattice.nested_blocks import Blocks, Pairs, Stacks
from hushcube.model.arrays import Floats, Marginal
from hushcube.strategies.search.descent import minimise

_STEPS: Final = 300
_SHORT: Final = 30  # steps from every start; only the best ones are followed further
_KEPT: Final = 2
_ENOUGH: Final = 60
_MOST_WORK: Final = 2e10  # multiplications of all steps of a descent: some seconds
_LEAST: Final = 1e-9  # the smallest budget of a table, relative to the largest: every table must have one
_ORDERS: Final = (8, 64)  # of the norms that stand for the largest error
_FAINT: Final = 0.02
_TIE: Final = 1e-5  # what a table fewer is worth, relative to the objective: descents end about so near to the optimum
_MOST_MERGED: Final = 1_000  # tables that are tried in pairs


@dataclass(frozen=True, eq=False)
class Problem:
    """What to measure for a request, up to the budgets."""

    request: Request
    nesting: Nesting
    measured: tuple[Marginal, ...]
    frame: Frame
    asked: tuple[Marginal, ...]
    """Without those that are public."""

    @classmethod
    def of(cls, request: Request, nesting: Nesting, measured: Sequence[Marginal]) -> Problem | None:
        """The problem, or None where it is too large or the tables do not answer the request."""
        asked = noisy(request, request.marginals)
        if not nesting.all_held(asked, measured):
            return None
        frame = Frame.of(nesting, measured)
        if frame is None or not frame.fits(asked):
            return None
        return cls(request, nesting, tuple(measured), frame, asked)

    @property
    def blocks(self) -> Blocks:
        """The coordinates."""
        return self.frame.blocks

    @cached_property
    def _pairs(self) -> dict[int, Pairs]:
        return self.blocks.pairs([self.frame.table(m) for m in self.measured])

    @cached_property
    def _aims(self) -> dict[int, Pairs]:
        """F of the tables asked for, then of the forms; a matrix of queries counts by the cells of its carrier."""
        forms = [(form.marginal, form_rows(form)) for form in self.request.workload.forms]
        return self.blocks.pairs(*asked_sums(self.frame, [*((A, None) for A in self.asked), *forms]))

    @cached_property
    def _weights(self) -> Floats:
        """The weights of what is asked for: per table for the total, per cell for the largest error."""
        request = self.request
        ids = request.marginals.ids(self.asked)
        weights = request.weights[ids]
        if request.objective == "max":
            weights = weights / request.marginals.cells[ids]
        forms = [
            weight
            if form_rows(form) is not None
            else weight * float(form.squares().flat[-1]) / math.prod(form.carrier_shape)
            for form, weight in request.weighted_forms
        ]
        return np.concatenate([weights, np.array(forms)])

    def value(self, e: Floats, p: int, order: int | None) -> tuple[float, Floats]:
        """log of the objective at cost 1, and its gradient in log e."""
        w = (e / e.max()) ** p
        V = self._covariance(w)
        y = self._weights * self.blocks.totals(V, self._aims, len(self._weights))
        if order is None:
            f, slope = float(y.sum()), self._weights
        else:
            top = float(y.max())
            f = top * float(((y / top) ** order).sum()) ** (1 / order)
            slope = self._weights * (y / f) ** (order - 1)
        pull = self._pulls(V, slope)
        total = float(e.sum())
        return p * np.log(total / e.max()) + np.log(f), p * (e / total - w * pull / f)

    def separable(self) -> Floats:
        """s_i, where ordinary least squares has the total error sum_i s_i variance_i."""
        return self._pulls(self._covariance(np.ones(len(self.measured))), self._weights)

    def _pulls(self, V: Stacks, slope: Floats) -> Floats:
        """tr(V F_i V K) of the tables measured."""
        K = self.blocks.add(self._aims, slope)
        products = {size: each @ K[size] @ each for size, each in V.items()}
        return self.blocks.totals(products, self._pairs, len(self.measured))

    def _covariance(self, w: Floats) -> Stacks:
        return self.blocks.inverse(self.blocks.add(self._pairs, w), public=self.request.privacy.total_is_public)

    def descend(self, starts: Sequence[Floats], p: int) -> Solution:
        """The best budgets found from several starts: a short way from all of them, a long one from the best."""
        points = np.log(np.maximum(np.stack([s / s.max() for s in starts]), _LEAST))
        orders: Sequence[int | None] = _ORDERS if self.request.objective == "max" else (None,)
        for order in orders:
            objective = partial(self._many, p=p, order=order)
            if len(points) > _KEPT and (short := self._steps(_SHORT, len(points))):
                points, values = minimise(objective, points, steps=short)
                points = points[np.argsort(values, kind="stable")[:_KEPT]]
            if steps := self._steps(_STEPS, len(points)):
                points, values = minimise(objective, points, steps=steps)
        values, _ = self._many(points, p=p, order=orders[-1])
        best = points[int(np.argmin(values))]
        return Solution(self.measured, np.maximum(np.exp(best - best.max()), _LEAST), float(values.min()))

    @property
    def is_light(self) -> bool:
        """Whether the work allows a descent to come near to its end, so that more tables are no hindrance."""
        return self._steps(_STEPS, 1) >= _ENOUGH

    def _steps(self, wanted: int, starts: int) -> int:
        """As many steps as wanted, or as the work allows."""
        cost = 8 * self.blocks.work + 20 * sum(each.F.size for each in (*self._pairs.values(), *self._aims.values()))
        return int(min(wanted, _MOST_WORK / (cost + 1e6) / starts))

    def _many(self, points: Floats, *, p: int, order: int | None) -> tuple[Floats, Floats]:
        found = [self.value(np.exp(np.clip(t - t.max(), np.log(_LEAST) - 5, 0.0)), p, order) for t in points]
        return np.array([value for value, _ in found]), np.stack([gradient for _, gradient in found])


@dataclass(frozen=True)
class Solution:
    """Tables to measure, their budgets (up to scale), and the logarithm of the objective that they reach."""

    measured: tuple[Marginal, ...]
    budgets: Floats
    value: float


def optimise(problem: Problem, seeds: Iterable[Iterable[Marginal]], *, pure: bool) -> Solution:
    """The best budgets for all tables, or for those that got a fair share of them; fewer tables where it is a tie.

    Each of the `seeds`, sets of tables, is a start for Laplace noise: they get nearly all of the budget.
    """
    n = len(problem.measured)
    best = problem.descend([np.ones(n)], 1)
    if pure:
        cells = np.array([problem.request.schema.cells(m) for m in problem.measured], np.float64)
        starts = [np.ones(n), np.cbrt(cells), best.budgets]
        for seed in map(frozenset, seeds):
            start = np.array([1.0 if m in seed else _FAINT for m in problem.measured])
            starts += [start, start * np.cbrt(cells)]
        best = problem.descend(starts, 2)
    for share in (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.2):
        keep = best.budgets > share * best.budgets.max()
        kept = [m for m, own in zip(best.measured, keep, strict=True) if own]
        smaller = None if keep.all() else Problem.of(problem.request, problem.nesting, kept)
        if smaller is not None:
            found = smaller.descend([best.budgets[keep]], 2 if pure else 1)
            best = found if found.value <= best.value + _TIE else best
    return best


def merged(request: Request, nesting: Nesting, *, pure: bool) -> tuple[Marginal, ...]:
    """Tables from which those asked for are summed, merged greedily while the simple error falls."""
    asked = noisy(request, request.marginals)
    if len(asked) > _MOST_MERGED:
        return tuple(nesting.maximal(asked))
    levels, weights = nesting.matrix(asked), table_weights(request)[request.marginals.ids(asked)]
    chains = request.schema.chains
    sizes = np.ones((len(chains), 1 + max(map(len, chains))))
    for chain, positions in enumerate(chains):
        sizes[chain, 1 : 1 + len(positions)] = [request.schema.sizes[i] for i in positions]
    share = 1 / 3 if pure else 1 / 2

    def gains(at: int) -> Floats:
        """What merging one table with each of the others saves."""
        cells = sizes[np.arange(len(chains)), np.maximum(levels, levels[at])].prod(axis=1)
        saved = costs + costs[at] - ((weights + weights[at]) * cells) ** share
        saved[at] = 0.0
        return np.where(alive & alive[at] & (cells <= MAX_TABLE_CELLS), saved, 0.0)

    costs = (weights * sizes[np.arange(len(chains)), levels].prod(axis=1)) ** share
    alive = np.ones(len(asked), bool)
    gain = np.stack([gains(at) for at in range(len(asked))])
    while gain.max() > 0:
        first, second = np.unravel_index(int(np.argmax(gain)), gain.shape)
        levels[first] = np.maximum(levels[first], levels[second])
        same = alive & (levels == levels[first]).all(axis=1)
        same[[first, second]] = True
        weights[first] = weights[same].sum()
        costs[first] = (weights[first] * sizes[np.arange(len(chains)), levels[first]].prod()) ** share
        same[first] = False
        alive &= ~same
        gain[same], gain[:, same] = 0.0, 0.0
        gain[first] = gain[:, first] = gains(int(first))
    return tuple(
        nesting.marginal((chain, int(level)) for chain, level in enumerate(row) if level) for row in levels[alive]
    )


def noisy(request: Request, marginals: Iterable[Marginal]) -> tuple[Marginal, ...]:
    """The tables that need noise: where the total is public, all that have more than one cell."""
    public = request.privacy.total_is_public
    return tuple(m for m in marginals if not public or request.schema.cells(m) > 1)


def table_weights(request: Request) -> Floats:
    """a_A, with the forms that are summed from the table; a carrier's cells are asked for through them."""
    return np.asarray(request.energies / request.marginals.cells)
