"""Measure the cuboids that bound the largest variance of a cell.

minimise over R   max_A noise(A, R),   noise(A, R) = u |R|^p min_{C in R} mag(A, C)        [Ding et al. 2011, Problem 1]

u is the variance of one table that has the whole budget, p = 2 for Laplace and 1 for Gaussian noise. At most a factor
(ln |L| + 1)^p above the optimum [Theorem 6], and never above Algorithm 1, whose binary search is replaced by all
thresholds.                                                             [strategies/search/cuboids.py; docs/maths.md, 6]
Optimal budgets keep the bound and make the total least under it; for the objective `max` they make the maximum least.
Weights count for the budgets alone. The bound is that of recovery `none`, K_part; `gls` only lowers variances. It is
on cells: sums asked for as ranges may have a larger variance.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.strategies import kpart
from hushcube.strategies.search.cuboids import bound_maximum
from hushcube.strategies.search.selection import Selection
from hushcube.strategies.strategy import Strategy


class BMax(Strategy):
    """The cover with the least maximum."""

    name = "bmax"
    searches = True
    measures = "the cover whose largest variance is least"

    def accepts(self, request: Request) -> str | None:
        """Refuse very many tables of many attributes."""
        return kpart.refusal(request)

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The tables with even budgets, or with those of the least total under the bound."""
        cube = kpart.cube_of(request)
        selection = least_maximum(cube, kpart.power_of(request.privacy))
        noise = kpart.TableNoise.of(request.privacy, len(selection.tables), len(cube.public))
        bound = float(noise.evenly(len(selection.tables))) * selection.largest
        shares, _ = kpart.optimal_shares(cube, selection, noise, np.full(len(cube.coverage), bound))
        return kpart.measure(
            request,
            self.name,
            cube,
            selection.tables,
            shares,
            budgets,
            recovery,
            keep=False,
            details=lambda variances: {"bound": float(variances.max())},
        )


@lru_cache(maxsize=8)
def least_maximum(cube: kpart.Cube, power: int) -> Selection:
    """The selection, which does not depend on the budget."""
    return bound_maximum(cube.coverage, power)
