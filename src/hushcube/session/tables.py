"""The cheapest next step under Laplace noise: a table, or a few Fourier coefficients.

A table T costs its rate r, whatever its size, and adds 1 / (v(r) cells(T)) to all spaces inside it, v the variance of
the noise. Where all attributes of B have two values, V_B has a single coefficient: the counts with an even number of
first values less those with an odd one. A row moves it by one, so that it costs its rate too, but adds 1 / v(r) to V_B:
as much as a table that costs sqrt(cells(B)) times more. So there are two ways to meet a target t of a question A:

    a table T <= A           the least r with  sum_{B <= A} m_B / (kappa_B + [B <= T] / (v(r) cells(T))) <= t cells(A)²
    the J spaces of two-     raised to one level,  s = J / (t cells(A)² - sum of m_B / kappa_B over the others)
    valued attributes of     at the cost of  sum r_B,  1 / v(r_B) = s - kappa_B
    which least is known

With nothing known the table A is cheapest; where most of its spaces are known from other tables, what lacks is one
coefficient, and costs a fraction. A wider table that serves later questions is considered too: [session/wider.py]

Where later questions E are declared, it is measured if

    rate - sum_{E <= table} chance_E (least rate for E before - least rate for E after),  chance_E = 1 - exp(-M share_E)

is less than for the cheapest step: what it will save, at the same target, outweighs what its size costs now.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from hushcube.costs.calibrate import below
from hushcube.designs.request import MAX_TABLE_CELLS
from hushcube.lattice.basis import FOURIER, MARGINAL
from hushcube.model.arrays import Floats, Ints, Marginal, subsets
from hushcube.model.noise import LAPLACE, SMALLEST_RATE, laplace_rate
from hushcube.model.privacy import LARGEST_BUDGET
from hushcube.session.choosing import Chooser, edge
from hushcube.session.knowledge import Knowledge, Spaces
from hushcube.session.steps import Step
from hushcube.session.wider import widest

_ALL_PARTS: Final = 6  # attributes of a question up to which all tables inside it are looked at, and coefficients
_NEXT_TO_NOTHING: Final = 2.0**-20  # of the largest rate: what a coefficient gets that is known well enough
_FREE: Final = 2  # for a question that is paid for, about one more is answered from what is known then


class Tables(Chooser):
    """Measures the question's own table, a part of it, or a wider one."""

    def for_variance(
        self, known: Knowledge, question: Marginal, t: float, left: Fraction, most: Fraction | None = None
    ) -> Step | None:
        """The cheapest step, or a wider table, if that will save more than it costs."""
        spaces = self.spaces(known, question)
        if spaces.variance() <= t:  # all that it asks for is a public total, which nobody has looked at yet
            return self._table((), math.inf)
        if (plain := self._cheapest(spaces, question, t)) is None:
            return None
        if not self.outlook.looks:
            return plain
        allowed = left if most is None else most
        if self.outlook.is_declared:
            return self._for_declared(known, spaces, question, t, left, allowed, plain)
        more = _FREE * float(left) / (plain.rate * self.per_budget) - 1
        table = widest(known, question, t, self._lacks(spaces, t), plain.rate, self.outlook.chance(question, more))
        return plain if table is None or not self.is_within(step := self._table(*table), allowed) else step

    def for_price(self, known: Knowledge, question: Marginal, price: Fraction) -> Step:
        """The table inside a question, or the coefficient, that makes the most of a price."""
        spaces, rate = self.spaces(known, question), self.table_budget(price)
        steps = [self._table(part, rate) for part in _parts(question)]
        if len(raisable := self._raisable(spaces, question)):
            steps.append(self._coefficients([spaces.marginals[raisable[0]]], np.array([rate]), within=rate))
        return min(steps, key=lambda step: spaces.variance(self._adds(spaces, step)))

    def alone(self, t: float) -> float:
        """What a table of variance t costs where nothing is known."""
        return self.per_budget * laplace_rate(t)

    def _cheapest(self, spaces: Spaces, question: Marginal, t: float) -> Step | None:
        """The cheapest of the tables inside a question, and of its coefficients, that meet its target."""
        rates = ((part, self._least_rate(spaces, part, t)) for part in _parts(question))
        steps = [self._table(part, rate) for part, rate in rates if rate is not None]
        if (raised := self._raised(spaces, question, t)) is not None:
            steps.append(raised)
        return min(steps, key=lambda step: step.rate, default=None)

    def _for_declared(
        self,
        known: Knowledge,
        spaces: Spaces,
        question: Marginal,
        t: float,
        left: Fraction,
        allowed: Fraction,
        plain: Step,
    ) -> Step:
        """The cheapest step, or a table that holds declared questions too."""
        chances = self.outlook.chances(float(left) / self.alone(t) - 1)

        def net(step: Step) -> float:
            held = ((self.spaces(known, E), E, chance) for E, chance in chances.items() if set(E) <= set(step.answers))
            return step.rate - sum(chance * self._saved(own, E, t, self._adds(own, step)) for own, E, chance in held)

        steps = [plain]
        for table in dict.fromkeys(tuple(sorted({*question, *E})) for E in chances):
            rate = self._least_rate(spaces, table, t) if known.cells(table) <= MAX_TABLE_CELLS else None
            if rate is not None and self.is_within(step := self._table(table, rate), allowed):
                steps.append(step)
        return min(steps, key=net)

    def _saved(self, spaces: Spaces, question: Marginal, t: float, added: Floats) -> float:
        """How much less a question needs, at the same target, with so much more information on it."""
        richer = replace(spaces, information=spaces.information + added)
        now, then = (None if each.variance() <= t else self._cheapest(each, question, t) for each in (spaces, richer))
        return (0.0 if now is None else now.rate) - (0.0 if then is None else then.rate)

    # -------------------------------------------------------------------------------------------------------- tables

    def _table(self, table: Marginal, rate: float) -> Step:
        budgets = {table: rate}
        if self.account.total_is_public:
            budgets[()] = math.inf
        return Step(MARGINAL, budgets, table)

    def _least_rate(self, spaces: Spaces, part: Marginal, t: float) -> float | None:
        """The least rate of a table that meets a question's target together with what is known."""
        if (kappa := self._lacks(spaces, t, part)) is None:
            return None
        rate = laplace_rate(1 / (kappa * self._cells(part)))
        return rate if rate <= LARGEST_BUDGET else None

    def _lacks(self, spaces: Spaces, t: float, part: Marginal | None = None) -> float | None:
        """The information that lacks on all spaces inside a table, or on all; None where no information suffices."""
        inside = 1.0 if part is None else np.array([float(set(B) <= set(part)) for B in spaces.marginals])
        most = 1 / float(LAPLACE.variance(np.array(float(LARGEST_BUDGET))))

        def is_met(kappa: float) -> bool:
            return spaces.variance(kappa * inside) <= t

        return edge(is_met, most)[1] if is_met(most) else None

    def _adds(self, spaces: Spaces, step: Step) -> Floats:
        """What a step adds to the spaces of a question."""
        added = step.information(self.sizes)
        return np.array([added.get(B, 0.0) for B in spaces.marginals])

    def _cells(self, table: Marginal) -> int:
        return math.prod(self.sizes[i] for i in table)

    # -------------------------------------------------------------------------------------------------- coefficients

    def _raisable(self, spaces: Spaces, question: Marginal) -> Ints:
        """The spaces that have a single coefficient, those first of which least is known."""
        if len(question) > _ALL_PARTS:
            return np.zeros(0, dtype=np.int64)
        single = np.flatnonzero((spaces.dimensions == 1) & np.isfinite(spaces.information))
        return single[np.argsort(spaces.information[single], kind="stable")]

    def _raised(self, spaces: Spaces, question: Marginal, t: float) -> Step | None:
        """The coefficients that are cheapest to raise to one level at which a question meets its target."""
        raisable = self._raisable(spaces, question)
        with np.errstate(divide="ignore"):
            each = spaces.dimensions / spaces.information
        best: tuple[float, Ints, Floats] | None = None
        for J in range(1, len(raisable) + 1):
            chosen = raisable[:J]
            room = t * spaces.asked**2 - float(np.delete(each, chosen).sum())
            lacks = J / room - spaces.information[chosen] if room > 0 else np.zeros(0)
            if not len(lacks) or lacks.min() <= 0:  # the others say too little, or fewer do
                continue
            rates = np.array([laplace_rate(1 / kappa) for kappa in lacks.tolist()])
            if rates.max() <= LARGEST_BUDGET and (best is None or rates.sum() < best[0]):
                best = float(rates.sum()), chosen, rates
        return None if best is None else self._coefficients([spaces.marginals[at] for at in best[1]], best[2])

    def _coefficients(self, raised: list[Marginal], rates: Floats, within: float = math.inf) -> Step:
        """Coefficients with their rates, and the others of the smallest table that holds them with next to nothing.

        So the step answers that table by itself. All rates together stay `within` a limit.
        """
        table = tuple(sorted({i for B in raised for i in B}))
        least = max(_NEXT_TO_NOTHING * float(rates.max()), SMALLEST_RATE)
        own = dict(zip(raised, rates.tolist(), strict=True))
        inside = subsets(table)
        spare = Fraction(within) - Fraction(least) * (len(inside) - len(raised)) if math.isfinite(within) else None
        budgets = {B: own.get(B, least) if spare is None else min(own.get(B, least), below(spare)) for B in inside}
        if self.account.total_is_public:
            budgets[()] = math.inf
        return Step(FOURIER, budgets, table)


def _parts(question: Marginal) -> list[Marginal]:
    """The tables inside a question that may be measured for it, itself first."""
    if len(question) <= _ALL_PARTS:
        return subsets(question)[::-1]
    return [question, *(tuple(i for i in question if i != out) for out in question)]
