"""Measure a cuboid for each cluster of the tables asked for: the cover with the least error, as it is recovered.

minimise over R   sum_A a_A cells(A) Var(A | R)         Var of a cell after the recovery asked for, budgets as asked for

The clusters are the main paper's: the sources of Ding et al., each with the tables that are summed from it. With
s_C = sum_{A in cluster C} a_A cells(A) mag(A, C), budgets are even (C) or those of the closed form (C+)

    share_C ∝ s_C^(1/3), error u (sum_C s_C^(1/3))³          Laplace noise           [Yaroslavtsev et al. 2013, C, C+;
    share_C ∝ s_C^(1/2), error u (sum_C s_C^(1/2))²          Gaussian noise                            Corollary 3.3]

where the error is that without recovery, u the variance of one table that has the whole budget.
`covers=printed` is just that, for the clusters of `bmax`. Departs from the paper otherwise: all greedy covers of Ding
et al. are compared, one for each threshold on the magnification [strategies/search/cuboids.py], those of `bmax` among
them. Their errors after recovery are predicted by the continuous formulas,

    none    mag(A, C) variance_C of the source C
    gls     sum_B k_B / K_B(e^p)                     K_B(w) = sum_{C in R, C >= B} w_C / cells(C)   [lattice/basis.py]
    ols     sum_B k_B K_B(e^-p) / K_B(1)²

and the few best are planned and compared exactly: with the closed form, with budgets for tables that move to the source
that has become best, until nothing changes, and with even budgets. So `optimal` is never worse than `uniform`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from operator import itemgetter
from typing import Any, Final, Literal, get_args

import numpy as np

from hushcube.designs.design import RECOVERIES, Budgets, Design, Recovery
from hushcube.designs.request import Objective, Request
from hushcube.lattice.basis import dimensions
from hushcube.model.arrays import Floats
from hushcube.model.noise import law_of
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.options import choice
from hushcube.strategies.bmax import least_maximum
from hushcube.strategies.k_part import Cube, KPart
from hushcube.strategies.minimax import cell_weights
from hushcube.strategies.search.cuboids import Selection, distinct_covers
from hushcube.strategies.search.supports import SupportProblem
from hushcube.strategies.strategy import best_of

Covers = Literal["best", "printed"]
COVERS: Final[tuple[Covers, ...]] = get_args(Covers)
_ANY: Final = Privacy.of(epsilon=1, neighbours="add-remove")
_FEW: Final = 2  # covers that are planned, the best by each of the predictions
_MANY: Final = 2**12  # cuboids beyond which a plan takes seconds, so that only the very best are planned
_MOST_NUMBERS: Final = 2**22  # tables times residual spaces: beyond, covers are compared before recovery
_LEAST: Final = 1e-9  # of the largest s_C: every table needs a budget


@dataclass(frozen=True, kw_only=True)
class Cluster(KPart):
    """The cover with the least error."""

    name = "cluster"
    measures = "one table for each cluster of tables"

    covers: Covers = choice(
        "best",
        "the clusters of the least error after recovery; or, as the papers print them, those of bmax with even budgets "
        "(C) or the closed form (C+), whatever comes after",
        COVERS,
    )

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The sources of the clusters."""
        cube, power = Cube.of(request), law_of(request.privacy).power
        as_printed = self.covers == "printed"

        def measure(selection: Selection, *, printed: bool) -> Design:
            told = {"clusters": len(selection.tables)} | ({"covers": self.covers} if as_printed else {})
            how: dict[str, Any] = {"against": "nothing", "settle": False} if printed else {}
            return self.measure(request, budgets, recovery, cube, selection, **how, details=lambda _: told)

        if as_printed:
            return measure(least_maximum(cube.weighted, power), printed=True)
        found = promising(cube, request.workload, power, recovery, request.objective)[budgets]
        plans = [measure(cover, printed=False) for cover in found]
        if budgets == "optimal":
            plans += [measure(cover, printed=True) for cover in found if len(cover.tables) > 1]
        return best_of(plans)


@lru_cache(maxsize=8)
def promising(
    cube: Cube, workload: Workload, power: int, recovery: Recovery, objective: Objective
) -> dict[Budgets, list[Selection]]:
    """The covers to plan with: those of the least largest magnification (Ding et al.), and of the least predictions.

    They do not depend on the budget, but on how it is divided. Those for even budgets are among those for optimal ones,
    those for the total among those for the maximum, and those for other recoveries among those for generalised least
    squares: the better way is never worse.
    """
    objectives: tuple[Objective, ...] = ("total",) if objective == "total" else ("total", "max")
    ways: tuple[Recovery, ...] = RECOVERIES if recovery == "gls" else (recovery,)
    predictions = [Prediction(cube, workload, power, way, each) for way, each in product(ways, objectives)]
    kept = _FEW if len(cube.coverage) <= _MANY else 1
    few: list[list[tuple[float, Selection]]] = [[] for _ in range(1 + 2 * len(predictions))]
    for cover in distinct_covers(cube.coverage, cube.energies, power):
        evenly, optimally = zip(*(predicted(cover) for predicted in predictions), strict=True)
        for best, value in zip(few, (float(cover.worst(power)), *evenly, *optimally), strict=True):
            best.append((value, cover))
            best.sort(key=itemgetter(0))
            del best[kept:]
    even = 1 + len(predictions)
    return {"uniform": _distinct(few[:even]), "optimal": _distinct(few)}


def _distinct(few: Sequence[Sequence[tuple[float, Selection]]]) -> list[Selection]:
    return list({cover.tables: cover for best in reversed(few) for _, cover in best}.values())


class Prediction:
    """The objective of a cover with even budgets, and with the better of these and the closed form.

    By the continuous formulas, and up to the variance of a table that has the whole budget.
    """

    def __init__(self, cube: Cube, workload: Workload, power: int, recovery: Recovery, objective: Objective) -> None:
        """What follows is the same for all covers: how much 1 / K_B of each residual space B counts for each answer."""
        self._cube, self._power, self._recovery, self._objective = cube, power, recovery, objective
        request = Request(workload, _ANY)
        marginals, spaces = request.marginals, request.spaces
        self._spaces = len(spaces)
        if recovery == "none" or len(marginals) * len(spaces) > _MOST_NUMBERS:
            self._recovery = "none"
            return
        self._problem = SupportProblem(request)
        self._P = self._problem.k[None].copy()
        if objective == "max":
            weights = cell_weights(request) / marginals.cells
            self._P = self._problem.matrix(list(marginals)) * weights[:, None] * dimensions(spaces)
        if cube.public:
            self._P[:, spaces.ids([()])] = 0.0

    def __call__(self, cover: Selection) -> tuple[float, float]:
        """Both predictions."""
        s, p = self._cube.totals(cover), self._power
        closed = np.maximum(s, _LEAST * s.max(initial=0.0)) ** (1 / (p + 1))
        even, better = self._values(cover, [np.ones(len(s)), closed])
        return even, min(even, better)

    def _values(self, cover: Selection, shapes: Sequence[Floats]) -> list[float]:
        tables = cover.tables
        if not tables:
            return [0.0 for _ in shapes]
        variances = [(shape.sum() / shape) ** self._power for shape in shapes]
        if self._recovery == "none" or len(tables) * self._spaces > _MOST_NUMBERS:
            cells = [cover.magnification * each[cover.source] for each in variances]
            if self._objective == "max":
                return [float((self._cube.weights * each).max()) for each in cells]
            return [float(self._cube.energies @ each) for each in cells]
        M = self._problem.matrix([self._cube.table(mask) for mask in tables])
        if self._recovery == "ols":
            phi = [(each @ M) / M.sum(axis=0) ** 2 for each in variances]
        else:
            phi = [1 / (1 / each @ M) for each in variances]
        return [float((self._P @ each).max()) for each in phi]
