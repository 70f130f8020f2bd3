"""The cube that a session knows a part of: what it says about a question, and what to measure next for it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.stacked.design import StackedDesign
from hushcube.lattice.basis import FOURIER, HELMERT
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.session.choosing import Chooser
from hushcube.session.knowledge import Knowledge
from hushcube.session.policy import Outlook, Policy
from hushcube.session.steps import Step, costing, question_word
from hushcube.session.tables import Tables
from hushcube.session.water_level import WaterLevel


@dataclass(frozen=True, eq=False)
class Proposal:
    """A step that could be taken, and the variance that the worst cell of its question has then."""

    step: Step
    price: Fraction
    variance: float


class Cube(ABC):
    """What is known, one step after the other; questions are marginals of the schema."""

    def __init__(self, schema: Schema, account: Privacy, policy: Policy) -> None:
        self.schema, self.account = schema, account
        self.chooser = chooser_for(schema.sizes, account, Outlook(policy, schema.declared))
        self.steps: list[tuple[LatticeDesign, Measurement]] = []

    @property
    def version(self) -> int:
        """How many steps have been taken."""
        return len(self.steps)

    def learn(self, design: LatticeDesign, measurement: Measurement) -> None:
        """Take in what a step measured."""
        self.steps.append((design, measurement))

    def words(self) -> list[str]:
        """The tables that steps so far can answer by themselves, each once."""
        return list(dict.fromkeys(word for design, _ in self.steps for word in design.workload.words))

    def joined(self, questions: list[str], allowed: Fraction | None = None) -> tuple[StackedDesign, Measurement]:
        """All steps as one design, with one measurement, that answers some questions.

        Each step may have been chosen by earlier answers, so that the guarantee of what is published is all that the
        account was `allowed` to spend; what the steps spent is told beside it.                    [docs/privacy.md, 6]
        """
        designs, measurements = zip(*self.steps, strict=True)
        workload = Workload.parse(questions, self.schema.declared)
        guarantee = None if allowed is None else costing(allowed, self.account)
        return StackedDesign.join(designs, measurements, workload, allowed=guarantee)

    @abstractmethod
    def variances(self, question: Marginal) -> Floats | None:
        """The variance of each cell, shape () where all are alike; None where the question cannot be answered yet."""

    @abstractmethod
    def table(self, question: Marginal) -> Floats:
        """The estimate of each cell of a question that can be answered."""

    @abstractmethod
    def for_variance(self, question: Marginal, t: float, left: Fraction, most: Fraction) -> Proposal | None:
        """The cheapest step after which no cell of a question has a variance above t."""

    @abstractmethod
    def for_price(self, question: Marginal, price: Fraction) -> Proposal:
        """The step that makes the most of a price."""

    def worst(self, question: Marginal) -> float:
        """The largest variance of a cell; infinite where the question cannot be answered yet."""
        found = self.variances(question)
        return math.inf if found is None else float(found.max())

    def proposed(self, step: Step, variance: float) -> Proposal:
        """A step with its price."""
        return Proposal(step, step.price(self.schema.sizes, self.account), variance)


class LatticeCube(Cube):
    """Attributes at their declared values: everything happens per residual space."""

    def __init__(self, schema: Schema, account: Privacy, policy: Policy) -> None:
        super().__init__(schema, account, policy)
        self._known = Knowledge(schema.sizes)

    def learn(self, design: LatticeDesign, measurement: Measurement) -> None:
        """Take in what a step measured, space by space."""
        super().learn(design, measurement)
        self._known.learn(design, measurement)

    def variances(self, question: Marginal) -> Floats | None:
        """One number: all cells of a table are alike."""
        variance = self._known.variance(question)
        return np.array(variance) if math.isfinite(variance) else None

    def table(self, question: Marginal) -> Floats:
        """From the estimates of its residual spaces."""
        return self._known.table(question)

    def for_variance(self, question: Marginal, t: float, left: Fraction, most: Fraction) -> Proposal | None:
        """A water level, the cheapest table, or coefficients of it."""
        step = self.chooser.for_variance(self._known, question, t, left, most)
        return None if step is None else self.proposed(step, self._after(question, step))

    def for_price(self, question: Marginal, price: Fraction) -> Proposal:
        """The highest level, or the best table, that it pays for."""
        step = self.chooser.for_price(self._known, question, price)
        return self.proposed(step, self._after(question, step))

    def _after(self, question: Marginal, step: Step) -> float:
        spaces, added = self._known.spaces(question), step.information(self.schema.sizes)
        return spaces.variance(np.array([added.get(B, 0.0) for B in spaces.marginals]))


def chooser_for(sizes: tuple[int, ...], account: Privacy, outlook: Outlook) -> Chooser:
    """What chooses steps under the noise of an account."""
    return (Tables if account.is_pure else WaterLevel)(sizes, account, outlook)


def in_words(schema: Schema, step: Step) -> str:
    """What a step measures."""
    if step.basis is HELMERT:
        parts = len(step.budgets)
        return f"{parts:,} residual space{'s' * (parts > 1)} of {question_word(schema, step.answers)}"
    if step.basis is FOURIER:
        parts = len(step.raised)
        return f"{parts:,} Fourier coefficient{'s' * (parts > 1)} of {question_word(schema, step.answers)}"
    return f"the table {question_word(schema, step.answers)}"
