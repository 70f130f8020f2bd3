"""Measure a cuboid for each cluster of the tables asked for: the cover with the least total variance.

minimise over R   sum_A a_A cells(A) min_{C in R, C >= A} mag(A, C) variance_C         [Yaroslavtsev et al. 2013, C, C+]

The clusters are the main paper's: the sources of Ding et al., each with the tables that are summed from it. All greedy
covers of Ding et al. are compared, one for each threshold on the magnification [strategies/search/cuboids.py], by that
paper's error, the total. Even budgets, variance_C = u |R|^p (C); or, with s_C = sum_{A in cluster C} a_A cells(A)
mag(A, C), budgets in closed form: u (sum_C s_C^(1/3))³ for Laplace and u (sum_C s_C^(1/2))² for Gaussian noise (C+).
Then tables move to the source that has become best, and budgets follow, until nothing changes.
Departs from the paper, which takes the clusters of `bmax`: those are among the covers compared.
"""

from functools import lru_cache

from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.model.noise import law_of
from hushcube.strategies.bmax import Cube, KPart
from hushcube.strategies.search.cuboids import Selection, least_total


class Cluster(KPart):
    """The cover with the least total."""

    name = "cluster"
    measures = "one table for each cluster of tables"

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The sources of the clusters."""
        cube = Cube.of(request)
        selection = clusters(cube, law_of(request.privacy).power)[budgets]
        told = {"clusters": len(selection.tables)}
        return self.measure(request, budgets, recovery, cube, selection, details=lambda _: told)


@lru_cache(maxsize=8)
def clusters(cube: Cube, power: int) -> dict[Budgets, Selection]:
    """The selections, which do not depend on the budget but on how it is divided."""

    def even(selection: Selection) -> float:
        return float(len(selection.tables)) ** power * float(cube.energies @ selection.magnification)

    def optimal(selection: Selection) -> float:
        return float((cube.totals(selection) ** (1 / (power + 1))).sum()) ** (power + 1)

    uniformly, optimally = least_total(cube.coverage, cube.energies, power, [even, optimal])
    return {"uniform": uniformly, "optimal": optimally}
