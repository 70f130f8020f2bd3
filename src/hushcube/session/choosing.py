"""The cheapest next step for a question, given everything that is known; decided without data.

Gaussian noise. Residual spaces are measured one by one, and a unit of information on V_B costs m_B / 2 in rho
(add-remove). The least charge that brings the variance of a question A down to t raises every space to a common level,

    kappa_B <- max(kappa_B, s)      with  sum_{B <= A} m_B / max(kappa_B, s) = t cells(A)²       [docs/maths.md, 11]

since the last unit bought of every raised space must gain alike, m_B / kappa_B² for m_B / 2. With nothing known this is
measuring A itself, rho = 1 / (2t). A step that looks ahead raises B to s sqrt(n_B), where n_B questions share what B
costs [session/policy.py]. It meets the same target, and fits what is left if the plain one does: as sqrt(n_B) lies
between 1 and sqrt(1 + M), it costs at most (1 + sqrt(1 + M))² / (4 sqrt(1 + M)) < 1 + M times as much.
Spaces that are known well enough get next to nothing: so each step is a plan of its own that answers its question.

Laplace noise. A table costs its rate, whatever its size, and adds 1 / (variance cells(T)) to all spaces inside it. The
question's own table, or one inside it where the rest is known well enough, gets the least rate that meets the target
together with what is known. Where later questions E are declared, a table that holds some of them too is measured if

    rate - sum_{E <= table} chance_E (least rate for E before - least rate for E after),  chance_E = 1 - exp(-M share_E)

is less than for the question's own: what it will save, at the same target, outweighs what its size costs now.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from hushcube.costs.calibrate import below
from hushcube.designs.request import MAX_TABLE_CELLS
from hushcube.lattice.basis import HELMERT, MARGINAL
from hushcube.ledger.amounts import in_full, rounded_down
from hushcube.model.arrays import Floats, Marginal, subsets
from hushcube.model.noise import LAPLACE, SMOOTH
from hushcube.model.privacy import LARGEST_BUDGET, Privacy
from hushcube.session.knowledge import Knowledge, Spaces
from hushcube.session.policy import Outlook
from hushcube.session.steps import Step

_NEXT_TO_NOTHING: Final = 2.0**-20  # of the level: what a space gets that is known well enough
_ALL_PARTS: Final = 6  # attributes of a question up to which all tables inside it are looked at
_ROUNDING: Final = 1e-12
_TINY: Final = 1e-100  # a level, or information, that is as good as none


@dataclass(frozen=True, eq=False)
class Chooser:
    """Chooses steps for an account's guarantee, with an outlook on what is to come."""

    sizes: tuple[int, ...]
    account: Privacy
    outlook: Outlook

    def for_variance(
        self, known: Knowledge, question: Marginal, t: float, left: Fraction, most: Fraction | None = None
    ) -> Step | None:
        """The step after which every cell of a question has a variance of at most t; None where no step reaches it.

        What is left to be spent says how far it is worth looking ahead, as long as the step costs no more than `most`
        (all that is left, unless given). The cheapest step may cost more than either.
        """
        spaces = self._spaces(known, question)
        if self.account.is_pure:
            return self._widest(known, spaces, question, t, left, left if most is None else most)
        uses = self.outlook.uses(spaces.marginals, float(left) / self.alone(t) - 1)
        ahead = self._water_level(spaces, question, t, np.sqrt(uses))
        if ahead is None or ahead.price(self.sizes, self.account) <= (left if most is None else most):
            return ahead
        return self._water_level(spaces, question, t, np.ones(len(uses)))

    def for_price(self, known: Knowledge, question: Marginal, price: Fraction) -> Step:
        """The step that costs at most a price, rounded down, and leaves a question with the least variance."""
        price = in_full(rounded_down(price))
        spaces = self._spaces(known, question)
        if self.account.is_pure:
            rate = self.table_budget(price)
            parts = _parts(question)
            best = min(parts, key=lambda part: spaces.variance(self._adds(part, rate) * _inside(spaces, part)))
            return self._measured(best, rate)
        flat = np.ones(len(spaces.marginals))

        def at(level: float) -> Step:
            return self._raised(spaces, question, _added(spaces, flat, level))

        def is_over(level: float) -> bool:
            return at(level).price(self.sizes, self.account) > price

        top = _top(spaces, flat)
        return at(edge(is_over, top, within=1e-6)[0] if is_over(top) else top)

    def table_budget(self, price: Fraction) -> float:
        """The budget of a table that costs a price: its Laplace rate, or 1 / (2 variance)."""
        k = self.account.rows_per_person
        return below(in_full(rounded_down(price)) / (self.moved * (k if self.account.is_pure else k**2)))

    def alone(self, t: float) -> float:
        """What a table of variance t costs where nothing is known."""
        k = self.account.rows_per_person
        return self.moved * (k * laplace_rate(t) if self.account.is_pure else k**2 / (2 * t))

    @property
    def moved(self) -> int:
        """How many cells of a table change with a row: it comes or goes, or leaves one cell for another."""
        return 2 if self.account.neighbours == "replace-one" else 1

    def _spaces(self, known: Knowledge, question: Marginal) -> Spaces:
        """What is known of a question's spaces; a public total is, before anything is measured."""
        spaces = known.spaces(question)
        if not self.account.total_is_public:
            return spaces
        public = np.array([not B for B in spaces.marginals])
        return replace(spaces, information=np.where(public, np.inf, spaces.information))

    def _raised(self, spaces: Spaces, question: Marginal, added: Floats) -> Step:
        """Residual spaces with so much more information: beta = kappa cells(B) / 2."""
        public = np.isinf(spaces.information)
        budgets = np.where(public, np.inf, added * spaces.cells / 2)
        return Step(HELMERT, dict(zip(spaces.marginals, budgets.tolist(), strict=True)), question)

    def _water_level(self, spaces: Spaces, question: Marginal, t: float, shape: Floats) -> Step | None:
        """The least level, every space in proportion to its shape, at which a question meets its target."""

        def is_met(level: float) -> bool:
            return spaces.variance(_added(spaces, shape, level)) <= t

        if not is_met(top := _top(spaces, shape)):
            return None
        return self._raised(spaces, question, _added(spaces, shape, edge(is_met, top)[1]))

    def _cheapest_table(self, spaces: Spaces, question: Marginal, t: float) -> tuple[Marginal, float] | None:
        """The cheapest of the tables inside a question that meet its target, and its rate."""
        rates = {part: rate for part in _parts(question) if (rate := self._least_rate(spaces, part, t)) is not None}
        return min(rates.items(), key=lambda item: item[1]) if rates else None

    def _widest(
        self, known: Knowledge, spaces: Spaces, question: Marginal, t: float, left: Fraction, most: Fraction
    ) -> Step | None:
        """The cheapest table, or one that also holds expected questions, if that will save more than it costs."""
        if spaces.variance() <= t:  # all that it asks for is a public total, which nobody has looked at yet
            return self._measured((), math.inf)
        if (plain := self._cheapest_table(spaces, question, t)) is None:
            return None
        chances = self.outlook.chances(float(left) / self.alone(t) - 1)

        def net(choice: tuple[Marginal, float]) -> float:
            table, rate = choice
            held = ((known.spaces(E), E, chance) for E, chance in chances.items() if set(E) <= set(table))
            return rate - sum(chance * self._saved(own, E, t, self._adds(table, rate)) for own, E, chance in held)

        choices = [plain]
        for table in dict.fromkeys(tuple(sorted({*question, *E})) for E in chances):
            rate = self._least_rate(spaces, table, t) if self._cells(table) <= MAX_TABLE_CELLS else None
            if rate is not None and self._measured(table, rate).price(self.sizes, self.account) <= most:
                choices.append((table, rate))
        return self._measured(*min(choices, key=net))

    def _saved(self, spaces: Spaces, question: Marginal, t: float, kappa: float) -> float:
        """How much less a question's own table needs, at the same target, with so much more information on it."""
        now = 0.0 if spaces.variance() <= t else self._least_rate(spaces, question, t) or 0.0
        richer = replace(spaces, information=spaces.information + kappa)
        return now - (0.0 if richer.variance() <= t else self._least_rate(richer, question, t) or 0.0)

    def _measured(self, table: Marginal, rate: float) -> Step:
        budgets = {table: rate}
        if self.account.total_is_public:
            budgets[()] = math.inf
        return Step(MARGINAL, budgets, table)

    def _least_rate(self, spaces: Spaces, part: Marginal, t: float) -> float | None:
        """The least rate of a table inside a question that meets its target together with what is known."""
        inside = _inside(spaces, part)

        def is_met(kappa: float) -> bool:
            return spaces.variance(kappa * inside) <= t

        if not is_met(most := self._adds(part, LARGEST_BUDGET)):
            return None
        return laplace_rate(1 / (edge(is_met, most)[1] * self._cells(part)))

    def _adds(self, table: Marginal, rate: float) -> float:
        return 1 / (float(LAPLACE.variance(np.array(rate))) * self._cells(table))

    def _cells(self, table: Marginal) -> int:
        return math.prod(self.sizes[i] for i in table)


def laplace_rate(variance: float) -> float:
    """The rate of the discrete Laplace law that has a variance: 1 / (2 sinh²(r/2)) is it.   [model/noise.py]

    >>> round(laplace_rate(1.8413471884), 9)
    1.0
    """
    return 2 * math.asinh(math.sqrt(0.5 / variance))


def _parts(question: Marginal) -> list[Marginal]:
    """The tables inside a question that may be measured for it, itself first."""
    if len(question) <= _ALL_PARTS:
        return subsets(question)[::-1]
    return [question, *(tuple(i for i in question if i != out) for out in question)]


def _inside(spaces: Spaces, table: Marginal) -> Floats:
    """1 for the spaces that a table sees."""
    return np.array([float(set(B) <= set(table)) for B in spaces.marginals])


def _added(spaces: Spaces, shape: Floats, level: float) -> Floats:
    """What raises each space to its share of a level.

    No more at a time than keeps the noise of every coefficient wide enough to have the continuous law's variance.
    """
    most = np.array([2.0 ** len(B) for B in spaces.marginals]) / (SMOOTH * spaces.cells)
    wanted = level * shape
    return np.minimum(np.maximum(wanted - spaces.information, wanted * _NEXT_TO_NOTHING), most)


def _top(spaces: Spaces, shape: Floats) -> float:
    """A level at which every space gets as much as it may at a time."""
    known = np.where(np.isfinite(spaces.information), spaces.information, 0.0)
    return float(((known + 1) / shape).max())


def edge(holds: Callable[[float], bool], top: float, within: float = _ROUNDING) -> tuple[float, float]:
    """The last number found at which something does not hold and the first at which it does, as it does at the top."""
    low, high = 0.0, top
    while high - low > within * high and high > _TINY:
        middle = math.sqrt(low * high) if low else high * 2.0**-16
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
