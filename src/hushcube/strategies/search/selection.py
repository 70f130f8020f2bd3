"""Selections of tables: each cuboid is read from the selected table that magnifies its noise least.

Found greedily: for a threshold t on the magnification, always the table that serves the most of what is still open.
Ties go to the table with the lowest mask.                                           [Ding et al. 2011, Algorithms 1, 2]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushcube.model.arrays import Ints
from hushcube.strategies.search.all_tables import MOST_ATTRIBUTES, AllTables
from hushcube.strategies.search.coverage import FAR, Coverage, Flags
from hushcube.strategies.search.listed_tables import ListedTables

MOST_THRESHOLDS: Final = 512
"""Beyond that many distinct magnifications as many are tried, evenly spread."""
_MOST_GAINS: Final = 2**23
"""Thresholds times tables: a few seconds. So 128 thresholds are tried at 16 attributes."""


def coverage_of(cuboids: Sequence[int], sizes: Sequence[int], most_cells: int) -> Coverage:
    """The coverage of distinct cuboids, given as masks, by tables of at most that many cells.

    >>> coverage = coverage_of([0b011, 0b110], sizes=(2, 3, 4), most_cells=100)
    >>> coverage.cells.tolist(), coverage.thresholds.tolist()
    ([6, 12], [4, 2, 1])
    """
    kind = AllTables if len(sizes) <= MOST_ATTRIBUTES else ListedTables
    return kind(cuboids, sizes, most_cells)


@dataclass(frozen=True)
class Selection:
    """Tables to measure, and for each cuboid the number of its source among them, with the magnification."""

    tables: tuple[int, ...]
    """Masks, rising."""
    source: Ints
    magnification: Ints

    @property
    def largest(self) -> int:
        """The largest magnification in use."""
        return int(self.magnification.max(initial=1))

    def worst(self, power: int) -> int:
        """s^p times the largest magnification: the largest variance in units of one table's."""
        return int(len(self.tables) ** power) * self.largest


def select(coverage: Coverage, tables: Sequence[int]) -> Selection:
    """Each cuboid from the table, given by its number, that magnifies least; from the lowest mask of equals."""
    ordered = sorted(set(tables))
    source = np.full(len(coverage), -1, np.int64)
    least = np.full(len(coverage), FAR, np.int64)
    for number, table in enumerate(ordered):
        found = coverage.magnifications(table)
        better = found < least
        source[better], least[better] = number, found[better]
    return Selection(tuple(coverage.tables[table] for table in ordered), source, least)


class Greedy:
    """Tables one by one, each the one that serves the most weight that is still open; the lowest mask of equals."""

    def __init__(self, coverage: Coverage, threshold: int, gains: Ints, weights: Ints, cuboids: Ints) -> None:
        """`gains`: what each table serves of the weights of these cuboids."""
        self._coverage, self._threshold, self._weights = coverage, threshold, weights
        self._gains = gains.copy()
        self.open = cuboids

    def best(self, among: Flags | None = None) -> int:
        """The next table, of all or of some."""
        return int((self._gains if among is None else np.where(among, self._gains, -1)).argmax())

    def gain(self, table: int) -> int:
        """What a table would serve now."""
        return int(self._gains[table])

    def take(self, table: int) -> None:
        """Serve what the table serves."""
        served = self._coverage.serves(table, self.open, self._threshold)
        self._gains -= self._coverage.gains(self.open[served], self._weights, self._threshold)
        self.open = self.open[~served]


@dataclass
class Limit:
    """The most tables that are worth having; it falls as better covers are found."""

    tables: int


def covers(coverage: Coverage, limit: Limit) -> Iterator[Selection]:
    """Greedy covers for falling thresholds; runs that need more tables than the limit are given up."""
    every = np.arange(len(coverage))
    ones = np.ones(len(every), np.int64)
    for threshold, gains in coverage.falling_gains(ones, _tried(coverage)):
        if -(-len(every) // int(gains.max())) > limit.tables:  # so are all smaller thresholds: tables serve less
            return
        if threshold == 1:
            yield own_tables(coverage)
            continue
        run = Greedy(coverage, threshold, gains, ones, every)
        chosen: list[int] = []
        while len(run.open):
            table = run.best()
            if len(chosen) - (-len(run.open) // run.gain(table)) > limit.tables:
                break
            run.take(table)
            chosen.append(table)
        else:
            yield select(coverage, chosen)


def own_tables(coverage: Coverage) -> Selection:
    """The cuboids themselves: what threshold 1 comes to."""
    order = sorted(range(len(coverage)), key=coverage.masks.__getitem__)
    source = np.empty(len(coverage), np.int64)
    source[order] = np.arange(len(coverage))
    return Selection(tuple(coverage.masks[i] for i in order), source, np.ones(len(coverage), np.int64))


def _tried(coverage: Coverage) -> list[int]:
    every = coverage.thresholds
    most = min(MOST_THRESHOLDS, _MOST_GAINS // len(coverage.tables), len(every))
    chosen: list[int] = every[np.linspace(0, len(every) - 1, most).astype(int)].tolist()
    return chosen
