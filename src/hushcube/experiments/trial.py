"""What is tried, again and again: a grid of settings, checked and planned before any data is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

from hushcube.designs.design import Budgets, Recovery
from hushcube.designs.refinement import Amount, Rule, SanityBound
from hushcube.designs.request import MAX_TABLE_CELLS, Effort, Objective, Request
from hushcube.designs.sanity import table_bounds
from hushcube.errors import BadInput, NotApplicable, TooLarge
from hushcube.experiments.contender import METHODS, Contender
from hushcube.experiments.kept import check_keep
from hushcube.faces.value import UNBIASED, FaceValue
from hushcube.model.arrays import Floats
from hushcube.model.privacy import Number, Privacy
from hushcube.model.workload import Workload
from hushcube.private.noise import Entropy, SeededEntropy, SystemEntropy
from hushcube.progress import Progress, silent
from hushcube.strategies.strategy import Strategy

AnyBound = Amount | SanityBound | Number | Mapping[str, Number]
"""A sanity bound as it is given: one for all tables, or for some their own."""


class KnownBound(NamedTuple):
    """A sanity bound in words, or as a number if there is one for all tables, and for each table."""

    told: float | str | None
    by_table: Sequence[Floats] | None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Every combination of methods, guarantees, budgets, recoveries and faces."""

    methods: Sequence[str | Strategy]
    privacies: Sequence[Privacy]
    sanity_bound: AnyBound | None = None
    """What relative errors are relative to, for the experiment and for all methods that are not given their own."""
    people: int | None = None
    people_epsilon: Number | None = None
    budgets: Sequence[Budgets | None] = ("uniform",)
    recoveries: Sequence[Recovery | None] = ("none",)
    faces: Sequence[str | FaceValue] = (UNBIASED,)
    objective: Objective = "total"
    effort: Effort = "default"
    runs: int = 10
    """Of each setting, with other noise; a cross-validation has as many folds."""
    seed: int | None = None
    """Run i draws its noise from `seed` + i, or from the operating system."""
    workers: int | None = None
    """Processes side by side; as many as there are processors unless given."""
    keep: Path | None = None
    """A file of runs: those that are there are not run again, and new ones are added."""
    progress: Progress = silent

    @property
    def relative(self) -> Rule:
        """What errors are relative to, checked."""
        return Rule.of(sanity_bound=self.sanity_bound, people=self.people, people_epsilon=self.people_epsilon)

    def known_bound(self, workload: Workload, rows: int) -> KnownBound:
        """The sanity bound in numbers; what methods pay to learn, an experiment knows."""
        rule = self.relative
        bound = rule.settled(None if rule.people_epsilon is None else max(1, rows)).sanity_bound
        if bound is None:
            return KnownBound(None, None)
        told = float(bound.value) if isinstance(bound, Amount) else str(bound)
        return KnownBound(told, table_bounds(bound, workload))

    def entropy(self, run: int) -> Entropy:
        """The noise of one run."""
        return SystemEntropy() if self.seed is None else SeededEntropy(self.seed + run)

    def prepare(self, workload: Workload) -> tuple[list[Contender], dict[str, str]]:
        """Check what is asked, and plan every setting once, without data; with those that do not apply, and why."""
        self._check(workload)
        usual = {name: getattr(self.relative, name) for name in ("sanity_bound", "people", "people_epsilon")}
        found: dict[str, Contender] = {}
        skipped: dict[str, str] = {}
        ways = list(product(self.methods, self.privacies, self.budgets, self.recoveries))
        for at, (method, privacy, budgets, recovery) in enumerate(ways):
            self.progress("planning", at / len(ways))
            request = Request(workload, privacy, objective=self.objective, effort=self.effort)
            words = ", ".join([str(method), *map(str, filter(None, (budgets, recovery))), privacy.amounts])
            try:
                plain = Contender.of(method, request, budgets, recovery, usual)
            except NotApplicable as problem:
                skipped[words] = problem.reason
                continue
            for face in self.faces:
                try:
                    made = plain.with_face(face)
                    found.setdefault(made.key, made)
                except NotApplicable as problem:
                    skipped[f"{words}, {face}"] = problem.reason
        if not found:
            words, reason = next(iter(skipped.items()))
            fix = f"choose another among {', '.join(METHODS)}"
            raise BadInput("method", f"{words} cannot be used here: {reason}", fix)
        return list(found.values()), skipped

    def _check(self, workload: Workload) -> None:
        for name, value in (("runs", self.runs), ("workers", self.workers)):
            if value is not None and value < 1:
                raise BadInput(name, f"{value} is less than one", "give a whole number from 1")
        if self.seed is not None and self.seed < 0:
            raise BadInput("seed", f"{self.seed} is negative", "give a whole number from 0")
        several = {"method": self.methods, "epsilon": self.privacies, "budgets": self.budgets}
        for name, given in {**several, "recovery": self.recoveries, "face": self.faces}.items():
            if not given:
                raise BadInput(name, "none is given", "name at least one")
        if workload.cells > MAX_TABLE_CELLS:  # truth and answers are held side by side
            raise TooLarge("workload", workload.cells, MAX_TABLE_CELLS)
        if self.keep is not None:
            check_keep(self.keep)
