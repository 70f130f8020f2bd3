"""A plan: a strategy's frozen, data-free decision. What is measured, with which noise, how answers come back.

`budgets` holds one dyadic float a measured set: the rate of its Laplace noise, or 1/(2 variance) of its Gaussian noise;
infinite where the answer is public. Sums of such numbers are exact, so a plan's cost is checked, not trusted, when it
is made and again whenever one is loaded.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import BadInput, BudgetExceeded, NotApplicable, PlanError
from hushcube.lattice.basis import BASES, Basis
from hushcube.lattice.family import Family
from hushcube.lattice.variances import dimensions, kernel
from hushcube.model.noise import LARGEST_VARIANCE, SMALLEST_RATE
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.plan import calibrate, cost
from hushcube.plan.request import Request

Floats = NDArray[np.float64]
Budgets = Literal["optimal", "uniform"]
Recovery = Literal["gls", "ols", "none"]
BUDGETS: Final[tuple[Budgets, ...]] = get_args(Budgets)
RECOVERIES: Final[tuple[Recovery, ...]] = get_args(Recovery)
FORMAT: Final = 1


@dataclass(frozen=True, eq=False)
class Plan:
    """A checked decision; `hushcube.plan.error` predicts its errors."""

    request: Request
    strategy: str
    budget_rule: Budgets
    recovery: Recovery
    proof: calibrate.Proof
    basis: Basis
    measured: Family
    budgets: Floats

    def __post_init__(self) -> None:
        self._check_cost()
        self._check_noise()
        self._check_answers()

    @property
    def schema(self) -> Schema:
        """The declared domain."""
        return self.request.schema

    @property
    def workload(self) -> Workload:
        """The marginals asked for."""
        return self.request.workload

    @property
    def privacy(self) -> Privacy:
        """The guarantee."""
        return self.request.privacy

    @property
    def law(self) -> Literal["laplace", "gaussian"]:
        """Which discrete noise is drawn."""
        return "laplace" if self.privacy.is_pure else "gaussian"

    @cached_property
    def smoothing(self) -> Floats:
        """The part of each set's noise variance that only serves the proof by smoothing; zero under other proofs."""
        if self.proof != "smoothing":
            return np.zeros(len(self.measured))
        return smoothing(self.basis, self.measured, self.privacy)

    def _check_cost(self) -> None:
        budgets = self.budgets
        if self.law not in self.basis.laws:
            raise PlanError("plan, basis", f"{self.basis.name} does not go with {self.law} noise", "plan again")
        if len(budgets) != len(self.measured) or np.isnan(budgets).any() or (budgets <= 0).any():
            raise PlanError("plan, budgets", "must be positive, one for each measured set", "plan again")
        if self.proof not in calibrate.proofs(self.privacy, tables=counted_tables(self.basis, self.measured)):
            raise PlanError("plan, proof", f"{self.proof!r} does not fit the guarantee", "plan again")
        allowed = calibrate.row_budget(self.privacy, self.proof)
        if self.proof == "exact":
            drawn = calibrate.discrete_delta(float(self.privacy.epsilon or 0), 0.5 / float(budgets[0]))
            if drawn > float(self.privacy.delta or 0):
                raise BudgetExceeded(drawn, float(self.privacy.delta or 0), "delta")
        if self.proof == "smoothing":
            continuous = 0.5 / budgets - self.smoothing
            if (continuous[np.isfinite(budgets)] <= 0).any():
                raise BudgetExceeded(np.inf, allowed, "rho for one row")
            budgets = np.where(np.isfinite(budgets), 0.5 / continuous, np.inf)
        unit = "epsilon for one row" if self.privacy.is_pure else "rho for one row"
        try:
            spent = cost.row_cost(
                self.basis,
                self.measured,
                budgets,
                pure=self.privacy.is_pure,
                neighbours=self.privacy.neighbours,
            )
        except OverflowError:
            raise BudgetExceeded(np.inf, allowed, unit) from None
        if spent > allowed:
            raise BudgetExceeded(spent, allowed, unit)

    def _check_noise(self) -> None:
        """Refuse noise so large that it could not be drawn exactly, before anything is counted."""
        budgets, sizes = self.budgets, self.measured.sizes
        if self.law == "laplace":
            stretch = self.measured.product(self.basis.per_axis(self.basis.stretch, sizes))
            drawable = budgets >= SMALLEST_RATE * stretch
        else:
            norms = self.measured.product(sizes * (sizes - 1.0)) if self.basis.name == "helmert" else 1.0
            drawable = 0.5 / budgets * norms <= LARGEST_VARIANCE
        if not drawable.all():
            raise NotApplicable(self.strategy, "the budget is so small that the noise would not fit 64-bit integers")

    def _check_answers(self) -> None:
        """Refuse a plan that measures too little to answer its workload."""
        if self.recovery == "none" and self.basis.name == "marginal":
            answered = self.measured.sum_over_supersets(self.request.marginals, np.ones(len(self.measured))) > 0
        else:
            spaces = self.request.spaces
            seen = kernel(self.basis, self.measured, np.ones(len(self.measured)), spaces) > 0
            answered = seen | (dimensions(spaces) == 0)
        if not answered.all():
            raise PlanError("plan, measured", "too little is measured to answer the workload", "plan again")

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, without the digest."""
        return {
            "format": FORMAT,
            "schema": self.schema.to_dict(),
            "workload": list(self.workload.words),
            "privacy": self.privacy.to_dict(),
            "strategy": self.strategy,
            "budgets": self.budget_rule,
            "recovery": self.recovery,
            "proof": self.proof,
            "noise": f"discrete {self.law}",
            "basis": self.basis.name,
            "measured": [level.tolist() for level in self.measured.levels],
            "budget": [b if np.isfinite(b) else None for b in self.budgets.tolist()],
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form: any change of the decision changes it."""
        canonical = json.dumps(
            self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
        )
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_json(self) -> str:
        """The file's text: the JSON form with its digest."""
        return json.dumps({**self.to_dict(), "digest": self.digest}, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan file: the digest, every field and the cost are checked."""
        again = "plan again with `hushcube plan --out`"
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError):
            raise PlanError("plan", "is not valid JSON", again) from None
        if not isinstance(raw, dict) or raw.get("format") != FORMAT:
            raise PlanError("plan", "is not a plan of this version of hushcube", again)
        try:
            schema = Schema.from_dict(raw["schema"])
            request = Request(Workload.parse(raw["workload"], schema), Privacy.from_dict(raw["privacy"]))
            levels = [np.array(level, dtype=np.int32).reshape(len(level), k) for k, level in enumerate(raw["measured"])]
            if (
                raw["budgets"] not in BUDGETS
                or raw["recovery"] not in RECOVERIES
                or not _increasing(levels, len(schema))
            ):
                raise ValueError
            plan = cls(
                request,
                str(raw["strategy"]),
                raw["budgets"],
                raw["recovery"],
                raw["proof"],
                BASES[raw["basis"]],
                Family(schema.sizes, levels),
                np.array([np.inf if b is None else b for b in raw["budget"]], dtype=np.float64),
            )
        except BadInput:
            raise
        except (KeyError, TypeError, ValueError, OverflowError):
            raise PlanError("plan", "a field is missing or damaged", again) from None
        if {**plan.to_dict(), "digest": plan.digest} != raw:
            raise PlanError("plan, digest", "does not fit the plan: the file was changed", again)
        return plan


def counted_tables(basis: Basis, measured: Family) -> int | None:
    """How many tables of plain counts are measured; None where something else is."""
    return len(measured) if basis.name == "marginal" else None


def smoothing(basis: Basis, measured: Family, privacy: Privacy) -> Floats:
    """t² over the smallest squared row norm of each set: the variance that the proof by smoothing adds."""
    touched = (
        float(len(measured))
        if basis.name == "marginal"
        else float(measured.product(basis.per_axis(basis.rows, measured.sizes)).sum())
    )
    norms = measured.product(np.full(len(measured.sizes), 2.0)) if basis.name == "helmert" else np.ones(len(measured))
    return calibrate.smoothing_variance(privacy, touched) / norms


def _increasing(levels: list[NDArray[np.int32]], d: int) -> bool:
    return all(
        (np.diff(level, axis=1) > 0).all() and (level >= 0).all() and (level < d).all()
        for level in levels
        if level.size
    )
