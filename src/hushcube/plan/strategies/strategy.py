"""The contract of a strategy, and the step they share: dividing the budget and checking the result."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hushcube.lattice.basis import Basis
from hushcube.lattice.family import Family
from hushcube.plan import calibrate, error
from hushcube.plan.budgets import divide
from hushcube.plan.plan import Budgets, Plan, Recovery, counted_tables
from hushcube.plan.request import Request


class Strategy(Protocol):
    """Decides what to measure for a request, without data."""

    @property
    def name(self) -> str:
        """The word on the command line."""

    def accepts(self, request: Request) -> str | None:
        """Why the strategy cannot serve the request, or None where it can."""

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Plan:
        """The decision for a request that is accepted."""


def decide(
    request: Request,
    *,
    strategy: str,
    basis: Basis,
    measured: Family,
    s: NDArray[np.float64],
    budgets: Budgets,
    recovery: Recovery,
    proportions: NDArray[np.float64] | None = None,
) -> Plan:
    """Divide the guarantee among the measured sets, whose variances weigh s_B in the error, under the best proof.

    Optimal budgets are the closed form for s, or the given proportions where a search has found better ones.

    Under replace-one the total is public: it is measured too, for nothing.
    """
    if request.privacy.neighbours == "replace-one" and not len(measured.levels[0]):
        measured = Family(measured.sizes, [np.zeros((1, 0), np.int32), *measured.levels[1:]])
        s = np.concatenate([[0.0], s])
        proportions = None if proportions is None else np.concatenate([[1.0], proportions])
    plans = []
    for proof in calibrate.proofs(request.privacy, tables=counted_tables(basis, measured)):
        shares = divide(basis, measured, s, request.privacy, budgets, proof, proportions)
        plans.append(Plan(request, strategy, budgets, recovery, proof, basis, measured, shares))
    return plans[0] if len(plans) == 1 else min(plans, key=error.weighted_variance)
