"""Measure a few larger tables that cover the workload: the best known strategy for pure epsilon.

minimise over supports S, budgets e   2 (sum_A e_A)² sum_B k_B / sum_{A in S, A >= B} e_A² / cells(A)  [search/]

Every measured table answers all marginals inside it, and least squares pools what they share; Laplace noise makes few
large tables cheaper than many small ones. Not convex: found by search, repeatable from a public seed.
For the objective `max` its budgets are those of the least maximum, and so are those of the workload's own tables, of
some covers and of the tables of the least price [search/prices.py]; the best of them is taken.  [strategies/minimax.py]
Goes beyond the papers; the best supports look like block designs.                              [docs/maths.md, 8]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.request import Effort, Request
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.privacy import Privacy
from hushcube.strategies.bmax import cheapest_tables
from hushcube.strategies.minimax import cell_weights
from hushcube.strategies.search.largest import promising
from hushcube.strategies.search.local import search
from hushcube.strategies.search.supports import Support
from hushcube.strategies.strategy import Strategy, best_of

SEED: Final = 0  # Public: the search needs variety, not secrecy
_ANY: Final = Privacy.of(epsilon=1, neighbours="add-remove")
"""The best support does not depend on epsilon, so one search serves every budget."""


class Covering(Strategy):
    """Searched tables that cover the workload."""

    name = "covering"
    searches = True
    measures = "a few larger tables, found by search"

    def accepts(self, request: Request) -> str | None:
        """Refuse Gaussian noise, for which `residual` is the optimum."""
        return None if request.privacy.is_pure else "it is for pure epsilon; residual is the optimum for Gaussian noise"

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The best support found, with its budgets; for the objective `max`, the best of several."""
        support = _search(Request(request.workload, _ANY), request.effort)
        if request.objective == "max" and budgets == "optimal":
            supports = [(support.sets, support.budgets), *promising(request, cell_weights(request), seed=SEED)]
            supports += filter(None, [cheapest_tables(request)])
            plans = [self._with(request, budgets, recovery, *given) for given in supports]
            own = self.decide(request, budgets, recovery, MARGINAL, request.marginals, request.energies)
            return best_of([*plans, own])
        return self._with(request, budgets, recovery, support.sets, support.budgets)

    def _with(
        self, request: Request, budgets: Budgets, recovery: Recovery, sets: Sequence[Marginal], found: Floats
    ) -> LatticeDesign:
        """Budgets are those that the search found, or, for the maximum, begin with them."""
        single = {i for i, n in enumerate(request.schema.sizes) if n == 1}  # attributes of one value ride along
        joined = [tuple(sorted({*s, *single})) for s in sets]
        measured = Family.of(joined, request.schema.sizes)
        proportions = np.zeros(len(measured))
        np.add.at(proportions, measured.ids(joined), found)
        return self.decide(request, budgets, recovery, MARGINAL, measured, np.ones(len(measured)), proportions)


@lru_cache(maxsize=8)
def _search(request: Request, effort: Effort) -> Support:
    return search(request, effort=effort, seed=SEED)
