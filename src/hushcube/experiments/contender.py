"""A setting that is ready to run: a method with its budgets and recovery under a guarantee, and a face.

Every strategy is a method, and so are some that only an experiment may use. All that a setting decides without data is
decided once; a run then goes from exact counts to noisy tables. Oracle and proportional know the counts, so that no
plan describes them: their tables are their noisy answers, never recovered.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from hushcube.bundle.earlier_edition import face_with_edition, with_edition
from hushcube.bundle.part import FormsFromCells
from hushcube.designs import AdaptiveDesign
from hushcube.designs.design import Budgets, Design, Recovery, digest_of
from hushcube.designs.request import Request
from hushcube.errors import BadInput, NotApplicable
from hushcube.experiments.truth import Answers, tables_of
from hushcube.faces.checking import check_face
from hushcube.faces.face import make_face
from hushcube.faces.value import UNBIASED, FaceValue, read_face
from hushcube.model.noise import Measurement
from hushcube.options import read_word
from hushcube.planning.planner import compare
from hushcube.private.adaptive import not_private
from hushcube.private.adaptive.run import prepared
from hushcube.private.adaptive.subject import assembled
from hushcube.private.engines import ExactCounts
from hushcube.private.measure import draw
from hushcube.private.noise import Entropy
from hushcube.progress import Clock
from hushcube.strategies import ALL, read_strategy
from hushcube.strategies.adaptive import ADAPTIVE, NOT_PRIVATE, Adaptive, TwoPhase
from hushcube.strategies.strategy import Strategy
from hushcube.text import short

METHODS: Final = (*ADAPTIVE, *NOT_PRIVATE, *(name for name in ALL if name not in ADAPTIVE))


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What was tried, in words and numbers that a result repeats."""

    method: str
    """As it was asked for, with its options."""
    budgets: str = "none"
    recovery: str = "none"
    face: str = UNBIASED
    epsilon: float | None = None
    rho: float | None = None
    delta: float | None = None


@dataclass(frozen=True, eq=False)
class Contender:
    """A setting that is ready to run."""

    name: str
    """Of the method, without options."""
    plan: Design
    """What it measures; for a method that is not private only what it starts from."""
    setting: Setting
    planning_seconds: float
    face: FaceValue | None = None
    """What becomes of its tables; None for the unbiased ones."""

    @classmethod
    def of(
        cls,
        method: str | Strategy,
        request: Request,
        budgets: Budgets | None = None,
        recovery: Recovery | None = None,
        usual: Mapping[str, object] = MappingProxyType({}),
    ) -> Contender:
        """Plan a method by its word; options that it is not given take their `usual` values."""
        word = str(method).strip()
        name = word.partition(":")[0].strip()
        if name not in METHODS:
            raise BadInput("method", f"{short(name)} is unknown", f"choose among {', '.join(METHODS)}")
        if isinstance(method, str) and name in NOT_PRIVATE:
            strategy: Strategy = read_word(method.replace(name, TwoPhase.name, 1), ADAPTIVE, "method")
        else:
            strategy = with_edition(read_strategy(method))
        if isinstance(strategy, Adaptive):
            strategy = strategy.filled(**usual)
        if not strategy.publishes_all:
            problem = f"{strategy} may leave tables out, and the errors of other tables cannot be compared with its own"
            raise BadInput("method", problem, "evaluate it publishing all tables")
        start = time.perf_counter()
        plan = _plan(name, strategy, request, budgets, recovery)
        seconds = time.perf_counter() - start
        privacy = plan.privacy
        epsilon, rho, delta = (None if x is None else float(x) for x in (privacy.epsilon, privacy.rho, privacy.delta))
        setting = Setting(
            method=word, budgets=plan.budget_rule, recovery=str(plan.recovery), epsilon=epsilon, rho=rho, delta=delta
        )
        return cls(name, plan, setting, seconds)

    def with_face(self, face: str | FaceValue) -> Contender:
        """The same with tables at face value."""
        if face == UNBIASED:
            return self
        if self.name in NOT_PRIVATE:
            raise NotApplicable(self.name, "it knows the counts: its tables have no other face")
        value = face_with_edition(read_face(face, self.plan.schema), self.plan)
        check_face(self.plan, value, Clock())
        return replace(self, face=value, setting=replace(self.setting, face=str(face)))

    @property
    def key(self) -> str:
        """A digest of all that decides its tables, besides counts and noise."""
        face: dict[str, Any] = {}
        if self.face is not None:
            facts = self.face.public_facts
            face = {**self.face.to_dict(), "rows": self.face.rows, "facts": None if facts is None else facts.to_dict()}
            face |= {} if self.face.edition is None else {"like": self.face.edition.to_dict()}
        return digest_of({"method": self.name, "plan": self.plan.digest, "face": face})

    def run(self, counts: ExactCounts, entropy: Entropy) -> Answers:
        """The tables of one run."""
        if self.name in NOT_PRIVATE:
            made, measurement, spent = self._exposed(counts, entropy)
        else:
            made, measurement = draw(self.plan, counts, entropy=entropy)
            spent = float(made.person_cost if made.privacy.is_pure else made.privacy.rho or made.privacy.epsilon or 0)
        if self.face is None:
            answers = FormsFromCells(made.answers(measurement))
        else:
            answers = FormsFromCells(make_face(made, measurement, self.face, Clock()).tables)
        forms = [answers.form(form) for form in made.workload.forms]
        return Answers(tables_of(made.workload, answers), forms, spent)

    def _exposed(self, counts: ExactCounts, entropy: Entropy) -> tuple[Design, Measurement, float]:
        """Noisy answers in the places of the start's own; the start's noise is not what they have."""
        if not isinstance(self.plan, AdaptiveDesign):
            raise TypeError(type(self.plan).__name__)
        subject = prepared(self.plan, counts, entropy)
        exposed = not_private.METHODS[self.name](subject, entropy)
        spent = exposed.sensitivity * self.plan.privacy.rows_per_person
        values = assembled(subject.start, [answers[None] for answers in exposed.answers])
        return subject.start, Measurement(subject.start.digest, values, private=False), spent


def _plan(
    name: str, strategy: Strategy, request: Request, budgets: Budgets | None, recovery: Recovery | None
) -> Design:
    """What is measured; methods that know the truth begin as twophase does, the one start that needs no lambda_max."""
    if name not in NOT_PRIVATE:
        return compare(request, strategy=strategy, budgets=budgets, recovery=recovery).chosen
    if reason := strategy.refusal(request):
        raise NotApplicable(name, reason)
    return strategy.plan(request, budgets or "uniform", "none")
