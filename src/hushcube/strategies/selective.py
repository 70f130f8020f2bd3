"""Measure where smaller tables do not explain larger ones: for tables at face value, and synthetic people.

Rounds from small tables to large ones: guess, look how far off the guesses are (with noise), divide what is left of the
budget where it lowers the expected error most, measure, fit.                          [designs/selective/design.py]

Beside AIM [McKenna et al. 2022], which picks one table a round by the exponential mechanism: all tables of an order are
looked at together, which costs one noisy number each and says how much each is worth, not only which is the worst; the
budgets of all of them then follow from one program; residuals are measured, so that nothing is paid for twice; and
every set gets a little, so that the unbiased tables exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

from hushcube.costs import calibrate
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.refinement import positive, share
from hushcube.designs.request import Request
from hushcube.designs.selective.design import (
    MOST_LOOKS,
    SelectedDesign,
    SelectiveDesign,
    basis_of,
    measured_sets,
    sure_budgets,
)
from hushcube.designs.selective.rolled import SelectedLevels, SelectiveLevels, fine_request
from hushcube.errors import TooLarge
from hushcube.model.edition import read_like
from hushcube.model.privacy import Number
from hushcube.options import option
from hushcube.strategies.strategy import Strategy

_OPTIONS: Final = ("misfit_share", "check_share", "objective", "sanity_bound", "like")  # of a run


@dataclass(frozen=True, kw_only=True)
class Selective(Strategy):
    """The sets of the workload's closure, with budgets that a run decides."""

    name = "selective"
    measures = "what tables add to smaller ones, most precisely where these fall short"
    automatic = False
    makes: ClassVar[tuple[type[Design], ...]] = (SelectiveDesign, SelectedDesign, SelectiveLevels, SelectedLevels)
    serves_levels = True

    misfit_share: Fraction | Number = option(
        Fraction(1, 20),
        "share of the budget for looking at how far the tables of one order are from their guesses",
        takes="SHARE",
        read=share,
    )

    check_share: Fraction | Number = option(
        Fraction(1, 40),
        "share of the budget for looking at how far the fitted tables are from the true ones in the end",
        takes="SHARE",
        read=share,
    )

    sanity_bound: Fraction | Number | None = option(
        None,
        "make relative errors small, those over max(count, this), in place of absolute ones",
        takes="COUNT",
        read=positive,
    )

    like: Any = option(
        None,
        "an earlier edition, a bundle of (some of) the same attributes, which tables are guessed from where it is near",
        takes="BUNDLE",
        read=read_like,
    )
    """What has a `within` [model/edition.py]; a text or a release until it is read."""

    def concerns(self, request: Request) -> bool:  # noqa: ARG002 - whatever is asked
        """Only when it is named: plans are compared by their unbiased tables, and it is for face values."""
        return False

    def offers(self, recovery: Recovery) -> bool:
        """Least squares alone."""
        return recovery == "gls"

    def accepts(self, request: Request) -> str | None:
        """Marginals, for the sum of absolute errors or the largest of them."""
        if request.workload.forms:
            return "it measures marginals, but no ranges and no queries"
        if self.like is not None and not hasattr(self.like, "within"):
            return "its earlier edition is not read: plan with `hushcube plan --like` or `hushcube.plan(like=...)`"
        if request.objective == "max" and self.sanity_bound is not None:
            return "it makes the sum of relative errors small, not the largest of them: leave sanity-bound out"
        if request.schema.is_nested:
            try:
                fine_request(request, request.objective)
            except TooLarge as problem:
                return f"it measures tables at the finest levels asked for, and there {problem.problem}"
        looks = Fraction(self.misfit_share) * max(len(request.spaces.levels) - 2, 1) + Fraction(self.check_share)
        if looks >= MOST_LOOKS:
            return "misfit-share and check-share leave too little for the tables"
        return None

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The start of a run."""
        proof: calibrate.Proof = "direct" if request.privacy.delta is None else "zcdp"
        if request.schema.is_nested:
            return self._at_the_finest_levels(request, budgets, recovery)
        measured = measured_sets(request)
        sure = sure_budgets(request, measured, proof)
        own = (LatticeDesign, {"basis": basis_of(request.privacy), "measured": measured})
        shares = (Fraction(self.misfit_share), Fraction(self.check_share))
        aim: dict[str, Any] = {} if request.objective == "total" else {"objective": request.objective}
        bound = None if self.sanity_bound is None else Fraction(self.sanity_bound)
        aim |= {} if bound is None else {"sanity_bound": float(bound)}
        like = None if self.like is None else self.like.within(request.schema, request.workload.marginals)
        decided = (request, self.name, budgets, recovery, proof, sure)
        return SelectiveDesign(*decided, *own, *shares, request.objective, bound, details=aim, like=like)

    def _at_the_finest_levels(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The start of a run over fine tables."""
        below = self.plan(fine_request(request, request.objective), budgets, recovery)
        if not isinstance(below, SelectiveDesign):
            raise TypeError(type(below).__name__)
        fields = {name: getattr(below, name) for name in ("base", "measured_by", *_OPTIONS)}
        decided = (request, self.name, budgets, recovery, below.proof, below.budgets)
        return SelectiveLevels(*decided, SelectiveDesign, fields, details=below.details)
