"""Measure the cuboids that bound the largest variance of a cell.

minimise over R   max_A noise(A, R),   noise(A, R) = u |R|^p min_{C in R} mag(A, C)        [Ding et al. 2011, Problem 1]

u is the variance of one table that has the whole budget, p = 2 for Laplace and 1 for Gaussian noise. At most a factor
(ln |L| + 1)^p above the optimum [Theorem 6], and never above Algorithm 1, whose binary search is replaced by all
thresholds.                                                             [strategies/search/cuboids.py; docs/maths.md, 6]
Weights count: it is the largest a_A noise(A, R) that is bounded.                        [strategies/search/weighted.py]
Optimal budgets keep the bound and make the total least under it; for the objective `max` they make the maximum least.
The bound is that of recovery `none`, K_part; `gls` only lowers variances. It is on cells: sums asked for as ranges may
have a larger variance.

cover=cheapest: cuboids are chosen together with their shares of the budget, minimise max_A a_A min_C mag(A, C)
variance_C; never above the choice for even shares.    [Ding et al. 2011, section 7.2; strategies/search/prices.py]
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, Literal, get_args

import numpy as np

from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.errors import NotApplicable
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.noise import law_of
from hushcube.options import choice
from hushcube.strategies.k_part import Cube, KPart, TableNoise
from hushcube.strategies.search.coverage import Coverage
from hushcube.strategies.search.cuboids import Selection, bound_maximum
from hushcube.strategies.search.prices import MOST_PAIRS, Prices, cheapest_cover, pairs
from hushcube.strategies.strategy import Rivals

Cover = Literal["fewest", "cheapest"]
COVERS: Final[tuple[Cover, ...]] = get_args(Cover)
COVER: Final = "few tables, chosen for even shares of the budget, or the tables whose own shares cost least"


@dataclass(frozen=True, kw_only=True)
class BMax(KPart):
    """The cover with the least maximum."""

    name = "bmax"
    measures = "the cover whose largest variance is least"

    cover: Cover = choice("fewest", COVER, COVERS)

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The tables with even budgets, or with those of the least total under the bound."""
        cube, power = Cube.of(request), law_of(request.privacy).power
        relative = cube.importance / cube.importance.max(initial=1e-9)

        def largest(selection: Selection, variances: Floats) -> float:
            return float((relative * selection.magnification * variances[selection.source]).max(initial=0.0))

        selection = least_maximum(cube.weighted, power)
        count = len(selection.tables)
        bound = largest(selection, np.full(count, float(cube.even_variance(request.privacy, count))))
        priced = self.cover == "cheapest" and budgets == "optimal"  # with even shares all tables cost the same
        if priced:
            prices = least_price(cube.weighted, power)
            noise = TableNoise.of(request.privacy, len(prices.shape), len(cube.public))
            found = largest(prices.selection, noise.variances(prices.shape / prices.shape.sum()))
            priced = found < bound
            selection, bound = (prices.selection, found) if priced else (selection, bound)

        def details(cells: Floats) -> dict[str, Any]:
            return {"bound": float((cube.emphasis * cells).max())}

        against: Rivals = "better" if priced else "all"  # even shares would exceed what is allowed
        chosen = (cube, selection, bound / relative)
        return self.measure(request, budgets, recovery, *chosen, against=against, details=details)


@lru_cache(maxsize=8)
def least_maximum(coverage: Coverage, power: int) -> Selection:
    """The selection for even shares, which does not depend on the budget."""
    found = bound_maximum(coverage, power)
    return replace(found, magnification=found.magnification // coverage.own)


@lru_cache(maxsize=8)
def least_price(coverage: Coverage, power: int) -> Prices:
    """The same for shares of their own."""
    check_pairs(coverage, BMax.name)
    return cheapest_cover(coverage, power, least_maximum(coverage, power))


def cheapest_tables(request: Request) -> tuple[tuple[Marginal, ...], Floats] | None:
    """The tables that `cover=cheapest` measures, with their shares; None where there are too many to choose from."""
    cube = Cube.of(request)
    if BMax().accepts(request) or not len(cube.weighted) or pairs(cube.weighted) > MOST_PAIRS:
        return None
    prices = least_price(cube.weighted, law_of(request.privacy).power)
    return tuple(map(cube.table, prices.selection.tables)), prices.shape


def check_pairs(coverage: Coverage, strategy: str) -> None:
    """Refuse to look for the cheapest tables where there are too many."""
    if len(coverage) and (several := pairs(coverage)) > MOST_PAIRS:
        reason = f"cover=cheapest looks at most at {MOST_PAIRS:,} pairs of tables inside each other, not {several:,}"
        raise NotApplicable(strategy, reason)
