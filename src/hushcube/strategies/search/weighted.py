"""Coverage in which the variance of some cuboids counts more: table C serves A at threshold t where w_A mag(A, C) <= t.

Cuboids of one weight are served as before, at t / w. So whatever selects by magnifications selects by weighted ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

import numpy as np

from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.strategies.search.coverage import FAR, Coverage
from hushcube.strategies.search.cuboids import MOST_THRESHOLDS, whole

_LARGEST: Final = 2**30  # of weights: times the magnifications of tables that can be measured they fit 64 bits
_MOST_CLASSES: Final = 16  # distinct weights; of more, each is rounded up to one of as many


def weighted(coverage: Coverage, weights: Floats) -> Coverage:
    """The coverage with weights of its cuboids; itself where they are all the same.

    >>> from hushcube.strategies.search.coverage import coverage_of
    >>> cube = weighted(coverage_of([1, 2, 3], sizes=(2, 3), most_cells=10), np.array([0.5, 1.5, 0.5]))
    >>> cube.own.tolist(), cube.magnifications(3).tolist(), cube.thresholds.tolist()
    ([1, 3, 1], [3, 6, 1], [9, 6, 3])
    """
    scaled = _integers(weights) if len(weights) else np.ones(0, np.int64)
    return coverage if scaled.max(initial=1) == scaled.min(initial=1) else Weighted(coverage, scaled)


def _integers(weights: Floats) -> Ints:
    """Weights in proportion, rounded up where they are too fine or too many."""
    scaled = whole(weights)
    if scaled.max() > _LARGEST:
        scaled = np.ceil(scaled / scaled.max() * _LARGEST).astype(np.int64)
    if len(np.unique(scaled)) > _MOST_CLASSES:
        classes = np.ceil(np.geomspace(scaled.min(), scaled.max(), _MOST_CLASSES) * (1 - 1e-12)).astype(np.int64)
        scaled = classes[np.searchsorted(classes, scaled)]
    result: Ints = scaled // np.gcd.reduce(scaled)
    return result


class Weighted(Coverage):
    """Cuboids with whole weights, at least two of them different."""

    def __init__(self, plain: Coverage, weights: Ints) -> None:
        self._plain, self._weights = plain, weights
        self.masks, self.tables, self._words = plain.masks, plain.tables, plain._words
        self.cells, self.table_cells, self.fits = plain.cells, plain.table_cells, plain.fits

    @cached_property
    def own(self) -> Ints:
        """The weights."""
        return self._weights

    @cached_property
    def thresholds(self) -> Ints:
        """Weighted magnifications that the heaviest cuboid's own table can have at all; of very many, some."""
        every = np.unique(np.unique(self._weights)[:, None] * self._plain.thresholds)[::-1]
        every = every[every >= self._weights.max()]
        most = min(len(every), MOST_THRESHOLDS)
        some: Ints = every[np.linspace(0, len(every) - 1, most).astype(int)]
        return some

    def gains(self, cuboids: Ints, weights: Ints, threshold: int) -> Ints:
        """The sum over weights."""
        of_each = self._weights[cuboids]
        classes = [(weight, cuboids[of_each == weight]) for weight in np.unique(of_each).tolist()]
        none = np.zeros(len(self.tables), np.int64)
        return sum((self._plain.gains(some, weights, threshold // weight) for weight, some in classes), none)

    def falling_gains(self, weights: Ints, thresholds: Iterable[int]) -> Iterator[tuple[int, Ints]]:
        """The sum over weights, of which each falls."""
        falling = list(thresholds)
        runs = [
            self._plain.falling_gains(np.where(self._weights == weight, weights, 0), [t // weight for t in falling])
            for weight in np.unique(self._weights).tolist()
        ]
        for threshold, *parts in zip(falling, *runs, strict=True):
            yield threshold, np.sum([gains for _, gains in parts], axis=0)

    def magnifications(self, table: int) -> Ints:
        """w_A mag(A, C)."""
        found = self._plain.magnifications(table)
        return np.where(found == FAR, FAR, np.where(found == FAR, 0, found) * self._weights)

    def serves(self, table: int, cuboids: Ints, threshold: int) -> Bools:
        """Which of some cuboids a table serves."""
        near: Bools = self.magnifications(table)[cuboids] <= threshold
        return near
