"""Measure a few larger tables that cover the workload: the best known strategy for pure epsilon.

minimise over supports S, budgets e    2 (sum_A e_A)² sum_B k_B / sum_{A in S, A >= B} e_A² / cells(A)     [plan/search]

Every measured table answers all marginals inside it, and least squares pools what they share; Laplace noise makes few
large tables cheaper than many small ones. Not convex: found by search, repeatable from a public seed.
Goes beyond the papers; the best supports look like block designs.                              [math-notes, section 8]
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.model.privacy import Privacy
from hushcube.plan.plan import Budgets, Plan, Recovery
from hushcube.plan.request import Effort, Request
from hushcube.plan.search.local import search
from hushcube.plan.search.supports import Support
from hushcube.plan.strategies.strategy import decide

SEED: Final = 0
"""Public: the search needs variety, not secrecy."""
_ANY: Final = Privacy.of(epsilon=1, neighbours="add-remove")
"""The best support does not depend on epsilon, so one search serves every budget."""


class Covering:
    """Searched tables that cover the workload."""

    name = "covering"

    def accepts(self, request: Request) -> str | None:
        """Refuse Gaussian noise, for which `residual` is the optimum."""
        return None if request.privacy.is_pure else "it is for pure epsilon; residual is the optimum for Gaussian noise"

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Plan:
        """The best support found, with its budgets."""
        support = _search(Request(request.workload, _ANY), request.effort)
        single = {i for i, n in enumerate(request.schema.sizes) if n == 1}  # attributes of one value ride along
        sets = [tuple(sorted({*s, *single})) for s in support.sets]
        measured = Family.of(sets, request.schema.sizes)
        proportions = np.zeros(len(measured))
        np.add.at(proportions, measured.ids(sets), support.budgets)
        return decide(
            request,
            strategy=self.name,
            basis=MARGINAL,
            measured=measured,
            s=np.ones(len(measured)),
            budgets=budgets,
            recovery=recovery,
            proportions=proportions,
        )


@lru_cache(maxsize=8)
def _search(request: Request, effort: Effort) -> Support:
    return search(request, effort=effort, seed=SEED)
