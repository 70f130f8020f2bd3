"""Measure the marginals that are asked for.

S = Q: one set for each A in the workload, every column has one 1 in it, so C_A = 1.
s_A = a_A cells(A); budgets by its cube root (Laplace) or square root (Gaussian).   [Yaroslavtsev et al. 2013, Q, Q+]
A table of ranges counts through the cells that it is summed from.
Without recovery the tables contradict each other; least squares makes them agree and is never worse.
`all-cuboids` is the same under the name of another paper, K_all, its second baseline; `auto` looks at `workload`:
Var(A) = 2 |L|²/eps² with even budgets, however large A is.                                [Ding et al. 2011, Theorem 2]
The name there is `All`, but the word `all` compares strategies on the command line.
"""

from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.lattice.basis import MARGINAL
from hushcube.strategies.strategy import Strategy


class WorkloadTables(Strategy):
    """The workload's own tables."""

    name = "workload"
    measures = "each of the tables asked for"

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """One measured set for each marginal asked for."""
        return self.decide(request, budgets, recovery, MARGINAL, request.marginals, request.energies)


class AllCuboids(WorkloadTables):
    """The cuboids asked for."""

    name = "all-cuboids"
    measures = "the tables asked for, as K_all of Ding et al."
    automatic = False
