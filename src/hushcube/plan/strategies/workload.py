"""Measure the marginals that are asked for.

S = Q: one set for each A in the workload, every column has one 1 in it, so C_A = 1.
s_A = a_A cells(A); budgets by its cube root (Laplace) or square root (Gaussian).   [Yaroslavtsev et al. 2013, Q, Q+]
Without recovery the tables contradict each other; least squares makes them agree and is never worse.
"""

from __future__ import annotations

from hushcube.lattice.basis import MARGINAL
from hushcube.plan.plan import Budgets, Plan, Recovery
from hushcube.plan.request import Request
from hushcube.plan.strategies.strategy import decide


class WorkloadTables:
    """The workload's own tables."""

    name = "workload"

    def accepts(self, request: Request) -> str | None:  # noqa: ARG002 - it always applies
        """Every request can be measured as it stands."""
        return None

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Plan:
        """One measured set for each marginal asked for."""
        measured = request.marginals
        s = request.weights * measured.cells
        return decide(
            request,
            strategy=self.name,
            basis=MARGINAL,
            measured=measured,
            s=s,
            budgets=budgets,
            recovery=recovery,
        )
