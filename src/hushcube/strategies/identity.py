"""Measure the full table; answer every marginal by summing it.

S = I: one set, all attributes, one cell for each combination; a marginal's cell sums N / cells(A) of them,
so its variance is variance * N / cells(A).                                            [Yaroslavtsev et al. 2013, I]
Best for small domains, and where nearly the whole cube is asked for.
`base` is the same under the name of another paper, K_base, its first baseline; `auto` looks at `identity`:
Var(A) = 2/eps² prod_{i not in A} n_i.                                                     [Ding et al. 2011, Theorem 3]
"""

import numpy as np

from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.errors import readable
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.strategies.strategy import Strategy


class Identity(Strategy):
    """The base table alone."""

    name = "identity"
    measures = "the full table, summed to all others"

    def accepts(self, request: Request) -> str | None:
        """Refuse domains that cannot be held."""
        cells = request.schema.cells(tuple(range(len(request.schema))))
        if cells > MAX_TABLE_CELLS:
            return f"the full table has {readable(cells)} cells, more than {MAX_TABLE_CELLS:,}"
        return None

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """One measured set with the whole budget."""
        measured = Family.of([tuple(range(len(request.schema)))], request.schema.sizes)
        return self.decide(request, budgets, recovery, MARGINAL, measured, np.ones(1))


class Base(Identity):
    """The base cuboid alone."""

    name = "base"
    measures = "the full table, as K_base of Ding et al."
    automatic = False
