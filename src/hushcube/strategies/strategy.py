"""The contract of a strategy, and the step they share: dividing the budget and checking the result.

What plans are compared by: the total variance (weights count), or the largest weighted variance of a cell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np

from hushcube.costs import calibrate
from hushcube.costs.row_cost import cost_of_sets, unchanged_by_replacing
from hushcube.designs.budgets import closed_form, fitted, with_even, without_public
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.lattice.design import LatticeDesign, smoothing
from hushcube.designs.lattice.weighted import Weighting
from hushcube.designs.request import Request
from hushcube.designs.weights import Weights
from hushcube.errors import NotApplicable
from hushcube.lattice.basis import Basis
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.options import Configured
from hushcube.strategies.minimax import least_maximum

Made = TypeVar("Made", bound=Design)
Rivals = Literal["all", "even", "better", "nothing"]
"""What shares of the budget that a search has found are compared with: `even` ones; `better` ones, of the least largest
variance or for weights of the user's own; or nothing, where any others would break a promise."""


def objective_value(design: Design) -> float:
    """The exact value, for the noise that is drawn, of the objective that the plan's request names; less is better."""
    errors = design.errors
    return errors.max_variance() if design.request.objective == "max" else errors.weighted_variance()


def best_of(plans: Iterable[Made]) -> Made:
    """The plan of the least objective, the first of equals; a single one need not be weighed."""
    made = list(plans)
    return made[0] if len(made) == 1 else min(made, key=objective_value)


@dataclass(frozen=True, kw_only=True)
class Strategy(Configured, ABC):
    """Decides what to measure for a request, without data.

    Its options are its fields; what concerns a plan as a whole is in the request (objective, effort).
    """

    name: ClassVar[str]
    """The word on the command line."""
    measures: ClassVar[str]
    """What it measures, in a few plain words."""
    automatic: ClassVar[bool] = True
    """Whether `auto` may choose it."""
    searches: ClassVar[bool] = False
    """Whether planning takes a search: `auto` leaves it out where next to nothing is left to be gained."""
    makes: ClassVar[tuple[type[Design], ...]] = (LatticeDesign,)
    """The kinds of its plans."""
    serves_levels: ClassVar[bool] = False
    """Whether it may be asked for one attribute at several levels."""

    @property
    def head(self) -> str:
        """Its name."""
        return self.name

    @property
    def summary(self) -> str:
        """What is measured, in words."""
        return self.measures

    @property
    def publishes_all(self) -> bool:
        """Whether its plans are for every table asked for: only such plans can be compared."""
        return True

    def on(self, schema: Schema) -> Self:  # noqa: ARG002 - most name nothing of a schema
        """The strategy with the files read that its options name; nothing else is read again."""
        return self

    @property
    def files(self) -> tuple[str, ...]:
        """The files that its options name, whose contents a release publishes with its plan."""
        return ()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that its options name."""
        return ()

    @property
    def own_budgets(self) -> Budgets | None:
        """The rule that its options stand for, whatever is asked for; None where the budgets may be chosen."""
        return None

    def concerns(self, request: Request) -> bool:  # noqa: ARG002 - most are for every request
        """Whether a comparison should look at the strategy at all."""
        return True

    def leads(self, request: Request) -> bool:  # noqa: ARG002 - few are known to be the best
        """Whether theory says that nothing is better: `auto` looks there first, and stops if it is proven."""
        return False

    def is_compared(self, request: Request) -> bool:
        """The same, for levels too: where they are nested, most strategies need no mention."""
        return self.concerns(request) and (self.serves_levels or not request.schema.is_nested)

    def refusal(self, request: Request) -> str | None:
        """Why the strategy cannot be used, or None: its own reasons, and levels of one attribute, which only some know.

        To the others the levels would be attributes without any relation, and their tables would contradict each other.
        """
        if request.schema.is_nested and not self.serves_levels:
            return "an attribute is asked for at several levels: use the strategy `levels`"
        return self.accepts(request)

    def offers(self, recovery: Recovery) -> bool:
        """Whether some of its plans can make tables in this way."""
        return isinstance(recovery, Weights) or any(recovery in kind.recoveries for kind in self.makes)

    def accepts(self, request: Request) -> str | None:  # noqa: ARG002 - most accept every request
        """Why the strategy cannot serve the request, or None where it can."""
        return None

    @abstractmethod
    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The decision for a request that is accepted."""

    def decide(
        self,
        request: Request,
        budgets: Budgets,
        recovery: Recovery,
        basis: Basis,
        measured: Family,
        s: Floats,
        found: Floats | None = None,
        *,
        against: Rivals = "all",
        details: Callable[[Floats], Mapping[str, Any]] = lambda _: {},
    ) -> LatticeDesign:
        """Divide the guarantee among the measured sets, whose variances weigh s_B in the error, under the best proof.

        Optimal budgets are the closed form for s, or in the proportions that a search has found; or even ones, where
        these have the smaller objective. For the objective `max` they are those of the least largest variance, never a
        larger one than the proportions have. `against` says which of these they may give way to. Details are told from
        the budgets.

        Where one row replaces one row, the total is public: it is measured too, for nothing.
        """
        if request.privacy.total_is_public and not len(measured.levels[0]):
            measured = Family(measured.sizes, [np.zeros((1, 0), np.int32), *measured.levels[1:]])
            s = np.insert(s, 0, 0.0)
            found = None if found is None else np.insert(found, 0, 1.0)
        improves = against in ("all", "better")
        if isinstance(recovery, Weights) and budgets == "optimal" and improves:
            s, found = self._energies(request, basis, measured, recovery), None
        privacy, shapes, aim = request.privacy, [np.ones(len(measured))], {}
        if budgets != "uniform":
            shapes = [closed_form(basis, measured, s, privacy) if found is None else found]
            if request.objective == "max" and budgets == "optimal":
                aim = {"objective": "max"}
                if improves:  # the total's budgets stay in, for discrete noise may favour them
                    shapes.insert(0, least_maximum(request, basis, measured, recovery, s, found).budgets)

        def make(proof: calibrate.Proof, shares: Floats) -> LatticeDesign:
            told = {**details(shares), **aim}
            return LatticeDesign(request, self.name, budgets, recovery, proof, shares, basis, measured, details=told)

        return best_fit(
            privacy,
            [without_public(shape, measured, privacy) for shape in shapes],
            partial(cost_of_sets, basis, measured, privacy=privacy),
            partial(smoothing, basis, measured, privacy),
            make,
            tables=len(measured) if basis.holds_cells else None,
            alone=against in ("better", "nothing") or budgets == "given",
        )

    def _energies(self, request: Request, basis: Basis, measured: Family, recovery: Weights) -> Floats:
        """s_B for weights of the user's own, whatever the strategy would have: (1)-(3) for a given R.

        [Yaroslavtsev et al. 2013, III]
        """
        if not basis.holds_cells:
            raise NotApplicable(self.name, "weights of one's own are for measured tables of counts")
        s = Weighting(request, measured, recovery).energies()
        public = unchanged_by_replacing(measured) & request.privacy.total_is_public
        for table in (table for table, unused in zip(measured, (s == 0) & ~public, strict=True) if unused):
            reason = f"{request.schema.describe(table)} is measured, and has a weight in no answer"
            raise NotApplicable(self.name, reason)
        return s


def best_fit(
    privacy: Privacy,
    shapes: Sequence[Floats],
    cost: Callable[[Floats], Fraction],
    smoothing: Callable[[], Floats | float],
    make: Callable[[calibrate.Proof, Floats], Made],
    *,
    tables: int | None = None,
    alone: bool = False,
) -> Made:
    """The best plan with budgets in some of these proportions, or, unless they stand `alone`, even ones.

    So no plan is worse than that of even budgets for what is measured. `cost` is what one row of data costs under given
    budgets, `smoothing` the variance that the proof of that name adds, `tables` how many tables of plain counts are
    measured, if nothing else.
    """
    tried = shapes if alone else with_even(shapes)
    return best_of(
        make(proof, fitted(shape, cost, privacy, proof, smoothing() if proof == "smoothing" else None))
        for proof in calibrate.proofs(privacy, tables=tables)
        for shape in tried
    )
