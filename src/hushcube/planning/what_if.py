"""The same request under other budgets: what more privacy would cost, or less would bring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hushcube.designs import errors as error
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.errors import BadInput, PrivacyError
from hushcube.model.privacy import Number, Privacy
from hushcube.planning.planner import compare, refuse_unpredictable
from hushcube.planning.targets import table_variances
from hushcube.progress import Progress

Amount = Literal["epsilon", "rho"]


@dataclass(frozen=True)
class Scenario:
    """The best plan under one budget, and its errors, exact for the noise that is drawn."""

    plan: Design
    budget: str
    """As a decimal number, or as it was given."""

    @property
    def total_variance(self) -> float:
        """The expected sum of squared errors over all cells."""
        return error.total_variance(self.plan, exact=True)

    @property
    def rmse(self) -> float:
        """Its root mean over cells."""
        return math.sqrt(self.total_variance / self.plan.workload.cells)

    @property
    def median_std_error(self) -> float:
        """The standard error of a cell in the median table."""
        return float(np.sqrt(np.median(table_variances(self.plan))))

    @property
    def worst_std_error(self) -> float:
        """The standard error of a cell in the worst table."""
        return float(np.sqrt(table_variances(self.plan).max()))


def amount(privacy: Privacy) -> Amount:
    """Which budget a guarantee has."""
    return "epsilon" if privacy.rho is None else "rho"


def under(request: Request, budget: Number) -> Request:
    """The same request under another budget of the same kind; delta, neighbours and rows per person stay."""
    privacy = request.privacy
    return replace(request, privacy=Privacy.from_dict({**privacy.to_dict(), amount(privacy): budget}))


def checked(values: Sequence[Number]) -> Sequence[Number]:
    """Some budgets, all of them possible."""
    example = "list budgets, for example `0.1,0.5,1,2`"
    if isinstance(values, str) or not values:
        raise BadInput("what-if", "there is no list of budgets", example)
    for value in values:
        try:
            Privacy.of(epsilon=value, neighbours="add-remove")
        except PrivacyError as problem:
            raise BadInput("what-if", f"{str(value)[:40]!r}: {problem.problem}", example) from None
    return values


def what_if(
    request: Request,
    values: Sequence[Number],
    *,
    strategy: str = "auto",
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    progress: Progress | None = None,
) -> tuple[Scenario, ...]:
    """The best plan under each budget; all are checked before the first is planned."""
    refuse_unpredictable(strategy)
    requests = {str(value): under(request, value) for value in checked(values)}
    scenarios = []
    for done, (text, changed) in enumerate(requests.items()):
        if progress:
            progress("what if", done / len(requests))
        chosen = compare(changed, strategy=strategy, budgets=budgets, recovery=recovery).chosen
        scenarios.append(Scenario(chosen, text))
    return tuple(scenarios)
