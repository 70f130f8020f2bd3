"""Budgets for many candidate supports at once, by descent on their logarithms.

For pure epsilon and tables A with Laplace budgets e_A (sum 1), generalised least squares gives the total error

    F(e) = 2 (sum_A e_A)² sum_B k_B / K_B,   K_B = sum_{A >= B} e_A² / cells(A),   k_B = m_B sum_{W >= B} a_W / cells(W)

over the workload's residual spaces B. In t = log e:   dlog F / dt_A = 2 e_A / sum e - 2 e_A² (M (k/K²))_A / sum(k/K),
with M_AB = [B <= A] / cells(A). Not convex: the derivative at e_A = 0 never revives a table, so supports are searched.

Randomised greedy covers: few tables such that every marginal asked for lies in one that is not too much larger.

A table C serves A where A is inside C and cells(C) / cells(A) is at most a threshold, the magnification of A's noise.
Each threshold gives other covers, from the workload itself (1) to the full table.   [Ding et al. 2011, Algorithm 1]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, compress
from typing import Final

import numpy as np

from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.noise import LAPLACE, Law
from hushcube.strategies.search.descent import Objective, minimise

Tables = tuple[Marginal, ...]
Start = tuple[Tables, Floats]
"""Tables and the logarithms of their budgets."""
_ABSENT: Final = -80.0  # the log-budget of a padding table
UNSEEN: Final = 1e-120
"""K of a space that no table sees: far below any other, and so that k / K² fits a float for all weights and queries."""
NEGLIGIBLE: Final = 2e-3  # tables with a smaller budget, in units of the largest, are left out
_MOST_REMEMBERED: Final = 2**23  # numbers in the remembered rows of tables: 64 MB
THRESHOLDS: Final = 24  # magnifications for which covers are tried
_MOST_CANDIDATES: Final = 4096  # tables from which covers are chosen: all, or so many at random


class GreedyCovers:
    """Covers of some marginals by candidate tables."""

    def __init__(self, marginals: Sequence[Marginal], candidates: Sequence[Marginal], sizes: Floats) -> None:
        self._candidates = candidates
        held, having = (_membership(sets, len(sizes)) for sets in (marginals, candidates))
        asked, cells = (np.where(rows > 0, sizes, 1.0).prod(axis=1) for rows in (held, having))
        inside = having @ held.T == held.sum(axis=1)
        self._magnification = np.where(inside, cells[:, None] / asked, np.inf)
        self._weight = np.log2(1 + asked)

    def thresholds(self, most: int) -> Floats:
        """Distinct magnifications, thinned evenly to at most that many."""
        found = np.unique(self._magnification[np.isfinite(self._magnification)])
        thinned: Floats = found[np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).astype(int))]
        return thinned

    def covers(self, threshold: float, repeats: int, random: np.random.Generator) -> Iterator[Tables]:
        """Greedy covers with randomly perturbed gains; each is minimal in that no later table was needed."""
        serves = self._magnification <= threshold
        counted = serves.astype(np.float64)
        for _ in range(repeats):
            weight = self._weight * np.exp(0.3 * random.standard_normal(len(self._weight)))
            taste = np.exp(0.2 * random.standard_normal(len(serves)))
            gains = counted @ weight
            still_open = np.ones(len(weight), bool)
            chosen: list[int] = []
            while still_open.any():
                best = int(np.argmax(gains * taste))
                served = np.flatnonzero(serves[best] & still_open)
                if not len(served):
                    break
                chosen.append(best)
                still_open[served] = False
                gains -= counted[:, served] @ weight[served]
            yield tuple(self._candidates[i] for i in chosen)


def all_tables(sizes: Floats) -> list[Marginal]:
    """Every set of attributes that may be measured."""
    every = (c for k in range(1, len(sizes) + 1) for c in combinations(range(len(sizes)), k))
    return _measurable(every, sizes)


def covers_of(
    marginals: Sequence[Marginal], sizes: Floats, repeats: int, random: np.random.Generator
) -> list[list[Tables]]:
    """Some covers for each of some thresholds: by all tables, or by those asked for and random ones."""
    if 2 ** len(sizes) <= _MOST_CANDIDATES:
        candidates = all_tables(sizes)
    else:
        members = random.random((_MOST_CANDIDATES, len(sizes))) < random.random((_MOST_CANDIDATES, 1))
        drawn = (tuple(np.flatnonzero(row).tolist()) for row in members if row.any())
        candidates = _measurable(dict.fromkeys((*marginals, *drawn)), sizes)
    covers = GreedyCovers(marginals, candidates, sizes)
    return [list(covers.covers(threshold, repeats, random)) for threshold in covers.thresholds(THRESHOLDS).tolist()]


def _measurable(tables: Iterable[Marginal], sizes: Floats) -> list[Marginal]:
    return [table for table in tables if sizes[list(table)].prod() <= MAX_TABLE_CELLS]


@dataclass(frozen=True)
class Support:
    """Tables with budgets (their sum is 1) and the total error at epsilon 1, add-remove, weights counted."""

    sets: Tables
    budgets: Floats
    error: float

    @property
    def start(self) -> Start:
        """Where to descend from."""
        return self.sets, np.log(self.budgets)


def evenly(supports: Sequence[Tables]) -> list[Start]:
    """Starts with equal budgets."""
    return [(sets, np.zeros(len(sets))) for sets in supports]


@dataclass(frozen=True)
class Stage:
    """Steps of descent, and the share of supports that go on after them."""

    steps: int
    kept: float = 1.0


class SupportProblem:
    """The search's objective for one request."""

    def __init__(self, request: Request) -> None:
        self.sizes = np.asarray(request.schema.sizes, dtype=np.float64)
        self.k = request.space_weights
        self._members = _membership(list(request.spaces), len(self.sizes))
        self._row_of: dict[Marginal, int] = {}
        self._rows = np.zeros((1, len(self.k)))

    def matrix(self, sets: Sequence[Marginal]) -> Floats:
        """M_AB for some tables."""
        rows = _membership(sets, len(self.sizes))
        inside = rows @ self._members.T == self._members.sum(axis=1)
        return np.asarray(inside / np.where(rows > 0, self.sizes, 1.0).prod(axis=1)[:, None])

    def optimise(self, starts: Sequence[Start], *, steps: int) -> list[Support]:
        """Descend on each support."""
        M, t = self.padded(starts)
        return self._supports(starts, M, self.descend(M, t, steps)[0])

    def optimise_shared(self, sets: Sequence[Marginal], starts: Floats, *, steps: int) -> list[Support]:
        """Descend from several starts on one support."""
        M = self.matrix(sets)
        t = self.descend(M, starts, steps)[0]
        return self._supports([(tuple(sets), each) for each in starts], M, t)

    def race(self, groups: Sequence[Sequence[Start]], stages: Sequence[Stage]) -> list[list[Support]]:
        """Descend a little from all starts of each group, and from its promising ones further; from equal ones once.

        Starts of the same value are the same but for the names of attributes; those that miss a space are left out.
        """
        result: list[list[Support]] = [[] for _ in groups]
        starts = [start for group in groups for start in group]
        if not starts:
            return result
        counts = np.array([len(group) for group in groups])
        group = np.repeat(np.arange(len(groups)), counts)
        M, t = self.padded(starts)
        complete = (M.max(axis=1) > 0)[:, self.k > 0].all(axis=1)
        values = np.where(complete, self.objective(M)(t)[0], np.inf)
        rows = np.unique(values.round(10), return_index=True)[1]
        rows = rows[complete[rows]]
        M, t = M[rows], t[rows]
        for stage in stages if len(rows) else ():
            t, values = self.descend(M, t, stage.steps)
            best = np.lexsort((values, group[rows]))
            of = group[rows[best]]
            best = best[np.arange(len(best)) - np.searchsorted(of, of) < np.maximum(counts[of] * stage.kept, 1)]
            rows, M, t = rows[best], M[best], t[best]
        for i, support in zip(group[rows].tolist(), self._supports([starts[i] for i in rows], M, t), strict=True):
            result[i].append(support)
        return result

    def padded(self, starts: Sequence[Start]) -> tuple[Floats, Floats]:
        """M and log-budgets of each support, padded; the rows of M are remembered, for tables come again and again."""
        if self._rows.size > _MOST_REMEMBERED:
            self._row_of, self._rows = {}, self._rows[:1]
        new = list(dict.fromkeys(s for sets, _ in starts for s in sets if s not in self._row_of))
        first, end = len(self._row_of) + 1, len(self._row_of) + 1 + len(new)
        if end > len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros((end, len(self.k)))])
        self._row_of.update(zip(new, range(first, end), strict=True))
        self._rows[first:end] = self.matrix(new)
        width = max(len(sets) for sets, _ in starts)
        at, t = np.zeros((len(starts), width), np.int64), np.full((len(starts), width), _ABSENT)
        for i, (sets, logs) in enumerate(starts):
            at[i, : len(sets)], t[i, : len(sets)] = [self._row_of[s] for s in sets], logs
        return self._rows[at], t

    def descend(self, M: Floats, t: Floats, steps: int) -> tuple[Floats, Floats]:
        """Minimise log F from each row of t; M is (tables, spaces), or one such matrix for each row."""

        def narrowed(rows: Ints) -> Objective:
            return self.objective(M if M.ndim == 2 else M[rows])

        return minimise(self.objective(M), t, steps=steps, narrowed=narrowed)

    def objective(self, M: Floats) -> Objective:
        """log F and its gradient, for each row with its own M or for all with one."""
        k, Mt = self.k, np.swapaxes(M, -1, -2)

        def objective(t: Floats) -> tuple[Floats, Floats]:
            e = np.exp(t - t.max(axis=1, keepdims=True))  # F does not depend on the scale
            q = e**2
            total = e.sum(axis=1)
            K = np.maximum(_times(q, M), UNSEEN)
            shares = k / K
            E = shares.sum(axis=1)
            pull = _times(shares / K, Mt)
            value = np.log(2 * total**2 * E)
            return value, 2 * e / total[:, None] - 2 * q * pull / E[:, None]

        return objective

    def _supports(self, starts: Sequence[Start], M: Floats, t: Floats) -> list[Support]:
        """The tables that still matter, their budgets, and what they really achieve."""
        e = np.exp(t - t.max(axis=1, keepdims=True))
        e[e <= NEGLIGIBLE] = 0.0
        e /= e.sum(axis=1, keepdims=True)
        needed = self.k > 0
        K = _times(e**2, M)[:, needed]
        with np.errstate(divide="ignore"):
            errors = 2 * (self.k[needed] / K).sum(axis=1)
        return [
            Support(tuple(s for s, b in zip(sets, row, strict=False) if b > 0), row[row > 0], error)
            for (sets, _), row, error in zip(starts, e, errors.tolist(), strict=True)
        ]


def optimise_own_tables(request: Request, *, steps: int) -> Support:
    """Descend from the cube-root budgets on the workload's own tables; those whose budget vanishes are left out."""
    start = LAPLACE.best_budgets(request.energies, np.ones(len(request.marginals)))
    found = optimise_tables(request.marginals, request.spaces, request.space_weights, start, steps=steps)
    kept = found.budgets > UNSEEN
    return Support(tuple(compress(found.sets, kept)), found.budgets[kept], found.error)


def optimise_tables(
    tables: Family, spaces: Family, k: Floats, start: Floats, *, steps: int, law: Law = LAPLACE
) -> Support:
    """Descend from positive budgets on given tables, by subset sums instead of matrices.

    F as above with e^p for e² and (sum e)^p for (sum e)², p = 2 for Laplace and 1 for Gaussian noise: there e is w_A.
    """
    p = law.power
    unit = float(law.formula(np.ones(())))

    def objective(t: Floats) -> tuple[Floats, Floats]:
        e = np.exp(t[0] - t.max())
        K = np.maximum(tables.sum_over_supersets(spaces, e**p / tables.cells), UNSEEN)
        E = (k / K).sum()
        pull = tables.sum_over_subsets(spaces, k / K**2) / tables.cells
        value = np.log(unit * e.sum() ** p * E)
        return np.array([value]), (p * e / e.sum() - p * e**p * pull / E)[None]

    t, value = minimise(objective, np.log(start)[None], steps=steps)
    e = np.exp(t[0] - t.max())
    return Support(tuple(tables), e / e.sum(), float(np.exp(value[0])))


def _times(x: Floats, M: Floats) -> Floats:
    """Each row of x times M, or times a matrix of its own."""
    return x @ M if M.ndim == 2 else (x[:, None, :] @ M)[:, 0]


def _membership(sets: Sequence[Marginal], d: int) -> Floats:
    rows = np.zeros((len(sets), d))
    for i, s in enumerate(sets):
        rows[i, list(s)] = 1.0
    return rows
