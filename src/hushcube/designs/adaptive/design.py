"""Plans whose noise is only the start: a method refines the answers while the budget lasts.

The budgets are those of the first answers, so predicted errors are the largest that a release can have: noise only
becomes smaller. What a run ends with depends on its noisy answers; it is a plan of its own, checked to cost no more
than the same guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from hushcube.designs.derived import DerivedDesign
from hushcube.designs.design import ADAPTING
from hushcube.designs.refinement import Rule
from hushcube.errors import PlanError
from hushcube.model.arrays import Floats
from hushcube.model.schema import Schema

_NOTE: Final = (
    "errors shown are those of the first answers, the largest that the release can have; the method makes them smaller "
    "where that helps relative errors most, and `release` reports what it ended with; `dwork` shows uniform noise"
)


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveDesign(DerivedDesign, kind="adaptive"):
    """The start, and the rule by which it is refined; the strategy names the method."""

    rule: Rule

    def __post_init__(self) -> None:
        if not self.privacy.is_pure:
            raise PlanError("plan, privacy", "adaptive methods are for pure epsilon", "plan again")
        if self.strategy not in ADAPTING or self.rule.sanity_bound is None:
            raise PlanError("plan, rule", "does not say how to carry the plan out", "plan again")
        super().__post_init__()
        self._check_start()

    def _check_start(self) -> None:
        """What is measured follows from the request and the rule: what is not free to be refined is public or paid."""
        from hushcube.designs.adaptive.start import Measured  # which knows the kinds of plans itself

        measured = Measured.of(self.request, self.budget_rule, self.rule.people_epsilon)
        fixed = ~measured.free
        if (
            self.base is not measured.kind
            or self.underlying.specification() != measured.plan(self, self.budgets).specification()
            or not np.array_equal(self.budgets[fixed], measured.fixed[fixed])
        ):
            raise PlanError("plan, under", "is not what the workload and the rule ask for", "plan again")

    @property
    def note(self) -> str | None:
        """Its errors are those of the start."""
        return _NOTE

    @property
    def adapts(self) -> bool:
        """It does."""
        return True

    @property
    def is_outcome(self) -> bool:
        """It is yet to be carried out."""
        return False

    @property
    def underlying_budgets(self) -> Floats:
        """Those of the first answers."""
        return self.budgets

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Those of the start."""
        return self.underlying.shapes

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{self.underlying.in_words}, first roughly and then more precisely where relative errors are large"

    def row_cost(self, budgets: Floats) -> Fraction:
        """What the start costs."""
        return self.underlying.row_cost(budgets)

    def specification(self) -> dict[str, Any]:
        """The JSON form of the start and the rule."""
        return {"design": "adaptive", **super().specification(), "rule": self.rule.to_dict()}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The start and the rule from the JSON form."""
        return {**super().from_specification(raw, schema), "rule": Rule.from_dict(raw["rule"])}
