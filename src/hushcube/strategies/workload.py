"""Measure the marginals that are asked for.

S = Q: one set for each A in the workload, every column has one 1 in it, so C_A = 1.
s_A = a_A cells(A); budgets by its cube root (Laplace) or square root (Gaussian).   [Yaroslavtsev et al. 2013, Q, Q+]
A table of ranges counts through the cells that it is summed from.
Without recovery the tables contradict each other; least squares makes them agree and is never worse.
"""

from __future__ import annotations

from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.lattice.basis import MARGINAL
from hushcube.strategies.strategy import Strategy, decide


class WorkloadTables(Strategy):
    """The workload's own tables."""

    name = "workload"
    measures = "each of the tables asked for"

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """One measured set for each marginal asked for."""
        measured = request.marginals
        return decide(
            request,
            strategy=self.name,
            basis=MARGINAL,
            measured=measured,
            s=request.energies,
            budgets=budgets,
            recovery=recovery,
        )
