"""What the strategies for ranges share: which attributes get a tree, which levels are measured, and budgets for them.

With k_l the objective's weight on space l (a level of each attribute) and sets m that see it,

    minimise    (sum_m e_m)^p  sum_l k_l / K_l,     K_l = sum_{m sees l} e_m^p / nodes(m)

p = 2 for Laplace noise (budget e, variance 2/e²), p = 1 for Gaussian noise (variance 1/(2e)). Where every space is
seen by one set the optimum is closed: e_m ∝ (sum_{l seen} k_l nodes(m))^(1/(p+1))   [Yaroslavtsev et al., Theorem 3.4].
Otherwise it is found by descent on log e, from several starts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np

from hushcube.costs import calibrate
from hushcube.designs.budgets import fitted
from hushcube.designs.design import Budgets, Recovery
from hushcube.designs.request import Request
from hushcube.designs.tree.design import TreeDesign, leaves_fit, maximal, proof_variance, row_cost
from hushcube.designs.tree.errors import form_energies, outer
from hushcube.lattice.trees import Tree
from hushcube.model.arrays import Bools, Floats, Ints, Marginal
from hushcube.model.form import RangeTable
from hushcube.model.noise import GAUSSIAN, LAPLACE
from hushcube.strategies.search.descent import minimise
from hushcube.strategies.search.supports import UNSEEN
from hushcube.strategies.strategy import objective_value

Levels = Ints
MOST_TABLES: Final = 1_000
"""The most marginals that may be asked for beside ranges."""
_MOST_PAIRS: Final = 2**24
"""Sets times spaces that are weighed."""
_STEPS: Final = 400
_LEAST: Final = 1e-6
"""The smallest budget of a measured set, relative to the largest."""


def refusal(request: Request) -> str | None:
    """Why no tree can serve a request, or None."""
    if not ranged(request):
        return "no range over an ordered attribute is asked for"
    if len(request.marginals) > MOST_TABLES:
        return f"more than {MOST_TABLES:,} tables are asked for beside the ranges"
    return None


def ranged(request: Request) -> frozenset[int]:
    """The attributes along which ranges, or arbitrary queries, are asked for."""
    found: set[int] = set()
    for form in request.workload.forms:
        if isinstance(form, RangeTable):
            found |= {i for i, kind in zip(form.marginal, form.along, strict=True) if kind != "cells"}
        else:
            found |= {i for i, a in zip(form.marginal, form.attributes, strict=True) if a.is_ordered}
    return frozenset(i for i in found if request.schema.sizes[i] > 1)


@dataclass(frozen=True)
class TreeSets:
    """Sets of levels to measure, and the spaces that the objective looks at."""

    trees: tuple[Tree, ...]
    wavelet: tuple[bool, ...]
    levels: Levels
    spaces: Levels
    k: Floats
    """The objective's weight on each space: it is sum_l k_l / K_l at unit noise."""
    finest: Bools
    """The sets that hold the cells of a table."""

    @property
    def uniform(self) -> Floats:
        """Equal budgets."""
        return np.ones(len(self.levels))

    @property
    def matrix(self) -> Floats:
        """[m sees l] / nodes(m), times the rows' squared norms: sets by spaces."""
        seen = np.ones((len(self.levels), len(self.spaces)), bool)
        for i, wavelet in enumerate(self.wavelet):
            m, l = self.levels[:, i, None], self.spaces[:, i]  # noqa: E741 - the papers' letter
            seen &= (m == l) if wavelet else (m >= l)
        per_axis = [np.array(tree.nodes, np.float64)[m] for tree, m in zip(self.trees, self.levels.T, strict=True)]
        norms = 2.0 ** ((self.levels > 0) & np.array(self.wavelet)).sum(axis=1)
        return np.asarray(seen * (norms / np.prod(per_axis, axis=0))[:, None])


def design(request: Request, trees: Sequence[Tree], wavelet: Sequence[bool]) -> TreeSets | None:
    """All levels of the trees of ranged attributes, with the cells of the others; None where that is too much."""
    if not leaves_fit(request, trees):
        return None
    with_ranges = ranged(request)
    sets: dict[tuple[int, ...], bool] = {}
    for carrier in maximal(request):
        axes = [
            range(trees[i].depth + 1) if i in with_ranges and i in carrier else [trees[i].depth if i in carrier else 0]
            for i in range(len(trees))
        ]
        sets |= dict.fromkeys(product(*axes), False)
        sets[tuple(axis[-1] for axis in axes)] = True
    weights = _space_weights(request, trees)
    if len(sets) * len(weights) > _MOST_PAIRS:
        return None
    spaces, k = np.array(list(weights), dtype=np.int64), np.array(list(weights.values()))
    levels, finest = np.array(list(sets), dtype=np.int64), np.array(list(sets.values()))
    return TreeSets(tuple(trees), tuple(wavelet), levels, spaces, k, finest)


def _space_weights(request: Request, trees: Sequence[Tree]) -> dict[tuple[int, ...], float]:
    """k_l = sum over tables on A of weight times sum ||P_l q||² / leaves(A), never less than carriers weigh."""
    result: dict[tuple[int, ...], float] = {}
    least: dict[tuple[int, ...], float] = {}

    def add(result: dict[tuple[int, ...], float], A: Marginal, weight: float, energies: Floats) -> None:
        energies = energies * weight / math.prod(trees[i].leaves for i in A)
        for at in np.ndindex(energies.shape):
            key = [0] * len(trees)
            for i, level in zip(A, at, strict=True):
                key[i] = level
            result[tuple(key)] = result.get(tuple(key), 0.0) + float(energies[at])

    weights = zip(request.weights.tolist(), request.least_weights.tolist(), strict=True)
    for A, (own, little) in zip(request.marginals, weights, strict=True):
        energies = outer([trees[i].cell_energies for i in A])
        add(result, A, own, energies)
        add(least, A, little, energies)
    for form, weight in request.weighted_forms:
        add(result, form.marginal, weight, form_energies(form, [trees[i] for i in form.marginal]))
    return {space: max(k, least[space]) for space, k in result.items()}


@dataclass(frozen=True)
class Solution:
    """Sets that are worth measuring, their budgets (up to scale), and the objective that they reach."""

    design: TreeSets
    budgets: Floats
    value: float


def optimise(design: TreeSets, *, pure: bool) -> Solution:
    """The best budgets for all sets, for those that got a fair share of them, and for the finest ones alone."""
    first = _descend(design, pure=pure)
    supports = [first.budgets > share * first.budgets.max() for share in (1e-3, 1e-2, 1e-1)]
    tried = [first]
    for keep in (*supports, design.finest):
        kept = replace(design, levels=design.levels[keep], finest=design.finest[keep])
        if not keep.all() and keep.any() and (kept.matrix > 0).any(axis=0).all():
            tried.append(_descend(kept, pure=pure))
    return min(tried, key=lambda solution: solution.value)


def _descend(design: TreeSets, *, pure: bool) -> Solution:
    M, p = design.matrix, 2 if pure else 1
    alone = (M > 0).sum(axis=0) == 1
    s = np.array([(design.k * (row > 0) / np.where(row > 0, row, 1.0)).sum() for row in M])
    start = np.log(np.maximum((LAPLACE if pure else GAUSSIAN).best_budgets(s, np.ones(len(M))), 1e-12))
    if not alone.all():
        starts = np.stack([start - start.max(), np.zeros(len(M)), np.log((M > 0).sum(axis=1))])
        points, values = minimise(lambda t: _objective(t, M, design.k, p), starts, steps=_STEPS)
        start = points[int(np.argmin(values))]
    e = np.exp(start - start.max())
    e = np.maximum(e, _LEAST)  # queries may not look at some spaces; tables are recovered whole
    return Solution(design, e, objective(design, e, pure=pure))


def objective(design: TreeSets, e: Floats, *, pure: bool) -> float:
    """The objective for budgets in proportion to e."""
    p = 2 if pure else 1
    return float(np.exp(_objective(np.log(e)[None], design.matrix, design.k, p)[0][0]))


def _objective(t: Floats, M: Floats, k: Floats, p: int) -> tuple[Floats, Floats]:
    e = np.exp(t - t.max(axis=1, keepdims=True))
    q, total = e**p, e.sum(axis=1)
    K = np.maximum(q @ M, UNSEEN)
    E = (k / K).sum(axis=1)
    pull = (k / K**2) @ M.T
    return p * np.log(total) + np.log(E), p * (e / total[:, None] - q * pull / E[:, None])


def decide(
    request: Request,
    design: TreeSets,
    *,
    strategy: str,
    budgets: Budgets,
    recovery: Recovery,
    details: Mapping[str, Any],
) -> TreeDesign:
    """Scale the budgets to the guarantee under the best proof; under replace-one the total is public."""
    shares = design.uniform
    if budgets == "optimal":
        solution = optimise(design, pure=request.privacy.is_pure)
        design, shares = solution.design, solution.budgets
    levels = design.levels
    if request.privacy.total_is_public:
        total = (levels == 0).all(axis=1)
        if not total.any():
            levels, shares = np.insert(levels, 0, 0, axis=0), np.insert(shares, 0, 1.0)
            total = np.insert(total, 0, True)
        shares = np.where(total, np.inf, shares)
    privacy = request.privacy

    def spent(values: Floats) -> Fraction:
        return row_cost(design.trees, design.wavelet, levels, values, privacy)

    plans = []
    for proof in calibrate.proofs(privacy, tables=None):
        extra = proof_variance(levels, privacy) if proof == "smoothing" else None
        values = fitted(shares, spent, privacy, proof, extra)
        plans.append(
            TreeDesign(
                request,
                strategy,
                budgets,
                recovery,
                proof,
                values,
                design.trees,
                design.wavelet,
                levels,
                details=dict(details),
            )
        )
    return plans[0] if len(plans) == 1 else min(plans, key=objective_value)
