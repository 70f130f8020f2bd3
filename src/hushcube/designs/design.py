"""A design: a strategy's frozen, data-free decision. What is measured, with which noise, how answers come back.

    Design           what every decision has: a request, budgets, a proof; its checks, JSON form and digest
      FamilyDesign     sets of attributes, each measured in a product basis:             [designs/lattice/design.py]
        LatticeDesign    marginals, or parts of marginals
        LevelDesign      tables at nested levels of attributes                           [designs/levels/design.py]
      TreeDesign       levels of trees over ordered attributes                           [designs/tree/design.py]
      MatrixDesign     the rows of any matrix over a small table                         [designs/matrix/design.py]
        WideMatrixDesign  sparse rows over a large table                                 [designs/matrix/wide.py]
      SketchDesign     buckets into which the cells of a large table are thrown          [designs/sketch/design.py]
      StackedDesign    what others measured, one after the other                         [designs/stacked/design.py]
      DerivedDesign    another design, and what makes it different:                      [designs/derived.py]
        RepeatedDesign   everything is measured several times
        AdaptiveDesign   its noise is only the start                                     [designs/adaptive.py]
        SelectiveDesign  a run divides its budget; it ends as a SelectedDesign           [designs/selective/design.py]

`budgets` holds one dyadic float a measured set: the rate of its Laplace noise, or 1/(2 variance) of its Gaussian noise;
infinite where the answer is public. Sums of such numbers are exact, so a design's cost is checked, not trusted, when it
is made and again whenever one is loaded.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hushcube.costs import calibrate
from hushcube.designs.answers import Answers
from hushcube.designs.block import Block
from hushcube.designs.errors import Errors
from hushcube.designs.request import Request
from hushcube.designs.weights import Weights
from hushcube.errors import BudgetExceeded, BundleError, NotApplicable, PlanError
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints, Marginal, frozen
from hushcube.model.edition import Edition
from hushcube.model.noise import Law, Measurement, law_of
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.options import check_choice

Budgets = Literal["optimal", "uniform", "given"]
RecoveryWord = Literal["gls", "ols", "answers", "none"]
Recovery = RecoveryWord | Weights
AnyRecovery = Recovery | str | Mapping[str, Mapping[str, Any]]
"""As it is given: a word, or weights such as `a: a=1/2, a*b=1/2`, or the same in a mapping."""
BUDGETS: Final[tuple[Budgets, ...]] = ("optimal", "uniform")
"""The rules to choose from; budgets are `given` by whoever gives a share to each table.   [strategies/given.py]"""
EVERY_RECOVERY: Final[tuple[RecoveryWord, ...]] = get_args(RecoveryWord)
"""Those that need no more than a word; the others are weights that a user gives.   [designs/weights.py]"""
RECOVERIES: Final[tuple[RecoveryWord, ...]] = ("gls", "ols", "none")
"""What every kind of design can do; `answers` is for marginals."""
FORMAT: Final = 1
ADAPTING: Final = ("twophase", "iresamp", "ireduct", "selective")
"""Strategies that decide while noisy answers come in. What a run of one ends with is a design under the same name."""


@dataclass(frozen=True, eq=False, repr=False)
class Design(ABC):
    """A checked decision."""

    request: Request
    strategy: str
    budget_rule: Budgets
    recovery: Recovery
    proof: calibrate.Proof
    budgets: Floats
    details: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """What the strategy has to say about its decision, for readers; JSON. No statement about privacy rests on it."""

    _details: str = field(init=False, repr=False)
    """The same as text, which is what is written: no change of a list in it can reach a file."""
    kinds: ClassVar[dict[str, type[Design]]] = {}
    serves_levels: ClassVar[bool] = False
    """Whether it knows that levels of one attribute are nested."""
    recoveries: ClassVar[tuple[RecoveryWord, ...]] = RECOVERIES
    """The ways in which it can make tables from a measurement."""
    serves_weights: ClassVar[bool] = False
    """Whether tables may be weighted sums of what is measured, with weights of the user's own."""
    adapts: ClassVar[bool] = False
    """Whether its noise is only the start, and a run decides the rest."""

    def __init_subclass__(cls, kind: str | None = None, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if kind is not None:
            cls.kinds[kind] = cls

    def __repr__(self) -> str:
        decision = f"{self.strategy}, {self.budget_rule}, {self.recovery}, {self.groups:,} sets measured"
        return f"{type(self).__name__}({decision}, {self.workload!r}, {self.privacy})"

    def __post_init__(self) -> None:
        # what is checked here is what will be drawn and written: no array or list is shared with the caller
        object.__setattr__(self, "budgets", frozen(self.budgets, np.float64))
        try:
            object.__setattr__(self, "_details", json.dumps(self.details, allow_nan=False))
        except (TypeError, ValueError):
            raise PlanError("plan, details", "are not JSON", "give texts, finite numbers, lists and mappings") from None
        object.__setattr__(self, "details", json.loads(self._details))
        if isinstance(self.recovery, Weights):
            if not self.serves_weights:
                raise NotApplicable(self.strategy, "weights of one's own are for measured tables of counts")
        elif self.recovery not in self.recoveries:
            raise NotApplicable(self.strategy, f"its plans have no recovery `{self.recovery}`")
        self.schema.check_unit(self.privacy.rows_per_person)
        if self.schema.is_nested and not self.serves_levels:
            raise PlanError("plan, measured", "takes nested levels for unrelated attributes", "plan again")
        self.check_cost()
        if not self.is_drawable():
            raise NotApplicable(self.strategy, "the budget is so small that the noise would not fit 64-bit integers")
        if not self.is_answerable():
            raise PlanError("plan, measured", "too little is measured to answer the workload", "plan again")
        self._check_claims()

    @property
    def schema(self) -> Schema:
        """The declared domain."""
        return self.request.schema

    @property
    def workload(self) -> Workload:
        """The tables asked for."""
        return self.request.workload

    @property
    def privacy(self) -> Privacy:
        """The guarantee."""
        return self.request.privacy

    @property
    def law(self) -> Law:
        """Which discrete noise is drawn."""
        return law_of(self.privacy)

    @property
    def recovery_told(self) -> str | dict[str, Any]:
        """The recovery in JSON: its word, or its weights."""
        return self.recovery.to_dict() if isinstance(self.recovery, Weights) else self.recovery

    @property
    def groups(self) -> int:
        """How many sets are measured, each with a budget of its own."""
        return len(self.budgets)

    @property
    def counted_tables(self) -> int | None:
        """How many tables of plain counts are measured; None where something else is."""
        return None

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """What is measured, as data, in the order in which the noise is drawn."""

    @property
    @abstractmethod
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the arrays of noisy integers, in the order of a Measurement."""

    @cached_property
    def counted(self) -> Sequence[NDArray[np.int32]]:
        """The marginals whose exact tables are needed: rows of positions, one array for each number of attributes."""
        needed = {tuple(m) for block in self.blocks() for m in block.marginals.tolist()}
        return Family.of(needed, self.schema.sizes).levels

    @cached_property
    def sets_of_arrays(self) -> list[Ints]:
        """For each array of a Measurement the sets whose numbers it holds, line by line."""
        found: list[list[Ints]] = [[] for _ in self.shapes]
        for block in self.blocks():
            found[block.array].append(block.sets)
        return [np.concatenate(sets) for sets in found]

    @property
    @abstractmethod
    def in_words(self) -> str:
        """What is measured, in words."""

    @property
    def composition(self) -> str | None:
        """What the guarantee is made up of, in sentences, where several add up to it."""
        return None

    @property
    def note(self) -> str | None:
        """What readers must know about the errors, if they are not what they usually are."""
        return None

    @property
    def left_out(self) -> tuple[str, ...]:
        """The words of tables that were asked for and are not published, where a strategy may leave some out."""
        return tuple(self.details.get("left_out", ()))

    @property
    def edition(self) -> Edition | None:
        """The earlier edition that tables are guessed from, if any."""
        return None

    @property
    def underlying(self) -> Design:
        """The design that says what is counted and how tables come back: itself, unless it rests on another one."""
        return self

    @property
    def measured_tables(self) -> Family | None:
        """The tables whose cells are measured one by one, if that is all that is measured."""
        return None

    @property
    def pools_sets(self) -> bool:
        """Whether what several sets say about one residual space is combined, and held in memory."""
        return False

    @property
    def is_outcome(self) -> bool:
        """Whether it records what an adaptive run ended with: it describes that run's release, and no other one."""
        return self.strategy in ADAPTING and not self.adapts

    @property
    def person_cost(self) -> Fraction:
        """What all rows of one person cost together, in epsilon or rho: computed from the budgets."""
        return self.row_cost(self.budgets) * self._rows_weigh

    @property
    def person_rest(self) -> Fraction:
        """What that leaves of epsilon, or of the rho that the guarantee is worth."""
        return calibrate.row_budget(self.privacy, self.proof) * self._rows_weigh - self.person_cost

    @property
    def _rows_weigh(self) -> int:
        """How many times the cost of one row all rows of one person cost."""
        return self.privacy.rows_per_person ** (1 if self.privacy.is_pure else 2)

    @property
    def publishes_total(self) -> bool:
        """Whether the number of people is measured without noise: nothing else may be."""
        return bool(np.isinf(self.budgets).any())

    @property
    def is_consistent(self) -> bool:
        """Whether tables agree with each other, so that a roll-up is the same from every table."""
        return self.recovery != "none"

    @abstractmethod
    def row_cost(self, budgets: Floats) -> Fraction:
        """The exact cost of one row under given budgets, in epsilon or rho; OverflowError where it is infinite."""

    def moves(self) -> Floats:
        """How far a change of one row can move a number of each set under Laplace noise: by 1, as cells of counts."""
        return np.ones(self.groups)

    def proof_variance(self) -> Floats | float:
        """What smoothing adds: t² over the least squared row norm of each set. Here a row moves one number of each."""
        return calibrate.smoothing_variance(self.privacy, self.groups)

    def is_drawable(self) -> bool:
        """Whether all noise fits 64-bit integers, if budgets are those of the noise as drawn."""
        return self.law.is_drawable(self.budgets)

    @abstractmethod
    def is_answerable(self) -> bool:
        """Whether enough is measured to answer the workload."""

    @property
    @abstractmethod
    def errors(self) -> Errors:
        """Predicted errors, before any data exists."""

    def answers(self, measurement: Measurement) -> Answers:
        """The answers that the recovery gives, from a measurement of this very design."""
        if measurement.plan_digest != self.digest:
            raise BundleError("measurements", "belong to another plan", "use the plan that they were made with")
        return self.make_answers(measurement)

    @abstractmethod
    def make_answers(self, measurement: Measurement) -> Answers:
        """The answers that the recovery gives."""

    def averaged(self, measurement: Measurement) -> tuple[Design, Measurement]:
        """The design and measurement of averages, where sets were measured several times; others as they are."""
        return self, measurement

    @abstractmethod
    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured; its `design` names the kind."""

    @classmethod
    @abstractmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The kind's own fields from the JSON form."""

    @cached_property
    def smoothing(self) -> Floats:
        """The part of each set's noise variance that only serves the proof by smoothing; zero under other proofs."""
        return frozen(np.broadcast_to(self.proof_variance() if self.proof == "smoothing" else 0.0, len(self.budgets)))

    def check_cost(self) -> None:
        """Refuse budgets that are none, or that cost more than the guarantee allows; where noise is drawn, again."""
        budgets = self.budgets
        if budgets.ndim != 1 or len(budgets) != self.groups or np.isnan(budgets).any() or (budgets <= 0).any():
            raise PlanError("plan, budgets", "must be positive, one for each measured set", "plan again")
        if self.proof not in calibrate.proofs(self.privacy, tables=self.counted_tables):
            raise PlanError("plan, proof", f"{self.proof!r} does not fit the guarantee", "plan again")
        allowed = calibrate.row_budget(self.privacy, self.proof)
        if self.proof == "exact":
            epsilon, delta = self.privacy.epsilon or Fraction(0), self.privacy.delta or Fraction(0)
            drawn = calibrate.discrete_delta(calibrate.below(epsilon), 0.5 / float(budgets[0]))
            if drawn > delta:
                raise BudgetExceeded(drawn, delta, "delta")
        unit = "epsilon for one row" if self.privacy.is_pure else "rho for one row"
        try:
            is_smooth = self.proof == "smoothing"
            spent = self.row_cost(calibrate.without_smoothing(budgets, self.smoothing) if is_smooth else budgets)
        except OverflowError:
            raise BudgetExceeded(np.inf, allowed, unit) from None
        if spent > allowed:
            raise BudgetExceeded(spent, allowed, unit)

    def _check_claims(self) -> None:
        """What a run spent stands only in the design that the run ended with, and is what that design costs.

        Tables that are left out are tables of the schema, and are not in the workload.
        """
        if (words := self.details.get("left_out")) is not None:
            if not isinstance(words, list) or not words:
                raise PlanError("plan, details", "leave out what is no list of tables", "plan again")
            left, workload = Workload.parse(words, self.schema.declared), self.workload
            if set(map(left.word, left.marginals)) & set(map(workload.word, workload.marginals)):
                raise PlanError("plan, details", "leave out a table that is in the workload", "plan again")
        claimed = self.details.get("adaptive")
        if claimed is None:
            return
        if self.is_outcome and isinstance(claimed, Mapping):
            fits = {"method": self.strategy, "spent": float(self.person_cost), "left": float(self.person_rest)}
            if fits.items() <= claimed.items():
                return
        raise PlanError("plan, details", "describe a run that this plan does not come from", "plan again")

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, without the digest."""
        queries = self.workload.queries
        names = [] if queries is None else [a.name for a in queries.attributes]
        return {
            "format": FORMAT,
            "schema": self.schema.to_dict(),
            "workload": list(self.workload.words),
            **({} if queries is None else {"queries": {"attributes": names, **queries.rows.to_dict()}}),
            "privacy": self.privacy.to_dict(),
            "strategy": self.strategy,
            "budgets": self.budget_rule,
            "recovery": self.recovery_told,
            "proof": self.proof,
            "noise": f"discrete {self.law}",
            **self.specification(),
            "budget": [b if np.isfinite(b) else None for b in self.budgets.tolist()],
            "details": json.loads(self._details),
        }

    @cached_property
    def digest(self) -> str:
        """Any change of the decision changes it."""
        return digest_of(self.to_dict())

    def to_json(self) -> str:
        """The file's text: the JSON form with its digest."""
        return json.dumps({**self.to_dict(), "digest": self.digest}, ensure_ascii=False, allow_nan=False)


def digest_of(raw: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON form."""
    canonical = json.dumps(raw, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def read_marginal(raw: Any, schema: Schema) -> Marginal:
    """A marginal from a plan file: increasing positions in the schema."""
    marginal = tuple(map(int, raw))
    if list(marginal) != sorted(set(marginal)) or not all(0 <= i < len(schema) for i in marginal):
        raise ValueError
    return marginal


def read_recovery(given: Any) -> Recovery:
    """A word, or weights: a text that has a colon, or a mapping."""
    if isinstance(given, Weights | Mapping) or (isinstance(given, str) and ":" in given):
        return Weights.read(given)
    check_choice(given, "recovery", EVERY_RECOVERY)
    word: RecoveryWord = given
    return word
