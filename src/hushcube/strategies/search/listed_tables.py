"""Coverage by a list of tables, where all of them would be too many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Ints
from hushcube.strategies.search.coverage import Coverage, Flags, counted

MOST_CUBOIDS: Final = 2**14
"""The most cuboids that tables are selected for."""
_MOST_PAIRS: Final = 2**28
"""Cuboids times tables: seconds of comparisons."""
_MOST_GROUPS: Final = 12


class ListedTables(Coverage):
    """Tables of a list, with all pairs of a table and a cuboid inside it."""

    def __init__(self, cuboids: Sequence[int], sizes: Sequence[int], most_cells: int) -> None:
        self.masks = cuboids
        self.tables = listed(cuboids, sizes, most_cells)
        self.cells = np.array([_cells(mask, sizes) for mask in cuboids], np.int64)
        self.table_cells = np.array([_cells(mask, sizes) for mask in self.tables], np.int64)
        self.fits = np.ones(len(self.tables), bool)
        self._numbers = {mask: i for i, mask in enumerate(self.tables)}
        self._kept: tuple[int, Ints, Ints, Ints] = (0, self.cells, self.cells, self.cells)
        self._words, self._table_words = (_words(masks, len(sizes)) for masks in (cuboids, self.tables))

    @cached_property
    def thresholds(self) -> Ints:
        """The magnifications of the pairs."""
        return np.unique(self._pairs[2])[::-1]

    def number(self, mask: int) -> int:
        """The place in the list."""
        return self._numbers[mask]

    def holds(self, table: int, cuboids: Ints) -> Flags:
        """By words of bits."""
        inside = np.ones(len(cuboids), bool)
        for asked, words in zip(self._words, self._table_words, strict=True):
            inside &= (asked[cuboids] & ~words[table]) == 0
        return inside

    def above(self, cuboids: Ints) -> Flags:
        """By words of bits."""
        inside = np.ones(len(self.tables), bool)
        for asked, words in zip(self._words, self._table_words, strict=True):
            inside &= (np.bitwise_or.reduce(asked[cuboids], initial=0) & ~words) == 0
        return inside

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


def _words(masks: Sequence[int], d: int) -> list[NDArray[np.uint64]]:
    """The masks' 64-bit words: the lowest of all, the next of all, ..."""
    return [np.array([mask >> start & (2**64 - 1) for mask in masks], np.uint64) for start in range(0, d, 64)]
