"""A step of a session: what is measured for a question, as an ordinary design, and what it is charged.

The cost is computed exactly from what will be drawn; the price is that cost for all rows of a person, rounded up to a
multiple of 10^-15. A design cannot exist that costs more than its guarantee, and a step's guarantee is its price.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from hushcube.costs.row_cost import cost_of_sets
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.request import Request
from hushcube.lattice.basis import FOURIER, HELMERT, MARGINAL, Basis
from hushcube.lattice.family import Family
from hushcube.ledger.amounts import in_full, rounded_up
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.noise import GAUSSIAN, LAPLACE
from hushcube.model.privacy import SMALLEST_BUDGET, Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.session.knowledge import seen

_STRATEGIES: Final = {HELMERT.name: "residual", MARGINAL.name: "workload", FOURIER.name: "fourier"}
_COUNTS: Final = 2.0**-10  # of the largest budget: less is next to nothing


@dataclass(frozen=True, eq=False)
class Step:
    """Sets of attributes to be measured in a basis, each with a budget; infinite for a total that is public."""

    basis: Basis
    budgets: Mapping[Marginal, float]
    answers: Marginal
    """The table that can be answered from this step alone."""

    @property
    def rate(self) -> float:
        """All budgets together, but for what is public: what the step costs a row that comes, under Laplace noise."""
        return math.fsum(budget for budget in self.budgets.values() if math.isfinite(budget))

    @property
    def raised(self) -> list[Marginal]:
        """The sets that are measured for their own sake; others get next to nothing, or are public."""
        most = max((budget for budget in self.budgets.values() if math.isfinite(budget)), default=0.0)
        return [B for B, budget in self.budgets.items() if most * _COUNTS < budget < math.inf]

    def information(self, sizes: Sequence[int]) -> dict[Marginal, float]:
        """What the step adds to each space."""
        law = GAUSSIAN if self.basis is HELMERT else LAPLACE
        found: dict[Marginal, float] = {}
        for marginal, budget in self.budgets.items():
            for B, kappa in seen(self.basis, law, marginal, budget, sizes):
                found[B] = found.get(B, 0.0) + kappa
        return found

    def price(self, sizes: Sequence[int], account: Privacy) -> Fraction:
        """What one person is charged, in epsilon or rho."""
        measured = Family.of(self.budgets, sizes)
        row = cost_of_sets(self.basis, measured, self._in_order(measured), costing(Fraction(1), account))
        person = row * account.rows_per_person ** (1 if account.is_pure else 2)
        return max(in_full(rounded_up(person)), SMALLEST_BUDGET)

    def design(self, schema: Schema, account: Privacy) -> LatticeDesign:
        """The step as an ordinary design, whose guarantee is its price; its workload knows its own levels alone."""
        workload = Workload.parse(question_word(schema, self.answers), schema)
        named = {tuple(schema.names[i] for i in marginal): budget for marginal, budget in self.budgets.items()}
        placed = replace(self, budgets={workload.schema.marginal(names): budget for names, budget in named.items()})
        request = Request(workload, costing(self.price(schema.sizes, account), account))
        measured = Family.of(placed.budgets, workload.schema.sizes)
        strategy = _STRATEGIES[self.basis.name]
        budgets = placed._in_order(measured)
        return LatticeDesign(request, strategy, "given", "gls", "direct", budgets, self.basis, measured)

    def _in_order(self, measured: Family) -> Floats:
        return np.array([self.budgets[marginal] for marginal in measured])


def question_word(schema: Schema, question: Marginal) -> str:
    """The workload word that asks for a question's table alone."""
    return schema.describe(question) if question else "0-way"


def costing(price: Fraction, account: Privacy) -> Privacy:
    """A price as a guarantee of its own, between the account's neighbours."""
    amounts = {"epsilon": price} if account.is_pure else {"rho": price}
    return Privacy.of(**amounts, neighbours=account.neighbours, rows_per_person=account.rows_per_person)
