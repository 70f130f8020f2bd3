"""Randomised greedy covers: few tables such that every marginal asked for lies in one that is not too much larger.

A table C serves A where A is inside C and cells(C) / cells(A) is at most a threshold, the magnification of A's noise.
Each threshold gives other covers, from the workload itself (1) to the full table.   [Ding et al. 2011, Algorithm 1]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hushcube.model.arrays import Floats
from hushcube.model.marginal import Marginal


class GreedyCovers:
    """Covers of some marginals by candidate tables."""

    def __init__(self, marginals: Sequence[Marginal], candidates: Sequence[Marginal], sizes: Floats) -> None:
        self._candidates = candidates
        cells = np.array([np.prod(sizes[list(c)]) for c in candidates])
        asked = np.array([np.prod(sizes[list(m)]) for m in marginals])
        held, having = (_membership(sets, len(sizes)) for sets in (marginals, candidates))
        inside = having @ held.T == held.sum(axis=1)
        self._magnification = np.where(inside, cells[:, None] / asked, np.inf)
        self._weight = np.log2(1 + asked)

    def thresholds(self, most: int) -> Floats:
        """Distinct magnifications, thinned evenly to at most that many."""
        found = np.unique(self._magnification[np.isfinite(self._magnification)])
        thinned: Floats = found[np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).astype(int))]
        return thinned

    def covers(self, threshold: float, repeats: int, random: np.random.Generator) -> Iterator[tuple[Marginal, ...]]:
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


def _membership(sets: Sequence[Marginal], attributes: int) -> Floats:
    rows = np.zeros((len(sets), attributes))
    for row, members in zip(rows, sets, strict=True):
        row[list(members)] = 1.0
    return rows
