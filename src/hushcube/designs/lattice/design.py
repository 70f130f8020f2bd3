"""Plans that measure marginals, or parts of marginals, in one of four product bases.     [lattice/basis.py]"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.costs import calibrate
from hushcube.costs import family_cost as cost
from hushcube.designs.answers import Answers
from hushcube.designs.block import Block
from hushcube.designs.design import Design
from hushcube.designs.lattice.answers import DirectTables, InverseFourier, estimate
from hushcube.designs.lattice.errors import LatticeErrors
from hushcube.errors import PlanError
from hushcube.lattice.basis import BASES, Basis, dimensions, kernel
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema

_CHUNK: Final = 2**18
"""Cells handled at once: large enough to batch, small enough to stay out of the way."""


@dataclass(frozen=True)
class BasisRows:
    """The rows of a basis over tables of one shape."""

    basis: Basis

    def apply(self, tables: Ints) -> Ints:
        """The measured integers of each table."""
        return self.basis.forward(tables, range(1, tables.ndim))


def blocks_of(basis: Basis, measured: Family, budgets: Floats) -> Iterator[Block]:
    """Sets of one shape together, as many as stay within bounded memory."""
    transform = BasisRows(basis)
    for number, batch in enumerate(measured.batches):
        columns, stretch = (math.prod(map(each, batch.shape)) for each in (basis.rows, basis.stretch))
        multipliers = basis.multipliers(batch.shape)
        for part in batch.parts(_CHUNK):
            sets = batch.ids[part]
            yield Block(
                batch.rows[part],
                transform,
                sets,
                budgets[sets],
                columns,
                array=number,
                lines=part,
                stretch=stretch,
                multipliers=multipliers,
            )


@dataclass(frozen=True, eq=False, repr=False)
class LatticeDesign(Design, kind="lattice"):
    """Sets of attributes, each measured in the basis with a budget."""

    basis: Basis
    measured: Family

    def __post_init__(self) -> None:
        if self.law not in self.basis.laws:
            raise PlanError("plan, basis", f"{self.basis.name} does not go with {self.law} noise", "plan again")
        super().__post_init__()

    @property
    def groups(self) -> int:
        """One for each measured set."""
        return len(self.measured)

    @property
    def counted_tables(self) -> int | None:
        """The measured sets, where they are plain tables."""
        return counted_tables(self.basis, self.measured)

    def blocks(self) -> Iterator[Block]:
        """Batches of sets of equal shape."""
        return blocks_of(self.basis, self.measured, self.budgets)

    @cached_property
    def counted(self) -> Sequence[NDArray[np.int32]]:
        """The measured sets."""
        return self.measured.levels

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """One array for each batch of sets of equal shape."""
        return [(len(batch.ids), *map(self.basis.rows, batch.shape)) for batch in self.measured.batches]

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{len(self.measured):,} set(s) of attributes ({self.basis.name} basis)"

    @property
    def is_consistent(self) -> bool:
        """Residual spaces that are measured once agree without recovery."""
        return not (self.takes_sources or self.inverts)

    @property
    def measured_tables(self) -> Family | None:
        """The measured sets, where they are plain tables."""
        return self.measured if self.basis.holds_cells else None

    @property
    def pools_sets(self) -> bool:
        """Least squares does, unless each space is measured once."""
        return self.recovery != "none" and not self.basis.is_minimal

    @property
    def takes_sources(self) -> bool:
        """Whether each table is summed from one measured table, without recovery."""
        return self.recovery == "none" and self.basis.holds_cells

    @property
    def inverts(self) -> bool:
        """Whether each table is the inverse transform of its own numbers, without recovery."""
        return self.recovery == "none" and self.basis.has_inverse

    @property
    def sums_cells(self) -> bool:
        """Whether each answer is a plain sum of cells of one measured table."""
        return self.basis.holds_cells and (self.recovery == "none" or len(self.measured) == 1)

    def row_cost(self, budgets: Floats) -> Fraction:
        """The exact cost of one row."""
        privacy = self.privacy
        return cost.person_row_cost(self.basis, self.measured, budgets, privacy)

    def proof_variance(self) -> Floats:
        """What the proof by smoothing adds."""
        return smoothing(self.basis, self.measured, self.privacy)

    def is_drawable(self) -> bool:
        """Whether all noise fits 64-bit integers."""
        budgets, sizes = self.budgets, self.measured.sizes
        stretch = self.measured.product(self.basis.per_axis(self.basis.stretch, sizes))
        norms = self.measured.product(self.basis.per_axis(lambda n: self.basis.extreme_norms(n)[1], sizes))
        return self.law.is_drawable(budgets, stretch, norms)

    @cached_property
    def errors(self) -> LatticeErrors:
        """Predicted errors."""
        return LatticeErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """Least squares over the residual spaces, or what each set says alone."""
        if self.takes_sources:
            return DirectTables(self, measurement)
        return InverseFourier(self, measurement) if self.inverts else estimate(self, measurement)

    def is_answerable(self) -> bool:
        """Whether every marginal lies inside a measured table (no recovery), or every residual space is seen."""
        if self.takes_sources:
            answered = self.measured.sum_over_supersets(self.request.marginals, np.ones(len(self.measured))) > 0
        else:
            spaces = self.request.spaces
            seen = kernel(self.basis, self.measured, np.ones(len(self.measured)), spaces) > 0
            answered = seen | (dimensions(spaces) == 0)
        return bool(answered.all())

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        return {
            "design": "lattice",
            "basis": self.basis.name,
            "measured": [level.tolist() for level in self.measured.levels],
        }

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The basis and the measured sets from the JSON form."""
        levels = [np.array(level, dtype=np.int32).reshape(len(level), k) for k, level in enumerate(raw["measured"])]
        if not _increasing(levels, len(schema)):
            raise ValueError
        return {"basis": BASES[raw["basis"]], "measured": Family(schema.sizes, levels)}


def counted_tables(basis: Basis, measured: Family) -> int | None:
    """How many tables of plain counts are measured; None where something else is."""
    return len(measured) if basis.holds_cells else None


def smoothing(basis: Basis, measured: Family, privacy: Privacy) -> Floats:
    """t² over the smallest squared row norm of each set: the variance that the proof by smoothing adds."""
    touched = float(measured.product(basis.per_axis(basis.touched, measured.sizes)).sum())
    norms = measured.product(basis.per_axis(lambda n: basis.extreme_norms(n)[0], measured.sizes))
    return calibrate.smoothing_variance(privacy, touched) / norms


def _increasing(levels: list[NDArray[np.int32]], d: int) -> bool:
    return all(
        (np.diff(level, axis=1) > 0).all() and (level >= 0).all() and (level < d).all()
        for level in levels
        if level.size
    )
