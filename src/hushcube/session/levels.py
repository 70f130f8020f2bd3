"""A cube with levels: tables are measured at the levels that are asked for, and combined by least squares.

Tables at several levels of an attribute overlap in other ways than residual spaces do, and where groups are of unequal
sizes their cells have unequal errors [lattice/nested.py]. A question has its own table measured, with the least budget
that meets the target together with all tables before it: the stack of them says what its errors would be.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.stacked.design import StackedDesign
from hushcube.errors import PlanError
from hushcube.lattice.basis import MARGINAL
from hushcube.model.arrays import Floats, Marginal, position_rows
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.session.choosing import edge
from hushcube.session.cube import Cube, Proposal
from hushcube.session.policy import Policy
from hushcube.session.steps import Step, question_word


def at_all_levels(schema: Schema) -> Schema:
    """A schema in which every level of every attribute has a place of its own."""
    declared = schema.declared.attributes
    return schema.at_levels({each.name: {None, *(level.name for level in each.grouped)} for each in declared})


class LevelCube(Cube):
    """Attributes at any of their declared levels."""

    def __init__(self, schema: Schema, account: Privacy, policy: Policy) -> None:
        super().__init__(schema, account, policy)
        self._found: dict[Marginal, tuple[StackedDesign, Measurement] | None] = {}

    def learn(self, design: LatticeDesign, measurement: Measurement) -> None:
        """Take in what a step measured; all tables are combined again."""
        super().learn(design, measurement)
        self._found.clear()

    def variances(self, question: Marginal) -> Floats | None:
        """Cell by cell, where groups differ."""
        found = self._joined(question)
        return None if found is None else self._errors(found[0], question)

    def table(self, question: Marginal) -> Floats:
        """Least squares over all tables."""
        found = self._joined(question)
        if found is None:
            raise KeyError(question)
        stack, measurement = found
        own = self._placed(stack, question)
        return np.asarray(stack.answers(measurement).tables(position_rows(own), stack.schema.shape(own))[0])

    def for_variance(self, question: Marginal, t: float, left: Fraction, most: Fraction) -> Proposal | None:  # noqa: ARG002 - it does not look ahead
        """The question's own table, with the least budget that meets the target."""
        alone = self.chooser.table_budget(Fraction(self.chooser.alone(t)) * Fraction(10**9 + 1, 10**9))
        budget = edge(lambda own: self._after(question, own) <= t, alone, within=1e-4)[1]
        return self.proposed(self._step(question, budget), self._after(question, budget))

    def for_price(self, question: Marginal, price: Fraction) -> Proposal:
        """The question's own table."""
        budget = self.chooser.table_budget(price)
        return self.proposed(self._step(question, budget), self._after(question, budget))

    def _step(self, question: Marginal, budget: float) -> Step:
        budgets = {question: budget}
        if self.account.total_is_public:
            budgets[()] = np.inf
        return Step(MARGINAL, budgets, question)

    def _after(self, question: Marginal, budget: float) -> float:
        """The largest variance of a cell, with the question's table measured once more."""
        more = self._step(question, budget).design(self.schema, self.account)
        stack = StackedDesign.of([*(design for design, _ in self.steps), more], self._workload(question))
        return float(self._errors(stack, question).max())

    def _joined(self, question: Marginal) -> tuple[StackedDesign, Measurement] | None:
        """All steps as one, to answer a question; None where too little is known for that."""
        if question not in self._found:
            try:
                self._found[question] = self.joined(list(self._workload(question).words)) if self.steps else None
            except PlanError:  # too little is measured to answer the workload
                self._found[question] = None
        return self._found[question]

    def _workload(self, question: Marginal) -> Workload:
        """The question, beside all that was measured: levels that no table asks for have no place."""
        return Workload.parse([*self.words(), question_word(self.schema, question)], self.schema.declared)

    def _placed(self, stack: StackedDesign, question: Marginal) -> Marginal:
        return stack.schema.marginal([self.schema.names[i] for i in question])

    def _errors(self, stack: StackedDesign, question: Marginal) -> Floats:
        return np.asarray(stack.errors.cell_variance_table(self._placed(stack, question)))
