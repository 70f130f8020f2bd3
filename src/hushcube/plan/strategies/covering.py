"""Measure a few larger tables that cover the workload: the best known strategy for pure epsilon.

minimise over supports S, budgets e    2 (sum_A e_A)² sum_B k_B / sum_{A in S, A >= B} e_A² / cells(A)     [plan/search]

Every measured table answers all marginals inside it, and least squares pools what they share; Laplace noise makes few
large tables cheaper than many small ones. Not convex: found by search, repeatable from a public seed.
Goes beyond the papers; the best supports look like block designs.                              [math-notes, section 8]
"""

from __future__ import annotations

import numpy as np

from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.plan.plan import Budgets, Plan, Recovery
from hushcube.plan.request import Request
from hushcube.plan.search.local import Effort, search
from hushcube.plan.strategies.strategy import decide


class Covering:
    """Searched tables that cover the workload."""

    name = "covering"

    def __init__(self, effort: Effort = "default", seed: int = 0) -> None:
        self.effort = effort
        self.seed = seed
        self._found: tuple[Request, Family, np.ndarray] | None = None

    def accepts(self, request: Request) -> str | None:
        """Refuse Gaussian noise, for which `residual` is the optimum."""
        return None if request.privacy.is_pure else "it is for pure epsilon; residual is optimal for Gaussian noise"

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Plan:
        """The best support found, with its budgets."""
        if self._found is None or self._found[0] is not request:
            support = search(request, effort=self.effort, seed=self.seed)
            measured = Family.of(support.sets, request.schema.sizes)
            proportions = np.empty(len(measured))
            proportions[measured.ids(support.sets)] = support.budgets
            self._found = request, measured, proportions
        _, measured, proportions = self._found
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
