"""Measure the full table; answer every marginal by summing it.

S = I: one set, all attributes, one cell for each combination; a marginal's cell sums N / cells(A) of them,
so its variance is variance * N / cells(A).                                            [Yaroslavtsev et al. 2013, I]
Best for small domains, and where nearly the whole cube is asked for.
"""

from __future__ import annotations

import numpy as np

from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.errors import readable
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.strategies.strategy import Strategy, decide


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
        return decide(
            request,
            strategy=self.name,
            basis=MARGINAL,
            measured=measured,
            s=np.ones(1),
            budgets=budgets,
            recovery=recovery,
        )
