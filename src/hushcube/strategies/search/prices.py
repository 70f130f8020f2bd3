"""Tables that serve every cuboid with budgets of their own, at the least price: a weighted set cover.

A table C of price t^(1/p) serves the cuboids A inside it with w_A mag(A, C) <= t             [Ding et al. 2011, 7.2]

    minimise over t     price = sum_C t_C^(1/p)     such that for each A some C >= A has w_A mag(A, C) <= t_C

for noise whose variance goes like the share of the budget to the power -p, p = 2 (Laplace) or 1 (Gaussian). With shares
t_C^(1/p) / price the largest weighted variance is u price^p. Here `worst` is price^p, as for even shares it is s^p t.

Greedily the most cuboids for the price, what a table has already counting for it: at most H(|L|) <= ln |L| + 1 times
the least price. Then every table, the dearest first, gives up what others serve too. The paper leaves the details out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heapreplace
from typing import Final

import numpy as np

from hushcube.model.arrays import Floats, Ints
from hushcube.strategies.search.coverage import FAR, Coverage
from hushcube.strategies.search.cuboids import Selection

MOST_PAIRS: Final = 2**22  # of tables and cuboids inside them: a few seconds


@dataclass(frozen=True)
class Prices:
    """What each of some tables serves up to: t_C, by the numbers of the tables."""

    coverage: Coverage
    power: int
    upto: dict[int, int]

    @property
    def worst(self) -> float:
        """price^p: the largest weighted variance in units of one table's."""
        return float(self.shape.sum()) ** self.power

    @cached_property
    def shape(self) -> Floats:
        """The price of each table, by rising mask: shares of the budget are in these proportions."""
        return np.array([self.upto[table] for table in sorted(self.upto)], np.float64) ** (1 / self.power)

    @cached_property
    def selection(self) -> Selection:
        """Each cuboid from the table where its variance is least, its own if that is measured."""
        coverage, tables = self.coverage, sorted(self.upto)
        source, nearest = np.full((2, len(coverage)), -1, np.int64)
        least = np.full(len(coverage), np.inf)
        for number, table in enumerate(tables):
            found = coverage.magnifications(table)
            relative = np.where(found == FAR, np.inf, np.where(found == coverage.own, 0.0, found / self.upto[table]))
            better = relative < least
            source[better], nearest[better], least[better] = number, found[better], relative[better]
        return Selection(tuple(coverage.tables[table] for table in tables), source, nearest // coverage.own)

    def lowered(self) -> Prices:
        """No table serves beyond what only it serves."""
        served = np.zeros(len(self.coverage), np.int64)
        burdens = {table: burdens_of(self.coverage, table) for table in self.upto}
        for table, upto in self.upto.items():
            served += burdens[table] <= upto
        result = dict(self.upto)
        for table in sorted(result, key=lambda table: (-result[table], table)):
            within = burdens[table] <= result[table]
            needed = int(burdens[table][within & (served == 1)].max(initial=0))
            served += (burdens[table] <= needed).astype(np.int64) - within
            result[table] = needed
        return Prices(self.coverage, self.power, {table: upto for table, upto in result.items() if upto})


def pairs(coverage: Coverage) -> int:
    """How many tables and cuboids inside them there are."""
    ones = np.ones(len(coverage), np.int64)
    return int(coverage.gains(np.arange(len(coverage)), ones, int(coverage.thresholds[0])).sum())


def burdens_of(coverage: Coverage, table: int) -> Ints:
    """w_A mag(A, C) of all cuboids, but at least the weight of C if it is asked for: its own table answers it."""
    found = coverage.magnifications(table)
    burdens: Ints = np.maximum(found, coverage.own[found == coverage.own].max(initial=0))
    return burdens


def cheapest_cover(coverage: Coverage, power: int, known: Selection) -> Prices:
    """The cheaper of the greedy cover and of a `known` one, which has the tables of even shares.

    >>> from hushcube.strategies.search.coverage import coverage_of
    >>> from hushcube.strategies.search.cuboids import bound_maximum
    >>> cube = coverage_of(range(8), sizes=(5, 7, 2), most_cells=1000)  # Example 4.1
    >>> known = bound_maximum(cube, power=2)
    >>> 2 * known.worst(2), round(2 * cheapest_cover(cube, 2, known).worst, 2)
    (64, 53.17)
    """
    largest = int((known.magnification * coverage.own).max(initial=1))
    even = {coverage.number(mask): largest for mask in known.tables}
    tried = (_greedy(coverage, power), Prices(coverage, power, even))
    return min((prices.lowered() for prices in tried), key=lambda prices: prices.worst)


def _greedy(coverage: Coverage, power: int) -> Prices:
    """Worth falls as cuboids are served, so that only the table which seems best is looked at again."""
    waiting, upto = np.ones(len(coverage), bool), dict[int, int]()
    offers: dict[int, tuple[Ints, Ints, Floats]] = {}
    for table in np.flatnonzero(coverage.fits).tolist():
        burdens = burdens_of(coverage, table)
        rising = np.argsort(burdens, kind="stable")[: np.count_nonzero(burdens < FAR)].astype(np.int64)
        offers[table] = rising, burdens[rising], burdens[rising].astype(np.float64) ** (1 / power)

    def worth(table: int) -> tuple[float, int]:
        """The most cuboids for the price, and up to where."""
        inside, burdens, price = offers[table]
        paid = upto.get(table, 0)
        first = int(np.searchsorted(burdens, paid, side="right"))
        if first == len(inside):
            return 0.0, paid
        gain = np.cumsum(waiting[inside[first:]]) / (price[first:] - paid ** (1 / power))
        at = int(gain.argmax())
        return float(gain[at]), int(burdens[first + at])

    heap = [(-worth(table)[0], table) for table in offers]
    heapify(heap)
    while waiting.any():
        seeming, table = heap[0]
        value, level = worth(table)
        if -value == seeming:
            upto[table] = level
            inside, burdens, _ = offers[table]
            waiting[inside[burdens <= level]] = False
            value, _ = worth(table)
        if value:
            heapreplace(heap, (-value, table))
        else:
            heappop(heap)
    return Prices(coverage, power, upto)
