"""Measure each residual space by itself: the optimum over all linear strategies for Gaussian noise.

V_B for every B in the workload's closure, in the integer Helmert basis, noise in proportion to the rows' norms:

    C_B = prod_B (1 - 1/n_i)        s_B = m_B cells(B) sum_{A >= B} a_A / cells(A)
    variance_B ∝ sqrt(C_B / s_B), error (sum_B sqrt(C_B s_B))² / (2 rho)          [Xiao et al. 2023, ResidualPlanner]

For pure epsilon the centred tables themselves get Laplace noise, C_B = prod_B 2 (1 - 1/n_i): consistent, but poor.
Each space is measured once, so the three recoveries coincide.
"""

import numpy as np

from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.lattice.basis import CENTRED, HELMERT, with_dimension
from hushcube.strategies.strategy import Strategy


class Residual(Strategy):
    """The residual spaces of the workload's closure."""

    name = "residual"
    measures = "what each table adds to the smaller ones"

    def leads(self, request: Request) -> bool:
        """The optimum for Gaussian noise."""
        return not request.privacy.is_pure

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """One measured set for each residual space."""
        measured = with_dimension(request.spaces)
        own = np.concatenate([request.spaces.find(level) for level in measured.levels])
        s = measured.cells * request.space_weights[own]
        basis = CENTRED if request.privacy.is_pure else HELMERT
        return self.decide(request, budgets, recovery, basis, measured, s)
