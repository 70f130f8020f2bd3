"""The cheapest next step under Gaussian noise.

Residual spaces are measured one by one, and a unit of information on V_B costs m_B / 2 in rho (add-remove). The least
charge that brings the variance of a question A down to t raises every space to a common level,

    kappa_B <- max(kappa_B, s)      with  sum_{B <= A} m_B / max(kappa_B, s) = t cells(A)²       [docs/maths.md, 11]

since the last unit bought of every raised space must gain alike, m_B / kappa_B² for m_B / 2. With nothing known this is
measuring A itself, rho = 1 / (2t). A step that looks ahead raises B to s sqrt(n_B), where n_B questions share what B
costs [session/policy.py]. It meets the same target, and fits what is left if the plain one does: as sqrt(n_B) lies
between 1 and sqrt(1 + M), it costs at most (1 + sqrt(1 + M))² / (4 sqrt(1 + M)) < 1 + M times as much.
Spaces that are known well enough get next to nothing: so each step is a plan of its own that answers its question.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from hushcube.lattice.basis import HELMERT
from hushcube.ledger.amounts import in_full, rounded_down
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.noise import SMOOTH
from hushcube.session.choosing import Chooser, edge
from hushcube.session.knowledge import Knowledge, Spaces
from hushcube.session.steps import Step

_NEXT_TO_NOTHING: Final = 2.0**-20  # of the level: what a space gets that is known well enough


class WaterLevel(Chooser):
    """Raises the residual spaces of a question to one level."""

    def for_variance(
        self, known: Knowledge, question: Marginal, t: float, left: Fraction, most: Fraction | None = None
    ) -> Step | None:
        """The least level that meets the target, higher where later questions share a space."""
        spaces = self.spaces(known, question)
        uses = self.outlook.uses(spaces.marginals, float(left) / self.alone(t) - 1)
        ahead = self._least_level(spaces, question, t, np.sqrt(uses))
        if ahead is None or self.is_within(ahead, left if most is None else most):
            return ahead
        return self._least_level(spaces, question, t, np.ones(len(uses)))

    def for_price(self, known: Knowledge, question: Marginal, price: Fraction) -> Step:
        """The highest level that a price pays for."""
        price = in_full(rounded_down(price))
        spaces = self.spaces(known, question)
        flat = np.ones(len(spaces.marginals))

        def at(level: float) -> Step:
            return self._raised(spaces, question, _added(spaces, flat, level))

        def is_over(level: float) -> bool:
            return not self.is_within(at(level), price)

        top = _top(spaces, flat)
        return at(edge(is_over, top, within=1e-6)[0] if is_over(top) else top)

    def alone(self, t: float) -> float:
        """What a table of variance t costs where nothing is known."""
        return self.per_budget / (2 * t)

    def _raised(self, spaces: Spaces, question: Marginal, added: Floats) -> Step:
        """Residual spaces with so much more information: beta = kappa cells(B) / 2."""
        public = np.isinf(spaces.information)
        budgets = np.where(public, np.inf, added * spaces.cells / 2)
        return Step(HELMERT, dict(zip(spaces.marginals, budgets.tolist(), strict=True)), question)

    def _least_level(self, spaces: Spaces, question: Marginal, t: float, shape: Floats) -> Step | None:
        """The least level, every space in proportion to its shape, at which a question meets its target."""

        def is_met(level: float) -> bool:
            return spaces.variance(_added(spaces, shape, level)) <= t

        if not is_met(top := _top(spaces, shape)):
            return None
        return self._raised(spaces, question, _added(spaces, shape, edge(is_met, top)[1]))


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
