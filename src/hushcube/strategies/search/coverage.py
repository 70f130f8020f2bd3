"""Which cuboids can be read from which tables at which magnification of the noise: the material of selections.

    mag(A, C) = cells(C) / cells(A) for A inside C; table C serves A at threshold t where mag(A, C) <= t
                                                                                       [Ding et al. 2011, (1) and (4)]

Attributes are bits, sets of them are bit masks, magnifications are integers.

Of few attributes all 2^d tables are looked at. mag(A, C) depends on D = C - A alone, so threshold t admits the sets D
with at most t cells:

    served_t(C) = sum over D inside C with cells(D) <= t of asked(C - D)

For falling t the sets D are taken away: at most 3^d subtractions for all thresholds together.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations
from operator import itemgetter
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Bools, Floats, Ints

FAR: Final = np.iinfo(np.int64).max  # the magnification of a cuboid that is not inside
MOST_ATTRIBUTES: Final = 16
_MOST_JOINED: Final = 2**20  # cuboids times sets D that are compared at once
Index = tuple[int | slice, ...]
Numbers = TypeVar("Numbers", Ints, Floats)
MOST_CUBOIDS: Final = 2**14  # the most cuboids that tables are selected for
_MOST_PAIRS: Final = 2**28  # cuboids times tables: seconds of comparisons
_MOST_GROUPS: Final = 12


class Coverage(ABC):
    """Cuboids that are asked for, tables that may be measured (numbered by rising mask), and how they serve."""

    cells: Ints
    """Of the cuboids."""
    table_cells: Ints
    fits: Bools
    """The tables that may be measured."""

    def __init__(self, masks: Sequence[int], tables: Sequence[int], d: int) -> None:
        """Cuboids and tables of d attributes, as masks."""
        self.masks, self.tables = masks, tables
        self._words = list(zip(_words(masks, d), _words(tables, d), strict=True))

    def __len__(self) -> int:
        return len(self.masks)

    @cached_property
    def own(self) -> Ints:
        """What cuboids weigh: the magnification of each by its own table."""
        return np.ones(len(self), np.int64)

    def number(self, mask: int) -> int:
        """The number of the table with a mask."""
        return bisect_left(self.tables, mask)

    def holds(self, table: int, cuboids: Ints) -> Bools:
        """Which of some cuboids lie inside a table."""
        inside: Bools = np.logical_and.reduce([(asked[cuboids] & ~having[table]) == 0 for asked, having in self._words])
        return inside

    def above(self, cuboids: Ints) -> Bools:
        """The tables that may be measured and hold all of some cuboids."""
        unions = [(np.bitwise_or.reduce(asked[cuboids], initial=0), having) for asked, having in self._words]
        all_inside: Bools = np.logical_and.reduce([self.fits, *((union & ~having) == 0 for union, having in unions)])
        return all_inside

    @property
    @abstractmethod
    def thresholds(self) -> Ints:
        """The distinct magnifications, the largest first."""

    @abstractmethod
    def gains(self, cuboids: Ints, weights: Ints, threshold: int) -> Ints:
        """How much of the weight of some cuboids each table serves."""

    @abstractmethod
    def falling_gains(self, weights: Ints, thresholds: Iterable[int]) -> Iterator[tuple[int, Ints]]:
        """The same for all cuboids (and their weights) at falling thresholds; each array is good until the next."""

    def magnifications(self, table: int) -> Ints:
        """mag(A, C) of all cuboids A for one table C."""
        held = self.holds(table, np.arange(len(self)))
        return np.where(held, self.table_cells[table] // self.cells, FAR)

    def serves(self, table: int, cuboids: Ints, threshold: int) -> Bools:
        """Which of some cuboids a table serves."""
        near: Bools = self.table_cells[table] <= self.cells[cuboids] * threshold
        return near & self.holds(table, cuboids)


def _words(masks: Sequence[int], d: int) -> list[NDArray[np.uint64]]:
    """The masks' 64-bit words: the lowest of all, the next of all, ..."""
    return [np.array([mask >> at & (2**64 - 1) for mask in masks], np.uint64) for at in range(0, max(d, 1), 64)]


def counted(at: Ints, weights: Ints | Floats, length: int) -> Ints:
    """Weights summed by number: floats, exact below 2^53."""
    return np.bincount(at, weights, length).astype(np.int64)


class AllTables(Coverage):
    """Every set of attributes is a table, numbered by its mask."""

    def __init__(self, cuboids: Sequence[int], sizes: Sequence[int], most_cells: int) -> None:
        super().__init__(cuboids, range(1 << len(sizes)), len(sizes))
        self._sizes = tuple(sizes)
        self._masks = np.array(cuboids, np.int64)
        self._every = every = cells_of_all(sizes)
        self.table_cells = np.minimum(every, 2.0**62).astype(np.int64)
        self.fits = every <= most_cells
        self.cells = self.table_cells[self._masks]
        self._shape = (2,) * len(self._sizes)
        self._half = len(sizes) // 2
        self._low, self._high = _corners(self._half), _corners(len(sizes) - self._half)
        self._kept = 0, np.zeros(0, np.int64)  # a threshold and the sets D that it admits

    @cached_property
    def thresholds(self) -> Ints:
        """The cells of the sets D that leave room for a cuboid."""
        apart = sums_inside(counted(self._masks, np.ones(len(self)), len(self._every)))[::-1] > 0
        return np.unique(self._every[apart & self.fits])[::-1].astype(np.int64)

    def gains(self, cuboids: Ints, weights: Ints, threshold: int) -> Ints:
        """By all D at once, or attribute by attribute."""
        masks, weights = self._masks[cuboids], weights[cuboids]
        if self._kept[0] != threshold:
            self._kept = threshold, np.flatnonzero(self._every <= threshold)
        arrays = 1 if threshold >= self.thresholds[0] else min(len(self.thresholds), 2 * math.sqrt(threshold))
        ways = [*self._ways(masks, weights, self._kept[1])]
        whole = 1.2 * len(self._every) * len(self._sizes) * arrays
        ways.append((whole, lambda: self._build(masks, weights, threshold)))
        return np.where(self.fits, min(ways, key=itemgetter(0))[1](), 0)

    def falling_gains(self, weights: Ints, thresholds: Iterable[int]) -> Iterator[tuple[int, Ints]]:
        """All gains, from which the sets D between two thresholds are taken."""
        asked = np.flatnonzero(weights)
        masks, weights = self._masks[asked], weights[asked]
        gains = sums_inside(counted(masks, weights, len(self._every)))
        falling = np.argsort(-self._every, kind="stable")
        cells = -self._every[falling]
        done = 0
        for threshold in thresholds:
            upto = int(np.searchsorted(cells, -threshold, side="left"))
            if upto > done:
                gains -= min(self._ways(masks, weights, falling[done:upto]), key=itemgetter(0))[1]()
                done = upto
            yield threshold, np.where(self.fits, gains, 0)

    def _ways(self, masks: Ints, weights: Ints, differences: Ints) -> tuple[tuple[float, Callable[[], Ints]], ...]:
        """Ways to sum weights at the unions of cuboids and sets D apart from them, with about their nanoseconds."""
        ones = np.ones(len(differences), np.int64)
        return (
            (8.0 * len(masks) * len(differences), lambda: self._join(masks, weights, differences)),
            (self._cost(masks), lambda: self._visit(masks, weights, differences, ones)),
            (self._cost(differences), lambda: self._visit(differences, ones, masks, weights)),
        )

    def _join(self, masks: Ints, weights: Ints, differences: Ints) -> Ints:
        """Every cuboid with every D apart from it."""
        sums = np.zeros(len(self._every), np.int64)
        most = _MOST_JOINED // max(len(masks), 1)
        for some in np.split(differences, range(most, len(differences), most)):
            cuboid, difference = np.nonzero((masks[:, None] & some) == 0)
            sums += counted(masks[cuboid] | some[difference], weights[cuboid], len(sums))
        return sums

    def _visit(self, corners: Ints, times: Ints, masks: Ints, weights: Ints) -> Ints:
        """For each of some sets the corner of the lattice above it."""
        asked = counted(masks, weights, len(self._every)).reshape(self._shape)
        sums = np.zeros_like(asked)
        for mask, weight in zip(corners.tolist(), times.tolist(), strict=True):
            (a, b), (c, d) = self._high[mask >> self._half], self._low[mask & ((1 << self._half) - 1)]
            sums[a + c] += asked[b + d] if weight == 1 else weight * asked[b + d]  # all of its attributes, none of them
        return sums.ravel()

    def _cost(self, corners: Ints) -> float:
        """Of visits, in nanoseconds."""
        above = 2.0 ** (len(self._sizes) - np.bitwise_count(corners).astype(np.float64))
        return 15e3 * len(corners) + 5 * float(above.sum())

    def _build(self, masks: Ints, weights: Ints, threshold: int) -> Ints:
        """All cuboids at once, D attribute by attribute: arrays by the cells still free, equal numbers share one."""
        asked = counted(masks, weights, len(self._every))
        if threshold >= self.thresholds[0]:  # every D in a table that fits
            return sums_inside(asked)
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


def cells_of_all(sizes: Sequence[int]) -> Floats:
    """The cells of every set of attributes, by masks; floats, for a domain may be huge, but does not wrap around."""
    every = np.ones(1)
    for size in sizes:
        every = np.concatenate([every, every * size])
    return every


def sums_inside(values: Numbers) -> Numbers:
    """For each mask, the sum over its submasks (zeta transform).

    >>> sums_inside(np.array([1, 10, 100, 1000])).tolist()
    [1, 11, 101, 1111]
    """
    result = values.copy()
    width = 1
    while width < len(values):
        halves = result.reshape(-1, 2, width)
        halves[:, 1] += halves[:, 0]
        width *= 2
    return result


class ListedTables(Coverage):
    """Tables of a list, with all pairs of a table and a cuboid inside it."""

    def __init__(self, cuboids: Sequence[int], sizes: Sequence[int], most_cells: int, also: Sequence[int] = ()) -> None:
        super().__init__(cuboids, sorted({*listed(cuboids, sizes, most_cells), *also}), len(sizes))
        self.cells = np.array([_cells(mask, sizes) for mask in cuboids], np.int64)
        self.table_cells = np.array([_cells(mask, sizes) for mask in self.tables], np.int64)
        self.fits = np.ones(len(self.tables), bool)
        self._kept: tuple[int, Ints, Ints, Ints] = (0, self.cells, self.cells, self.cells)

    @cached_property
    def thresholds(self) -> Ints:
        """The magnifications of the pairs."""
        return np.unique(self._pairs[2])[::-1]

    def gains(self, cuboids: Ints, weights: Ints, threshold: int) -> Ints:
        """By the pairs of these cuboids."""
        table, cuboid, starts = self._at(threshold)
        ranges = [np.arange(starts[i], starts[i + 1]) for i in cuboids.tolist()]
        pairs = np.concatenate([np.zeros(0, np.int64), *ranges])
        return counted(table[pairs], weights[cuboid[pairs]], len(self.tables))

    def falling_gains(self, weights: Ints, thresholds: Iterable[int]) -> Iterator[tuple[int, Ints]]:
        """All gains, from which one pair after the other is taken."""
        table, cuboid, magnification = self._pairs
        falling = np.argsort(-magnification, kind="stable")
        table, weight, magnification = table[falling], weights[cuboid[falling]], magnification[falling]
        gains = np.zeros(len(self.tables), np.int64)
        np.add.at(gains, table, weight)
        done = 0
        for threshold in thresholds:
            upto = max(done, int(np.searchsorted(-magnification, -threshold, side="left")))
            np.subtract.at(gains, table[done:upto], weight[done:upto])
            done = upto
            yield threshold, gains

    def _at(self, threshold: int) -> tuple[Ints, Ints, Ints]:
        """The pairs that a threshold admits, and where those of each cuboid start; kept while it stays the same."""
        if self._kept[0] != threshold:
            table, cuboid, magnification = self._pairs
            admitted = np.flatnonzero(magnification <= threshold)
            starts = np.searchsorted(cuboid[admitted], np.arange(len(self) + 1))
            self._kept = threshold, table[admitted], cuboid[admitted], starts
        return self._kept[1:]

    @cached_property
    def _pairs(self) -> tuple[Ints, Ints, Ints]:
        """Tables, cuboids inside them, magnifications; by cuboids."""
        found = []
        for i in range(len(self)):
            tables = np.flatnonzero(self.above(np.array([i])))
            found.append((tables, np.full(len(tables), i)))
        table, cuboid = (np.concatenate(part) for part in zip(*found, strict=True))
        return table, cuboid, self.table_cells[table] // self.cells[cuboid]


def listed(cuboids: Sequence[int], sizes: Sequence[int], most_cells: int) -> list[int]:
    """The tables looked at beyond 16 attributes, by their masks.

    The cuboids themselves and the union of all; then unions of neighbouring attributes dealt into 2 to 12 groups of
    about equal numbers of cells; then unions of two cuboids, in order, as long as the pairs stay few enough.
    """
    everything = 0
    for mask in cuboids:
        everything |= mask
    found = dict.fromkeys([*cuboids, everything])
    for count in range(2, _MOST_GROUPS + 1):
        unions = [0]
        for group in _groups(everything, sizes, count):
            unions += [union | group for union in unions]
        found |= dict.fromkeys(unions)
    most = _MOST_PAIRS // len(cuboids)
    for a, b in combinations(cuboids, 2):
        if len(found) >= most:
            break
        found.setdefault(a | b)
    return sorted(mask for mask in found if _cells(mask, sizes) <= most_cells)


def _groups(everything: int, sizes: Sequence[int], count: int) -> list[int]:
    """Neighbouring attributes in groups of about equal numbers of cells: split evenly by logarithms."""
    attributes = [i for i in range(len(sizes)) if everything >> i & 1]
    logs = np.log2([sizes[i] for i in attributes])
    middle = np.cumsum(logs) - logs / 2
    masks = [0] * count
    for i, share in zip(attributes, (middle / logs.sum()).tolist(), strict=True):
        masks[min(int(share * count), count - 1)] |= 1 << i
    return [mask for mask in masks if mask]


def _cells(mask: int, sizes: Sequence[int]) -> int:
    """The cells of a mask, as a Python integer that cannot overflow."""
    result = 1
    while mask:
        low = mask & -mask
        result *= sizes[low.bit_length() - 1]
        mask ^= low
    return result


def coverage_of(cuboids: Sequence[int], sizes: Sequence[int], most_cells: int, also: Sequence[int] = ()) -> Coverage:
    """The coverage of distinct cuboids, given as masks, by tables of at most that many cells, some `also` among them.

    >>> coverage = coverage_of([0b011, 0b110], sizes=(2, 3, 4), most_cells=100)
    >>> coverage.cells.tolist(), coverage.thresholds.tolist()
    ([6, 12], [4, 2, 1])
    """
    if len(sizes) <= MOST_ATTRIBUTES:
        return AllTables(cuboids, sizes, most_cells)
    return ListedTables(cuboids, sizes, most_cells, also)
