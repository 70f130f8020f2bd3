"""Measure the nodes of a tree over ordered attributes, every level with its own budget; least squares combines them.

A range is a sum of few nodes, and what the levels say about the same people is pooled. The fan-out is given, or
searched: depths from 1 (the cells alone) to log2 n, first alike for all attributes and then one by one, by the
objective that the budgets reach.   [Hay et al. 2010; Qardaji et al. 2013, fan-outs; Yaroslavtsev et al. 2013, III]

Departs from the papers: budgets of the levels are optimised for least squares, not for the canonical nodes of a range;
fan-outs of a tree may differ by one, so that few phantom cells are added; trees over several attributes and several
tables are combined.

Budgets, those of `wavelet` too: with k_l the objective's weight on space l (a level of each attribute) and sets m that
see it,

    minimise    (sum_m e_m)^p  sum_l k_l / K_l,     K_l = sum_{m sees l} e_m^p / nodes(m)

p = 2 for Laplace noise (budget e, variance 2/e²), p = 1 for Gaussian noise (variance 1/(2e)). Where every space is
seen by one set the optimum is closed: e_m ∝ (sum_{l seen} k_l nodes(m))^(1/(p+1))   [Yaroslavtsev et al., Theorem 3.4].
Otherwise it is found by descent on log e, from several starts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any, Final

import numpy as np

from hushcube.costs.calibrate import Proof, smoothing_variance
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.designs.tree.design import TreeDesign, leaves_fit, maximal, row_cost
from hushcube.designs.tree.errors import form_energies, outer
from hushcube.errors import NotApplicable
from hushcube.lattice.trees import Tree
from hushcube.model.arrays import Bools, Floats, Ints, Marginal
from hushcube.model.form import RangeTable
from hushcube.model.noise import Law, law_of
from hushcube.options import option, whole
from hushcube.strategies.search.descent import minimise
from hushcube.strategies.search.supports import UNSEEN
from hushcube.strategies.strategy import Strategy, best_fit, best_of

Space = tuple[int, ...]
"""A level of each attribute's tree."""
MOST_TABLES: Final = 1_000  # the most marginals that may be asked for beside ranges
_MOST_PAIRS: Final = 2**24  # sets times spaces that are weighed
_STEPS: Final = 400
_LEAST: Final = 1e-6  # the smallest budget of a measured set, relative to the largest


class Trees(Strategy):
    """What strategies share that measure levels of trees along the attributes with ranges."""

    makes = (TreeDesign,)

    def concerns(self, request: Request) -> bool:
        """Only for ranges."""
        return bool(ranged(request))

    def accepts(self, request: Request) -> str | None:
        """Refuse what has no ranges, or very many tables beside them."""
        if not ranged(request):
            return "no range over an ordered attribute is asked for"
        if len(request.marginals) > MOST_TABLES:
            return f"more than {MOST_TABLES:,} tables are asked for beside the ranges"
        return None

    def measure(
        self,
        request: Request,
        budgets: Budgets,
        recovery: Recovery,
        find: Callable[[Budgets], Solution | None],
        details: Callable[[Sequence[Tree]], dict[str, Any]] = lambda _: {},
    ) -> Design:
        """What is found for such budgets; or for even ones, where their own choice of trees ends up better.

        Optimal ones are found for the total after generalised least squares, whatever the objective and the recovery.
        """
        rules: Sequence[Budgets] = ("optimal", "uniform") if budgets == "optimal" else ("uniform",)
        found = [solution for rule in rules if (solution := find(rule)) is not None]
        if not found:
            raise NotApplicable(self.name, "too many levels, or too large tables, would be measured")
        return best_of([self._scaled(request, budgets, recovery, solution, details) for solution in found])

    def _scaled(
        self,
        request: Request,
        budgets: Budgets,
        recovery: Recovery,
        found: Solution,
        details: Callable[[Sequence[Tree]], dict[str, Any]],
    ) -> Design:
        """Scale the budgets to the guarantee under the best proof; under replace-one the total is public."""
        privacy, levels, shares = request.privacy, found.sets.levels, found.budgets
        if privacy.total_is_public:
            if levels.any(axis=1).all():
                levels, shares = np.insert(levels, 0, 0, axis=0), np.insert(shares, 0, 1.0)
            shares = np.where(levels.any(axis=1), shares, np.inf)
        own, told = (found.sets.trees, found.sets.wavelet, levels), details(found.sets.trees)

        def make(proof: Proof, fit: Floats) -> TreeDesign:
            return TreeDesign(request, self.name, budgets, recovery, proof, fit, *own, details=told)

        cost, smooth = partial(row_cost, *own, privacy=privacy), partial(smoothing_variance, privacy, len(levels))
        return best_fit(privacy, [shares], cost, smooth, make)


@dataclass(frozen=True, kw_only=True)
class Hierarchy(Trees):
    """Trees along the attributes with ranges."""

    name = "hierarchy"
    measures = "the nodes of trees over ordered attributes"

    fan_out: int | None = option(
        None, "children of a node; the best are searched unless given", takes="NUMBER", read=whole(2)
    )

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """One measured set for each level of each attribute with ranges."""
        if recovery == "none":
            raise NotApplicable(self.name, "nodes of several levels are combined by least squares: use gls or ols")
        sizes, names, attributes = request.schema.sizes, request.schema.names, sorted(ranged(request))

        def find(rule: Budgets) -> Solution | None:
            if self.fan_out is None:
                return _best_depths(request, rule, attributes)
            return solved(request, rule, {i: Tree.with_fan_out(sizes[i], self.fan_out) for i in attributes})

        def details(trees: Sequence[Tree]) -> dict[str, Any]:
            return {"fan_outs": {names[i]: list(trees[i].fan_outs) for i in attributes}}

        return self.measure(request, budgets, recovery, find, details)


def _best_depths(request: Request, budgets: Budgets, attributes: Sequence[int]) -> Solution | None:
    """The best depths found: the best one for all attributes alike, then improved one attribute at a time."""
    sizes = [request.schema.sizes[i] for i in attributes]
    deepest = [(size - 1).bit_length() for size in sizes]

    @cache
    def found(depths: tuple[int, ...]) -> Solution | None:
        return solved(request, budgets, dict(zip(attributes, map(Tree.of_depth, sizes, depths), strict=True)))

    def value(depths: tuple[int, ...]) -> float:
        solution = found(depths)
        return math.inf if solution is None else solution.value

    best = min((tuple(min(depth, most) for most in deepest) for depth in range(1, max(deepest) + 1)), key=value)
    least = math.inf
    while value(best) < least * (1 - 1e-9):
        least = value(best)
        for at, most in enumerate(deepest):
            best = min(((*best[:at], depth, *best[at + 1 :]) for depth in range(1, most + 1)), key=value)
    return found(best)


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
    levels: Ints
    spaces: Ints
    k: Floats
    """The objective's weight on each space: it is sum_l k_l / K_l at unit noise."""
    finest: Bools
    """The sets that hold the cells of a table."""

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


@dataclass(frozen=True)
class Solution:
    """Sets that are worth measuring, their budgets (up to scale), and the objective that they reach."""

    sets: TreeSets
    budgets: Floats
    value: float


def solved(request: Request, budgets: Budgets, trees: dict[int, Tree], *, wavelet: bool = False) -> Solution | None:
    """Budgets for the levels of these trees, with the cells of other attributes; None where that is too much.

    Optimal ones are the best for all sets, for those that got a fair share of them, or for the finest ones alone.
    """
    sets, law = _sets(request, trees, wavelet=wavelet), law_of(request.privacy)
    if sets is None:
        return None
    if budgets == "uniform":
        return _reached(sets, np.ones(len(sets.levels)), law)
    first = _descend(sets, law)
    supports = [first.budgets > share * first.budgets.max() for share in (1e-3, 1e-2, 1e-1)]
    tried = [first]
    for keep in (*supports, sets.finest):
        kept = replace(sets, levels=sets.levels[keep], finest=sets.finest[keep])
        if not keep.all() and keep.any() and (kept.matrix > 0).any(axis=0).all():
            tried.append(_descend(kept, law))
    return min(tried, key=lambda solution: solution.value)


def _sets(request: Request, given: dict[int, Tree], *, wavelet: bool) -> TreeSets | None:
    """All levels of the trees of ranged attributes, with the cells of the others; None where that is too much."""
    trees = tuple(given.get(i, Tree(n, (n,))) for i, n in enumerate(request.schema.sizes))
    if not leaves_fit(request, trees):
        return None
    sets: dict[Space, bool] = {}
    for carrier in maximal(request):
        depths = [tree.depth if i in carrier else 0 for i, tree in enumerate(trees)]
        axes = [range(depth + 1) if i in given else [depth] for i, depth in enumerate(depths)]
        sets |= dict.fromkeys(product(*axes), False)
        sets[tuple(depths)] = True
    weights = _space_weights(request, trees)
    if len(sets) * len(weights) > _MOST_PAIRS:
        return None
    spaces, k = np.array(list(weights), dtype=np.int64), np.array(list(weights.values()))
    levels, finest = np.array(list(sets), dtype=np.int64), np.array(list(sets.values()))
    return TreeSets(trees, tuple(wavelet and i in given for i in range(len(trees))), levels, spaces, k, finest)


def _space_weights(request: Request, trees: Sequence[Tree]) -> dict[Space, float]:
    """k_l = sum over tables on A of weight times sum ||P_l q||² / leaves(A), never less than carriers weigh."""
    result: dict[Space, float] = defaultdict(float)
    least: dict[Space, float] = defaultdict(float)

    def add(into: dict[Space, float], A: Marginal, weight: float, energies: Floats) -> None:
        for at, energy in np.ndenumerate(energies * weight / math.prod(trees[i].leaves for i in A)):
            level = dict(zip(A, at, strict=True))
            into[tuple(level.get(i, 0) for i in range(len(trees)))] += float(energy)

    weights = zip(request.weights.tolist(), request.least_weights.tolist(), strict=True)
    for A, (own, little) in zip(request.marginals, weights, strict=True):
        energies = outer([trees[i].cell_energies for i in A])
        add(result, A, own, energies)
        add(least, A, little, energies)
    for form, weight in request.weighted_forms:
        add(result, form.marginal, weight, form_energies(form, [trees[i] for i in form.marginal]))
    return {space: max(k, least[space]) for space, k in result.items()}


def _descend(sets: TreeSets, law: Law) -> Solution:
    M = sets.matrix
    s = np.array([(sets.k * (row > 0) / np.where(row > 0, row, 1.0)).sum() for row in M])
    start = np.log(np.maximum(law.best_budgets(s, np.ones(len(M))), 1e-12))
    if ((M > 0).sum(axis=0) != 1).any():
        starts = np.stack([start - start.max(), np.zeros(len(M)), np.log((M > 0).sum(axis=1))])
        points, values = minimise(lambda t: _objective(t, M, sets.k, law.power), starts, steps=_STEPS)
        start = points[int(np.argmin(values))]
    e = np.exp(start - start.max())
    return _reached(sets, np.maximum(e, _LEAST), law)  # queries may not look at some spaces; tables are recovered whole


def _reached(sets: TreeSets, e: Floats, law: Law) -> Solution:
    """What budgets in proportion to e come to."""
    return Solution(sets, e, float(np.exp(_objective(np.log(e)[None], sets.matrix, sets.k, law.power)[0][0])))


def _objective(t: Floats, M: Floats, k: Floats, p: int) -> tuple[Floats, Floats]:
    e = np.exp(t - t.max(axis=1, keepdims=True))
    q, total = e**p, e.sum(axis=1)
    K = np.maximum(q @ M, UNSEEN)
    E = (k / K).sum(axis=1)
    pull = (k / K**2) @ M.T
    return p * np.log(total) + np.log(E), p * (e / total[:, None] - q * pull / E[:, None])
