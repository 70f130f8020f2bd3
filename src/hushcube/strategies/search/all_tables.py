"""Coverage by all 2^d tables of few attributes.

mag(A, C) depends on D = C - A alone, so threshold t admits the sets D with at most t cells:

    served_t(C) = sum over D inside C with cells(D) <= t of asked(C - D)

For falling t one D after the other is taken away: 3^d subtractions for all thresholds together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Final

import numpy as np

from hushcube.model.arrays import Ints
from hushcube.strategies.search.coverage import Coverage, Flags, counted

MOST_ATTRIBUTES: Final = 16
Index = tuple[int | slice, ...]


class AllTables(Coverage):
    """Every set of attributes is a table, numbered by its mask."""

    def __init__(self, cuboids: Sequence[int], sizes: Sequence[int], most_cells: int) -> None:
        self.masks = cuboids
        self._sizes = tuple(sizes)
        self._masks = np.array(cuboids, np.int64)
        every = np.ones(1)
        for size in sizes:  # floats: a domain may be huge, but does not wrap around
            every = np.concatenate([every, every * size])
        self._every = every
        self.tables = range(len(every))
        self.table_cells = np.minimum(every, 2.0**62).astype(np.int64)
        self.fits = every <= most_cells
        self.cells = self.table_cells[self._masks]
        self._shape = (2,) * len(self._sizes)
        self._half = len(sizes) // 2
        self._low, self._high = _corners(self._half), _corners(len(sizes) - self._half)
        self._kept: tuple[int, Ints, Ints] = 0, np.zeros(0, np.int64), np.zeros(0, np.int64)

    @cached_property
    def thresholds(self) -> Ints:
        """The cells of the sets D that leave room for a cuboid."""
        apart = _sums_inside(self._place(np.ones(len(self), np.int64)))[::-1] > 0
        return np.unique(self._every[apart & self.fits])[::-1].astype(np.int64)

    def number(self, mask: int) -> int:
        """The mask."""
        return mask

    def holds(self, table: int, cuboids: Ints) -> Flags:
        """By bits."""
        inside: Flags = (self._masks[cuboids] & ~table) == 0
        return inside

    def above(self, cuboids: Ints) -> Flags:
        """By bits."""
        union = np.bitwise_or.reduce(self._masks[cuboids], initial=0)
        holds: Flags = (np.arange(len(self._every)) & union) == union
        return holds & self.fits

    def gains(self, cuboids: Ints, weights: Ints, threshold: int) -> Ints:
        """By the way that is fastest for that many cuboids."""
        masks, weights = self._masks[cuboids], weights[cuboids]
        above = float((2.0 ** (len(self._sizes) - np.bitwise_count(masks).astype(np.float64))).sum())
        differences, admitted = self._at(threshold)
        arrays = 1 if threshold >= self.thresholds[0] else min(len(self.thresholds), 2 * math.sqrt(threshold))
        ways: tuple[tuple[float, Callable[[], Ints]], ...] = (  # each with about how many nanoseconds it takes
            (8.0 * len(masks) * len(differences), lambda: self._join(masks, weights, differences)),
            (15e3 * len(masks) + 5 * above, lambda: self._visit(masks, weights, admitted)),
            (1.2 * len(self._every) * len(self._sizes) * arrays, lambda: self._build(masks, weights, threshold)),
        )
        return np.where(self.fits, min(ways, key=itemgetter(0))[1](), 0)

    def falling_gains(self, weights: Ints, thresholds: Iterable[int]) -> Iterator[tuple[int, Ints]]:
        """All gains, from which one set D after the other is taken."""
        asked = self._place(weights)
        gains = _sums_inside(asked)
        at_table, at_cuboid = gains.reshape(self._shape), asked.reshape(self._shape)
        falling = np.argsort(-self._every, kind="stable")
        cells = self._every[falling]
        done = 0
        for threshold in thresholds:
            upto = int(np.searchsorted(-cells, -threshold, side="left"))
            for difference in falling[done:upto].tolist():
                with_all, with_none = self._corner(difference)
                at_table[with_all] -= at_cuboid[with_none]
            done = max(done, upto)
            yield threshold, np.where(self.fits, gains, 0)

    def _at(self, threshold: int) -> tuple[Ints, Ints]:
        """The sets D that a threshold admits, as a list and as ones on the lattice; kept while it stays the same."""
        if self._kept[0] != threshold:
            admitted = self._every <= threshold
            self._kept = threshold, np.flatnonzero(admitted), admitted.astype(np.int64).reshape(self._shape)
        return self._kept[1:]

    def _place(self, weights: Ints) -> Ints:
        asked = np.zeros(len(self._every), np.int64)
        asked[self._masks] = weights
        return asked

    def _corner(self, mask: int) -> tuple[Index, Index]:
        """Indices of the masks that have all attributes of one, and of those that have none of them."""
        (a, b), (c, d) = self._high[mask >> self._half], self._low[mask & ((1 << self._half) - 1)]
        return a + c, b + d

    def _join(self, masks: Ints, weights: Ints, differences: Ints) -> Ints:
        """Every cuboid with every D apart from it."""
        cuboid, difference = np.nonzero((masks[:, None] & differences) == 0)
        return counted(masks[cuboid] | differences[difference], weights[cuboid], len(self._every))

    def _visit(self, masks: Ints, weights: Ints, admitted: Ints) -> Ints:
        """For each cuboid the corner of the lattice above it."""
        gains = np.zeros(len(self._every), np.int64)
        at_table = gains.reshape(self._shape)
        for mask, weight in zip(masks.tolist(), weights.tolist(), strict=True):
            with_all, with_none = self._corner(mask)
            at_table[with_all] += admitted[with_none] if weight == 1 else weight * admitted[with_none]
        return gains

    def _build(self, masks: Ints, weights: Ints, threshold: int) -> Ints:
        """All cuboids at once, D attribute by attribute: arrays by the cells still free, equal numbers share one."""
        asked = counted(masks, weights, len(self._every))
        if threshold >= self.thresholds[0]:  # every D in a table that fits
            return _sums_inside(asked)
        free = {threshold: asked}
        rest = math.prod(self._sizes)
        for axis in sorted(range(len(self._sizes)), key=lambda i: -self._sizes[i]):
            size = self._sizes[axis]
            rest //= size
            after: dict[int, Ints] = {}
            for cells, values in free.items():
                least = min(cells, rest)
                after[least] = after[least] + values if least in after else values
                if size <= cells:
                    least = min(cells // size, rest)
                    sums = after[least].copy() if least in after else np.zeros_like(values)
                    sums.reshape(-1, 2, 1 << axis)[:, 1] += values.reshape(-1, 2, 1 << axis)[:, 0]
                    after[least] = sums
            free = after
        total: Ints = np.sum(list(free.values()), axis=0)
        return total


def _corners(d: int) -> list[tuple[Index, Index]]:
    """For each mask of d bits, in an array of shape (2, ..., 2): where all its bits are set, and where none is."""
    result: list[tuple[Index, Index]] = []
    for mask in range(1 << d):
        bits = [mask >> axis & 1 for axis in range(d - 1, -1, -1)]
        result.append((tuple(1 if b else slice(None) for b in bits), tuple(0 if b else slice(None) for b in bits)))
    return result


def _sums_inside(values: Ints) -> Ints:
    """For each mask, the sum over its submasks (zeta transform).

    >>> _sums_inside(np.array([1, 10, 100, 1000])).tolist()
    [1, 11, 101, 1111]
    """
    result = values.copy()
    width = 1
    while width < len(values):
        halves = result.reshape(-1, 2, width)
        halves[:, 1] += halves[:, 0]
        width *= 2
    return result
