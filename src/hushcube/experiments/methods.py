"""Methods that are compared with the truth: every strategy, and those that only an experiment may use.

All that a method decides without data is decided once; a run then goes from exact counts to noisy tables. Oracle and
proportional know the counts, so that no plan describes them: their tables are their noisy answers, never recovered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.published_face import FormsFromCells
from hushcube.designs import AdaptiveDesign
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.errors import BadInput, NotApplicable
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats
from hushcube.model.marginal import Marginal
from hushcube.model.measurement import Measurement
from hushcube.model.workload import Workload
from hushcube.options import read_word, shortened
from hushcube.planning.planner import compare
from hushcube.private.adaptive import not_private
from hushcube.private.adaptive.run import prepared
from hushcube.private.adaptive.subject import assembled
from hushcube.private.engines import ExactCounts
from hushcube.private.measure import draw
from hushcube.private.noise import Entropy
from hushcube.strategies import ADAPTIVE, ALL, Adaptive, Strategy, TwoPhase, read_strategy
from hushcube.strategies.adaptive import NOT_PRIVATE

Table = NDArray[Any]

METHODS: Final = (*ADAPTIVE, *NOT_PRIVATE, *(name for name in ALL if name not in ADAPTIVE))


@dataclass(frozen=True, eq=False)
class Answers:
    """The tables of one run, and what a person's data cost."""

    marginals: Mapping[Marginal, Table]
    forms: Sequence[Table]
    spent: float

    @property
    def tables(self) -> list[Table]:
        """All of them, in the order of the workload."""
        return [*self.marginals.values(), *self.forms]


@dataclass(frozen=True, eq=False)
class Contender:
    """A method that is ready to run."""

    name: str
    plan: Design
    """What it measures; for a method that is not private only what it starts from."""

    @classmethod
    def of(
        cls,
        method: str | Strategy,
        request: Request,
        budgets: Budgets,
        recovery: Recovery,
        usual: Mapping[str, object] = MappingProxyType({}),
    ) -> Contender:
        """Plan a method by its word; options that it is not given take their `usual` values."""
        name = str(method).partition(":")[0].strip()
        if name not in METHODS:
            raise BadInput("method", f"{shortened(name)} is unknown", f"choose among {', '.join(METHODS)}")
        if isinstance(method, str) and name in NOT_PRIVATE:
            strategy: Strategy = read_word(method.replace(name, TwoPhase.name, 1), ADAPTIVE, "method")
        else:
            strategy = read_strategy(method)
        if isinstance(strategy, Adaptive):
            strategy = strategy.filled(**usual)
        try:
            return cls(name, _plan(name, strategy, request, budgets, recovery))
        except NotApplicable as problem:
            fix = f"choose another among {', '.join(METHODS)}"
            raise BadInput("method", f"{name} cannot be used here: {problem.reason}", fix) from None

    def run(self, counts: ExactCounts, entropy: Entropy) -> Answers:
        """The tables of one run."""
        if self.name in NOT_PRIVATE:
            made, measurement, row_cost = self._exposed(counts, entropy)
        else:
            made, measurement = draw(self.plan, counts, entropy=entropy)
            row_cost = float(made.row_cost(made.budgets))
        answers, spent = FormsFromCells(made.answers(measurement)), row_cost * made.privacy.rows_per_person
        return Answers(_marginals(made.workload, answers), [answers.form(form) for form in made.workload.forms], spent)

    def _exposed(self, counts: ExactCounts, entropy: Entropy) -> tuple[Design, Measurement, float]:
        """Noisy answers in the places of the start's own; the start's noise is not what they have."""
        if not isinstance(self.plan, AdaptiveDesign):
            raise TypeError(type(self.plan).__name__)
        subject = prepared(self.plan, counts, entropy)
        exposed = not_private.METHODS[self.name](subject, entropy)
        values = assembled(subject.start, [answers[None] for answers in exposed.answers])
        return subject.start, Measurement(subject.start.digest, values, private=False), exposed.sensitivity


def _plan(name: str, strategy: Strategy, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
    """The plan; methods that know the truth begin as twophase does, the one start that needs no lambda_max."""
    if name not in NOT_PRIVATE:
        return compare(request, strategy=strategy, budgets=budgets, recovery=recovery).chosen
    if reason := strategy.refusal(request):
        raise NotApplicable(name, reason)
    return strategy.plan(request, budgets, "none")


def truth(workload: Workload, counts: ExactCounts) -> Answers:
    """The exact tables of a workload."""
    exact = FormsFromCells(_Exact(counts))
    return Answers(_marginals(workload, exact), [exact.form(form) for form in workload.forms], np.inf)


class _Exact:
    """Exact counts as answers."""

    def __init__(self, counts: ExactCounts) -> None:
        self._counts = counts

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return self._counts.tables(rows).reshape(len(rows), *shape).astype(np.float64)


def _marginals(workload: Workload, source: FormsFromCells) -> dict[Marginal, Table]:
    found: dict[Marginal, Table] = {}
    for batch in Family.of(workload.marginals, workload.schema.sizes).batches:
        found |= dict(zip(map(tuple, batch.rows.tolist()), source.tables(batch.rows, batch.shape), strict=True))
    return {marginal: found[marginal] for marginal in workload.marginals}
