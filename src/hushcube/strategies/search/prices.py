"""Tables that serve every cuboid with budgets of their own, at the least price: a weighted set cover.

A table C of price t^(1/p) serves the cuboids A inside it with w_A mag(A, C) <= t             [Ding et al. 2011, 7.2]

    minimise over t     price = sum_C t_C^(1/p)     such that for each A some C >= A has w_A mag(A, C) <= t_C

for noise whose variance goes like the share of the budget to the power -p, p = 2 (Laplace) or 1 (Gaussian). With shares
t_C^(1/p) / price the largest weighted variance is u price^p. Here `worst` is price^p, as for even shares it is s^p t.

Greedily the most cuboids for the price, what a table has already counting for it: at most H(|L|) <= ln |L| + 1 times
the least price. Then every table, the dearest first, gives up what others serve too. The paper leaves the details out.

Where prices are limited, the same choice or the best single table serves at least 1 - 1/sqrt(e) of the weight that can
be served at all.                            [Khuller, Moss and Naor 1999, The Budgeted Maximum Coverage Problem]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heapreplace
from typing import Final

import numpy as np

from hushcube.model.arrays import Floats, Ints
from hushcube.strategies.search.coverage import FAR, Coverage
from hushcube.strategies.search.cuboids import Selection

Price = Callable[[Floats], Floats]
"""What a table costs that serves up to t, for rising t."""
_ROUNDING: Final = 1e-12
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
        source, nearest = np.full(len(coverage), -1, np.int64), np.full(len(coverage), FAR, np.int64)
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
    greedy = serve(coverage, np.ones(len(coverage), np.int64), lambda upto: upto ** (1 / power))
    tried = (Prices(coverage, power, upto).lowered() for upto in (greedy, even))
    return min(tried, key=lambda prices: prices.worst)


def serve(coverage: Coverage, weights: Ints, price: Price, limit: float = np.inf) -> dict[int, int]:
    """The tables that are worth most, and what they serve up to, until all weight is served or nothing is affordable.

    Worth falls as cuboids are served and money is spent, so that only the table which seems best is looked at again.
    """
    waiting, upto, costs, spent = weights.copy(), dict[int, int](), dict[int, float](), 0.0
    offers: dict[int, tuple[Ints, Ints, Floats]] = {}
    for table in np.flatnonzero(coverage.fits).tolist():
        burdens = burdens_of(coverage, table)
        rising = np.argsort(burdens, kind="stable")[: np.count_nonzero(burdens < FAR)].astype(np.int64)
        offers[table] = rising, burdens[rising], price(burdens[rising].astype(np.float64))

    def worth(table: int) -> tuple[float, int]:
        """The most weight for the price, and at which place of its offer."""
        inside, burdens, prices = offers[table]
        paid = costs.get(table, 0.0)
        first = int(np.searchsorted(burdens, upto.get(table, 0), side="right"))
        last = int(np.searchsorted(prices, paid + limit * (1 + _ROUNDING) - spent, side="right"))
        if first >= last:
            return 0.0, first
        gain = np.cumsum(waiting[inside[first:last]]) / (prices[first:last] - paid)
        at = int(gain.argmax())
        return float(gain[at]), first + at

    heap = [(-worth(table)[0], table) for table in offers]
    heapify(heap)
    while heap and waiting.any():
        seeming, table = heap[0]
        value, at = worth(table)
        if value and -value == seeming:
            inside, burdens, prices = offers[table]
            spent += float(prices[at]) - costs.get(table, 0.0)
            upto[table], costs[table] = int(burdens[at]), float(prices[at])
            waiting[inside[burdens <= upto[table]]] = 0
            value, _ = worth(table)
        if value:
            heapreplace(heap, (-value, table))
        else:
            heappop(heap)
    return upto
