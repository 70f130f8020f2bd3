"""The start and the outcome of a selective run, and what both know of its rounds.

A run goes from small tables to large ones. In round k the tables of k attributes are guessed from those of k - 1
[lattice/guesses.py]; how far the true ones are from their guesses,

    misfit_A = || x_A - round(q_A) ||_1            a whole number, which one row that comes or goes moves by 1 at most,

is measured for all of them with noise; then the budget of the round is divided where it lowers the expected error most
[dividing.py], and what each table adds to the smaller ones is measured. Every set is measured once, with noise that
is independent of how much of it was decided before: the unbiased tables are unbiased, and no set is left without any
budget, so that all of them exist. Tables at face value are fitted with the misfits, which say how firmly to believe in
the guesses. In the end the misfits of all tables asked for from their fit are measured as well: an unbiased look, with
noise of a known law, at how wrong the published tables are, whatever was assumed on the way.

    SelectiveDesign   before a run: what is measured, and the least budget that each set is sure to get
    SelectedDesign    after it: the budgets that sets got, those of the misfits of each order, and of the last look

Where an earlier edition of the tables is known, those that it has are guessed twice [lattice/second_guesses.py]; both
guesses are looked at, and the nearer one is taken. The edition is public, and both designs hold it.

Cost: that of the sets, and for each noisy misfit what a change by 1 costs, or by 2 where one row replaces another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.costs import calibrate, row_cost as cost
from hushcube.designs.block import Block
from hushcube.designs.budgets import columns_of
from hushcube.designs.derived import DerivedDesign
from hushcube.designs.design import Design
from hushcube.designs.errors import COVERAGE
from hushcube.designs.grid import BELOW
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.request import OBJECTIVES, Objective, Request
from hushcube.errors import PlanError
from hushcube.lattice.basis import HELMERT, MARGINAL, Basis, residual_variances, with_dimension
from hushcube.lattice.coefficients import Coefficients, combine
from hushcube.lattice.entropy import Noisy
from hushcube.lattice.family import Family
from hushcube.lattice.second_guesses import Earlier
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.model.edition import Edition
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.options import check_choice

LEAST: Final = Fraction(1, 50)
"""Of the budget: what is divided evenly beforehand, so that every set is measured."""
MOST_LOOKS: Final = Fraction(1, 2)
"""Of the budget: what all looks at misfits together must stay below."""
_DOUBT: Final = 0.5  # of the noise of misfits: what a misfit is taken for at least
_NOTE: Final = (
    "errors shown are the largest that the unbiased tables can have: the run spends its budget on the tables whose "
    "cells smaller tables do not explain; it is made for face values (`--face integral`), whose errors are far smaller"
)


def basis_of(privacy: Privacy) -> Basis:
    """Parts of tables under Gaussian noise, tables under Laplace noise."""
    return MARGINAL if privacy.is_pure else HELMERT


def measured_sets(request: Request) -> Family:
    """Whatever the workload is made of."""
    return with_dimension(request.spaces)


def of_order(measured: Family, k: int) -> Family:
    """The measured sets of k attributes."""
    return Family(measured.sizes, [*(np.zeros((0, j), np.int32) for j in range(k)), measured.levels[k]])


def unit_costs(request: Request, measured: Family) -> Floats:
    """About what a unit of each set's budget costs one row; by how much exactly, the whole says."""
    change = 1.0 if request.privacy.neighbours == "add-remove" else 2.0
    return columns_of(basis_of(request.privacy), measured, request.privacy) * change


def misfit_cost(privacy: Privacy, tables: int, budget: float) -> Fraction:
    """What the noisy misfits of so many tables cost one row."""
    change = max(2 if way == "replace-one" else 1 for way in privacy.row_changes)
    return tables * Fraction(budget) * (change if privacy.is_pure else change**2)


def sure_budgets(request: Request, measured: Family, proof: calibrate.Proof) -> Floats:
    """What each set gets at least: all of them the same part of `LEAST` of the budget."""
    public = cost.unchanged_by_replacing(measured) & request.privacy.total_is_public
    costs = unit_costs(request, measured)
    shape = np.where(public, np.inf, 1 / costs)
    spent = partial(cost.cost_of_sets, basis_of(request.privacy), measured, privacy=request.privacy)
    unit = spent(shape)
    return shape * (float(LEAST * calibrate.row_budget(request.privacy, proof) / unit) * BELOW if unit else 1.0)


def noisy_spaces(basis: Basis, measured: Family, values: list[Floats], variances: Floats, spaces: Family) -> Noisy:
    """What measured sets say about residual spaces, by least squares.

    There are values for each batch of the sets, and a variance for each set.
    """
    with np.errstate(divide="ignore"):  # spaces that vary with nothing have no coefficients, and no variance
        v = residual_variances(basis, measured, variances, None, spaces)
    if basis is MARGINAL:
        public = variances <= 0
        weights = 1 / np.where(public, variances[~public].min(initial=1.0) * 1e-9, variances)
        return Noisy(combine(measured, values, weights, spaces), v)
    held = Coefficients(measured, tuple(values))
    found = Coefficients.zeros(spaces)
    for block, batch in zip(found.blocks, spaces.batches, strict=True):
        if block.size:
            np.copyto(block, np.asarray(held.gather(batch.rows), np.float64))
    return Noisy(found, np.where(np.isfinite(v), v, 1.0))


def earlier_of(edition: Edition, sizes: Sequence[int]) -> Earlier:
    """The tables of an earlier edition, for guesses."""
    family = Family.of(edition.marginals, sizes)
    values = [np.stack([edition.tables[tuple(row)] for row in batch.rows.tolist()]) for batch in family.batches]
    return Earlier.of(family, values)


@dataclass(frozen=True, eq=False, repr=False)
class GuessingDesign(DerivedDesign):
    """What is known before anything is measured: an earlier edition, if any."""

    like: Edition | None = field(default=None, kw_only=True)

    @property
    def edition(self) -> Edition | None:
        """The earlier edition."""
        return self.like

    @property
    def measured(self) -> Family:
        """The sets."""
        return self.measured_by["measured"]  # type: ignore[no-any-return]

    @cached_property
    def earlier(self) -> Earlier | None:
        """The tables of the earlier edition."""
        return None if self.like is None else earlier_of(self.like, self.schema.sizes)

    def twice(self, k: int) -> Bools:
        """Which of the measured sets of k attributes have tables that are guessed twice."""
        rows = self.measured.levels[k]
        return np.zeros(len(rows), bool) if self.earlier is None else self.earlier.has(rows)

    def specification(self) -> dict[str, Any]:
        """The JSON form."""
        return {**super().specification(), **({} if self.like is None else {"like": self.like.to_dict()})}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The fields from the JSON form."""
        like = {"like": Edition.from_dict(raw["like"], schema)} if "like" in raw else {}
        return {**super().from_specification(raw, schema), **like}


@dataclass(frozen=True, eq=False, repr=False)
class SelectiveDesign(GuessingDesign, kind="selective"):
    """Before a run: what is measured, the least budget of each set, and the share of misfits."""

    adapts = True
    recoveries = ("gls",)
    misfit_share: Fraction
    """Of the budget: what the misfits of one order may cost."""
    check_share: Fraction
    """Of the budget: what the last look at the fitted tables may cost."""
    objective: Objective = "total"
    """Whether the sum of the tables' expected errors is made small, or the largest of them."""
    sanity_bound: Fraction | None = None
    """Where errors count in proportion to cells, over max(count, this)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.objective, "plan, objective", OBJECTIVES)
        if self.sanity_bound is not None and (self.sanity_bound <= 0 or self.objective == "max"):
            raise PlanError("plan, sanity_bound", "is none for this objective", "plan again")
        rounds = len(self.measured.levels) - 1
        looks = self.misfit_share * max(rounds - 1, 1) + self.check_share
        if min(self.misfit_share, self.check_share) <= 0 or looks >= MOST_LOOKS:
            raise PlanError("plan, misfit_share", "leaves too little for the tables", "plan again")
        asked = {"basis": basis_of(self.privacy), "measured": measured_sets(self.request)}
        sure = sure_budgets(self.request, asked["measured"], self.proof)  # type: ignore[arg-type]
        same = self.base is LatticeDesign and self.based(sure, asked).specification() == self.underlying.specification()
        if not same or self.strategy != "selective" or (sure != self.budgets).any():
            raise PlanError("plan, under", "is not what the workload asks for", "plan again")

    @cached_property
    def counted(self) -> Sequence[NDArray[np.int32]]:
        """Those of the sets, and the tables asked for: the last look is at these, whatever they vary with."""
        every = {tuple(row) for level in super().counted for row in level.tolist()} | {*self.request.marginals}
        return Family.of(every, self.schema.sizes).levels

    @property
    def note(self) -> str | None:
        """Its errors are the largest."""
        return _NOTE

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{self.underlying.in_words}, more precisely where smaller tables do not explain larger ones"

    def specification(self) -> dict[str, Any]:
        """The JSON form."""
        return {"design": "selective", **super().specification(), **self.asked}

    @property
    def asked(self) -> dict[str, str]:
        """The options of the run, in the JSON form: shares of the budget, and what is not usual."""
        shares = {"misfit_share": str(self.misfit_share), "check_share": str(self.check_share)}
        aim = {} if self.objective == "total" else {"objective": self.objective}
        return {**shares, **aim, **({} if self.sanity_bound is None else {"sanity_bound": str(self.sanity_bound)})}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The fields from the JSON form."""
        shares = {name: Fraction(raw[name]) for name in ("misfit_share", "check_share")}
        aim = {"objective": raw["objective"]} if "objective" in raw else {}
        bound = {"sanity_bound": Fraction(raw["sanity_bound"])} if "sanity_bound" in raw else {}
        return {**super().from_specification(raw, schema), **shares, **aim, **bound}


@dataclass(frozen=True, eq=False, repr=False)
class SelectedDesign(GuessingDesign, kind="selected"):
    """What a run ended with: budgets of the sets, after them those of the misfits, from two attributes on, and last
    that of the misfits of the tables asked for from their fit."""

    recoveries = ("gls",)

    def __post_init__(self) -> None:
        if self.base is not LatticeDesign:
            raise PlanError("plan, under", "is nothing that a selective run ends with", "plan again")
        super().__post_init__()

    @property
    def orders(self) -> range:
        """The numbers of attributes whose tables have misfits."""
        return range(2, len(self.measured.levels))

    @property
    def groups(self) -> int:
        """The sets, the misfits of each order, and the last look."""
        return len(self.measured) + len(self.looks)

    @property
    def looks(self) -> list[int]:
        """How many misfits are measured, look by look: those of tables, and of those guessed twice once more.

        The last is at the fitted tables.
        """
        looks = (len(self.measured.levels[k]) + int(self.twice(k).sum()) for k in self.orders)
        return [*looks, len(self.request.marginals)]

    @property
    def underlying_budgets(self) -> Floats:
        """Those of the sets."""
        return self.budgets[: len(self.measured)]

    @property
    def misfit_budgets(self) -> Floats:
        """Those of the looks at misfits."""
        return self.budgets[len(self.measured) :]

    def row_cost(self, budgets: Floats) -> Fraction:
        """What the sets cost, and the misfits."""
        sets, misfits = np.split(budgets, [len(self.measured)])
        pairs = zip(self.looks, misfits.tolist(), strict=True)
        return self.underlying.row_cost(sets) + sum((misfit_cost(self.privacy, n, b) for n, b in pairs), Fraction(0))

    def blocks(self) -> Iterator[Block]:
        """None: what was measured was decided by a run that is over."""
        raise PlanError("plan", "records what a run ended with, and cannot be carried out again", "plan again")

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Those of the sets, and a line of misfits for each look."""
        return [*self.underlying.shapes, *((tables,) for tables in self.looks)]

    @property
    def counted_tables(self) -> int | None:
        """None: misfits are no cells."""
        return None

    @property
    def in_words(self) -> str:
        """What was measured, in words."""
        return f"{self.underlying.in_words}, and how far larger tables are from what smaller ones say"

    def averaged(self, measurement: Measurement) -> tuple[Design, Measurement]:
        """The sets alone."""
        values = measurement.values[: len(self.underlying.shapes)]
        return self.underlying, Measurement(self.underlying.digest, values, measurement.private)

    def misfit_shares(self, measurement: Measurement, *, second: bool = False) -> dict[int, Floats]:
        """The noisy misfits of tables from their guesses as shares of all people, by order; or from second guesses.

        In the order of all tables of so many attributes inside the workload's; those that vary with nothing have none.
        """
        people = self._people(measurement)
        found = {}
        values = measurement.values[len(self.underlying.shapes) : -1]
        for k, misfits, budget in zip(self.orders, values, self.misfit_budgets[:-1].tolist(), strict=True):
            known = shares_of(misfits, self._noise(budget), people)
            first, others = np.split(known, [len(self.measured.levels[k])])
            if second:
                first = np.zeros_like(first)
                first[self.twice(k)] = others
            every = self.request.spaces.levels[k]
            found[k] = np.zeros(len(every))
            at = of_order(self.measured, k).find(every)
            found[k][at >= 0] = first[at[at >= 0]]
        return found

    def nearest_misfits(self, measurement: Measurement) -> dict[int, Floats]:
        """Those from the nearer guess, where tables are guessed twice."""
        first, second = (self.misfit_shares(measurement, second=which) for which in (False, True))
        return {k: np.where(second[k] > 0, np.minimum(first[k], second[k]), first[k]) for k in self.orders}

    def checked(self, measurement: Measurement) -> tuple[Floats, float]:
        """The noisy misfits of the tables asked for from their fit, in people, and the margin of each of them.

        The true misfit is below its noisy one plus the margin with a probability of 97.5%.
        """
        budget = float(self.misfit_budgets[-1])
        return measurement.values[-1].astype(np.float64), float(self.law.margin(budget, 1, COVERAGE))

    @property
    def check_noise(self) -> float:
        """The standard deviation of the noise of the last look."""
        return self._noise(float(self.misfit_budgets[-1]))

    def _noise(self, budget: float) -> float:
        return float(np.sqrt(self.law.formula(np.asarray(budget))))

    def _people(self, measurement: Measurement) -> float:
        return max(float(np.asarray(measurement.values[0]).reshape(-1)[0]), 1.0)

    def specification(self) -> dict[str, Any]:
        """The JSON form."""
        return {"design": "selected", **super().specification()}


def shares_of(misfits: Ints, noise: float, people: float) -> Floats:
    """Noisy misfits as shares of all people; where noise hides one, part of the noise."""
    return np.maximum(misfits.astype(np.float64), _DOUBT * noise) / people
