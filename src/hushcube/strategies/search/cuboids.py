"""Which cuboids to measure, if each of the others is read from the measured one that magnifies its noise least.

Tables R, |R| = s, share the budget evenly, so that a cell of cuboid A has variance              [Ding et al. 2011, (2)]

    noise(A, R) = u s^p min_{C in R, C >= A} mag(A, C),     p = 2 (Laplace) or 1 (Gaussian), u = variance of one table

    bound_maximum    minimise the largest noise(A, R)                                          [Problem 1, Algorithm 1]
    distinct_covers  those among which to minimise the main paper's error, a total        [Yaroslavtsev et al. 2013, C]

Departs from the paper. Its search for the least threshold is not monotone [docs/maths.md, 6]: here every distinct
magnification t is tried once, R is the greedy cover that stops when all is served, and s = |R|; the largest
magnification in use counts, not t. A run ends as soon as it cannot win. Of very many magnifications some are tried.
Ties: in a cover to the table with the lowest mask, between covers to the smaller threshold. Values are compared as
integers, without epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.strategies.search.coverage import FAR, Coverage

MOST_THRESHOLDS: Final = 512  # beyond that many distinct magnifications as many are tried, evenly spread
_MOST_GAINS: Final = 2**23  # thresholds times tables: a few seconds. So 128 thresholds are tried at 16 attributes
_MOST_LOOKED: Final = 2**22  # tables of a cover times tables to choose from: up to here a cover is found at once
_BITS: Final = 30  # of weights, which are compared as integers so that ties are exact


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

    def best(self, among: Bools | None = None) -> int:
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
    return Selection(tuple(coverage.masks[i] for i in order), source, coverage.own)


def _tried(coverage: Coverage) -> list[int]:
    every = coverage.thresholds
    most = min(MOST_THRESHOLDS, _MOST_GAINS // len(coverage.tables), len(every))
    chosen: list[int] = every[np.linspace(0, len(every) - 1, most).astype(int)].tolist()
    return chosen


def bound_maximum(coverage: Coverage, power: int) -> Selection:
    """The cover with the least maximum variance.

    >>> from hushcube.strategies.search.coverage import coverage_of
    >>> cube = coverage_of(range(8), sizes=(5, 7, 2), most_cells=1000)  # Example 4.1: bits are Salary, Age, Sex
    >>> found = bound_maximum(cube, power=2)
    >>> [f"{mask:03b}" for mask in found.tables], 2 * found.worst(2)
    (['100', '101', '110', '111'], 64)
    """
    found = own_tables(coverage)
    if not len(coverage):
        return found
    fewest = _fewest(coverage)
    least = found.worst(power)
    limit = Limit(_affordable(fewest, least, power))
    for candidate in covers(coverage, limit):
        if candidate.worst(power) <= least:
            found, least = candidate, candidate.worst(power)
            limit.tables = _affordable(fewest, least, power)
    return found


def distinct_covers(coverage: Coverage, energies: Floats, power: int) -> Iterator[Selection]:
    """The cuboids themselves and all different covers, from few tables to many.

    Covers are given up where s^p sum_A energy_A, the least that even budgets can come to without recovery, is above
    what they have come to already; but not as long as a few steps more cost little, for better budgets and least
    squares may make up for it.
    """
    own = own_tables(coverage)
    yield own
    if not len(coverage):
        return
    known, limit = {own.tables}, Limit(len(coverage))
    cheap, floor = _MOST_LOOKED // len(coverage.tables), float(energies.sum())
    for cover in covers(coverage, limit):
        even = float(len(cover.tables)) ** power * float(cover.magnification @ energies)
        limit.tables = min(limit.tables, max(int((even / floor * (1 + 1e-9)) ** (1 / power)), cheap))
        if cover.tables not in known:
            known.add(cover.tables)
            yield cover


def _fewest(coverage: Coverage) -> list[tuple[int, int]]:
    """For each magnification m the fewest tables that might do with it: none serves more than the best at m."""
    ones = np.ones(len(coverage), np.int64)
    pairs = coverage.falling_gains(ones, coverage.thresholds.tolist())
    return [(-(-len(coverage) // int(gains.max())), m) for m, gains in pairs]


def _affordable(fewest: list[tuple[int, int]], worst: int, power: int) -> int:
    """The most tables s with which s^p m <= worst can be had at all."""
    most = max(worst // m for tables, m in fewest if tables**power * m <= worst)
    return most if power == 1 else math.isqrt(most)


def whole(weights: Floats) -> Ints:
    """Weights as integers in proportion: exactly where their sum is then below 2^53, else the largest is 2^30.

    >>> whole(np.array([0.0, 1.5, 0.25])).tolist()
    [0, 6, 1]
    >>> whole(np.array([0.0, 0.1, 0.05])).tolist() == [0, 2**30, 2**29]
    True
    """
    scale = max((Fraction(weight).denominator for weight in weights.tolist()), default=1)
    if scale * math.fsum(weights.tolist()) < 2**53:
        return (weights * scale).astype(np.int64)
    rounded: Ints = np.ceil(weights / weights.max() * 2**_BITS).astype(np.int64)
    return rounded
