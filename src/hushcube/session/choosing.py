"""How the next step for a question is chosen: the cheapest one, given everything that is known; decided without data.

Under Gaussian noise only what lacks is bought, space by space [session/water_level.py]; under Laplace noise it is a
table, or a few Fourier coefficients [session/tables.py].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from hushcube.costs.calibrate import below
from hushcube.ledger.amounts import in_full, rounded_down
from hushcube.model.arrays import Marginal
from hushcube.model.privacy import Privacy
from hushcube.session.knowledge import Knowledge, Spaces
from hushcube.session.policy import Outlook
from hushcube.session.steps import Step

_ROUNDING: Final = 1e-12
_TINY: Final = 1e-100  # a level, or information, that is as good as none


@dataclass(frozen=True, eq=False)
class Chooser(ABC):
    """Chooses steps for an account's guarantee, with an outlook on what is to come."""

    sizes: tuple[int, ...]
    account: Privacy
    outlook: Outlook

    @abstractmethod
    def for_variance(
        self, known: Knowledge, question: Marginal, t: float, left: Fraction, most: Fraction | None = None
    ) -> Step | None:
        """The step after which every cell of a question has a variance of at most t; None where no step reaches it.

        What is left to be spent says how far it is worth looking ahead, as long as the step costs no more than `most`
        (all that is left, unless given). The cheapest step may cost more than either.
        """

    @abstractmethod
    def for_price(self, known: Knowledge, question: Marginal, price: Fraction) -> Step:
        """The step that costs at most a price, rounded down, and leaves a question with the least variance."""

    @abstractmethod
    def alone(self, t: float) -> float:
        """What a table of variance t costs where nothing is known."""

    @property
    def moved(self) -> int:
        """How many cells of a table change with a row: it comes or goes, or leaves one cell for another."""
        return 2 if self.account.neighbours == "replace-one" else 1

    @property
    def per_budget(self) -> int:
        """What a unit of a table's budget costs a person: moved cells, for each of the rows, or squared under rho."""
        k = self.account.rows_per_person
        return self.moved * (k if self.account.is_pure else k**2)

    def table_budget(self, price: Fraction) -> float:
        """The budget of a table that costs a price: its Laplace rate, or 1 / (2 variance)."""
        return below(in_full(rounded_down(price)) / self.per_budget)

    def spaces(self, known: Knowledge, question: Marginal) -> Spaces:
        """What is known of a question's spaces; a public total is, before anything is measured."""
        spaces = known.spaces(question)
        if not self.account.total_is_public:
            return spaces
        public = np.array([not B for B in spaces.marginals])
        return replace(spaces, information=np.where(public, np.inf, spaces.information))

    def is_within(self, step: Step, most: Fraction) -> bool:
        """Whether a step costs no more than that."""
        return step.price(self.sizes, self.account) <= most


def edge(holds: Callable[[float], bool], top: float, within: float = _ROUNDING) -> tuple[float, float]:
    """The last number found at which something does not hold and the first at which it does, as it does at the top."""
    low, high = 0.0, top
    while high - low > within * high and high > _TINY:
        middle = math.sqrt(low * high) if low else high * 2.0**-16
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
