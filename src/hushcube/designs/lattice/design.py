"""Designs that measure marginals, or parts of marginals, in one of four product bases, and the tables that come back.

Least squares is diagonal over the residual spaces. With t_B the measured set B brought back to a table on B's
attributes (the adjoint of its rows) and weights u_B,

    coefficient_C = sum_{B >= C}  u_B / cells(B)  coefficient_C(t_B)  /  K_C(u)                      [lattice/basis.py]

u = 1/variance is generalised least squares, the best linear unbiased answer; u = 1 the papers' ordinary one.
No vector of the domain's size appears, and no matrix is inverted.       [Ding et al. 2011, (9)-(14), for any noise]

Without recovery, as in the papers' baselines, each table comes from its own noisy numbers; tables may disagree.
Recovery `answers` makes these first answers y⁰ agree, whatever was measured: the nearest tables that do, all cells
alike. That is the same sum over the tables asked for,                         [Yaroslavtsev et al. 2013, III-C, IV-C]

    coefficient_C = sum_{A asked for, A >= C}  coefficient_C(y⁰_A) / cells(A)  /  sum_{A asked for, A >= C} 1 / cells(A)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.costs import calibrate
from hushcube.costs.row_cost import cost_of_sets
from hushcube.designs.answers import Answers, OneByOne, summed
from hushcube.designs.block import Block
from hushcube.designs.design import EVERY_RECOVERY, Design, Recovery
from hushcube.designs.lattice.errors import LatticeErrors
from hushcube.designs.lattice.weighted import WeightedErrors, Weighting, weighted_answers
from hushcube.designs.weights import Weights
from hushcube.errors import PlanError
from hushcube.lattice import hadamard
from hushcube.lattice.basis import BASES, MARGINAL, Basis, dimensions, kernel
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints, Marginal, position_rows
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema

CHUNK: Final = 2**18  # cells handled at once: large enough to batch, small enough to stay out of the way


@dataclass(frozen=True)
class BasisRows:
    """The rows of a basis over tables of one shape."""

    basis: Basis

    def apply(self, tables: Ints) -> Ints:
        """The measured integers of each table."""
        return self.basis.forward(tables, range(1, tables.ndim))


@dataclass(frozen=True, eq=False, repr=False)
class FamilyDesign(Design):
    """Sets of attributes, each measured in a product basis with a budget.     [lattice/basis.py]"""

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
    def numbers(self) -> Floats:
        """How many numbers are measured of each set."""
        return self.measured.product(self.basis.per_axis(self.basis.rows, self.measured.sizes))

    @property
    def counted_tables(self) -> int | None:
        """The measured sets, where they are plain tables."""
        return len(self.measured) if self.basis.holds_cells else None

    def blocks(self) -> Iterator[Block]:
        """Sets of one shape together, as many as stay within bounded memory."""
        basis, transform = self.basis, BasisRows(self.basis)
        for number, batch in enumerate(self.measured.batches):
            columns, stretch = (math.prod(map(each, batch.shape)) for each in (basis.rows, basis.stretch))
            multipliers = basis.multipliers(batch.shape)
            for part in batch.parts(CHUNK):
                rows, sets = batch.rows[part], batch.ids[part]
                yield Block(rows, transform, sets, self.budgets[sets], columns, number, part, stretch, multipliers)

    @cached_property
    def counted(self) -> Sequence[NDArray[np.int32]]:
        """The measured sets."""
        return self.measured.levels

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """One array for each batch of sets of equal shape."""
        return [(len(batch.ids), *map(self.basis.rows, batch.shape)) for batch in self.measured.batches]

    def row_cost(self, budgets: Floats) -> Fraction:
        """The exact cost of one row."""
        return cost_of_sets(self.basis, self.measured, budgets, self.privacy)

    def moves(self) -> Floats:
        """By the entries of a column, or of the difference of two."""
        return np.full(self.groups, self.basis.farthest if "replace-one" in self.privacy.row_changes else 1.0)

    def proof_variance(self) -> Floats:
        """What the proof by smoothing adds."""
        return smoothing(self.basis, self.measured, self.privacy)

    def is_drawable(self) -> bool:
        """Whether all noise fits 64-bit integers."""
        basis, sizes = self.basis, self.measured.sizes
        stretch = self.measured.product(basis.per_axis(basis.stretch, sizes))
        norms = self.measured.product(basis.per_axis(lambda n: basis.extreme_norms(n)[1], sizes))
        return self.law.is_drawable(self.budgets, stretch, norms)

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        return {"measured": [level.tolist() for level in self.measured.levels]}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The measured sets from the JSON form: rows of increasing positions in the schema."""
        levels = [np.array(level, dtype=np.int32).reshape(len(level), k) for k, level in enumerate(raw["measured"])]
        if any((np.diff(level) <= 0).any() or (level < 0).any() or (level >= len(schema)).any() for level in levels):
            raise ValueError
        return {"measured": Family(schema.sizes, levels)}


@dataclass(frozen=True, eq=False, repr=False)
class LatticeDesign(FamilyDesign, kind="lattice"):
    """Marginals, or parts of marginals."""

    recoveries = EVERY_RECOVERY

    @property
    def serves_weights(self) -> bool:  # type: ignore[override] # only measured tables are weighted
        """Of tables, but not of parts of tables."""
        return self.basis.holds_cells

    @cached_property
    def weighting(self) -> Weighting:
        """The weights of the user's own, where the recovery is that."""
        if not isinstance(self.recovery, Weights):
            raise TypeError(self.recovery)
        return Weighting(self.request, self.measured, self.recovery)

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{len(self.measured):,} set(s) of attributes ({self.basis.name} basis)"

    @property
    def is_consistent(self) -> bool:
        """Residual spaces that are measured once agree without recovery."""
        return not (self.takes_sources or self.inverts or self.weighs)

    @property
    def measured_tables(self) -> Family | None:
        """The measured sets, where they are plain tables."""
        return self.measured if self.basis.holds_cells else None

    @property
    def pools_sets(self) -> bool:
        """Least squares does, unless each space is measured once."""
        return self.recovery != "none" and not self.basis.is_minimal

    @property
    def note(self) -> str | None:
        """Answers with weights of the user's own may contradict each other."""
        return "tables are weighted sums of measured ones, and need not agree with each other" if self.weighs else None

    @property
    def weighs(self) -> bool:
        """Whether each table is a weighted sum of measured tables, with weights of the user's own."""
        return isinstance(self.recovery, Weights)

    @property
    def takes_sources(self) -> bool:
        """Whether each table is summed from one measured table, without recovery."""
        return self.recovery == "none" and self.basis.holds_cells

    @property
    def inverts(self) -> bool:
        """Whether each table is the inverse transform of its own numbers, without recovery."""
        return self.recovery == "none" and self.basis.has_inverse

    @property
    def projects(self) -> bool:
        """Whether tables are first made one by one, and then to agree; elsewhere they agree from the start."""
        return self.recovery == "answers" and (self.basis.holds_cells or self.basis.has_inverse)

    @property
    def sums_cells(self) -> bool:
        """Whether each answer is a plain sum of cells of one measured table."""
        return self.basis.holds_cells and (self.recovery == "none" or len(self.measured) == 1)

    @cached_property
    def errors(self) -> LatticeErrors:
        """Predicted errors."""
        return WeightedErrors(self) if self.weighs else LatticeErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """Least squares over the residual spaces, or what each set says alone."""
        if self.weighs:
            return weighted_answers(self, measurement)
        if self.takes_sources:
            return _sums_of_sources(self, measurement)
        if self.inverts:
            return InverseFourier(Coefficients(self.measured, measurement.values))
        return (_nearest_to_answers if self.projects else _least_squares)(self, measurement)

    def recovered_by(self, recovery: Recovery) -> LatticeDesign:
        """The same measurement with tables made in another way; without recovery, each from its own numbers."""
        return replace(self, recovery=recovery)

    def is_answerable(self) -> bool:
        """Whether every marginal lies inside a measured table (no recovery), or every residual space is seen."""
        ones, spaces = np.ones(len(self.measured)), self.request.spaces
        if self.weighs:  # what cannot be answered, or would be biased, is refused with its name
            return set(self.request.marginals) <= self.weighting.terms.keys()
        if self.basis.holds_cells and self.recovery in ("none", "answers"):
            return bool((self.measured.sum_over_supersets(self.request.marginals, ones) > 0).all())
        seen = kernel(self.basis, self.measured, ones, spaces) > 0
        return bool((seen | (dimensions(spaces) == 0)).all())

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        return {"design": "lattice", "basis": self.basis.name, **super().specification()}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The basis and the measured sets from the JSON form."""
        return {"basis": BASES[raw["basis"]], **super().from_specification(raw, schema)}


def smoothing(basis: Basis, measured: Family, privacy: Privacy) -> Floats:
    """t² over the smallest squared row norm of each set: the variance that the proof by smoothing adds."""
    touched = float(measured.product(basis.per_axis(basis.touched, measured.sizes)).sum())
    norms = measured.product(basis.per_axis(lambda n: basis.extreme_norms(n)[0], measured.sizes))
    return calibrate.smoothing_variance(privacy, touched) / norms


def _least_squares(design: LatticeDesign, measurement: Measurement) -> Coefficients:
    """The coefficients of every residual space of the workload."""
    if design.basis.is_minimal:  # each space was measured once, in the basis of the coefficients
        return Coefficients(design.measured, measurement.values)
    basis, measured, weights = design.basis, design.measured, design.errors.recovery_weights()
    tables = (
        (number, part, basis.adjoint(values[part].astype(np.float64), batch.shape))
        for number, (batch, values) in enumerate(zip(measured.batches, measurement.values, strict=True))
        for part in batch.parts(CHUNK)
    )
    scale = kernel(basis, measured, weights, design.request.spaces)
    return _pooled(design, measurement, measured, tables, weights / measured.cells, scale)


def _nearest_to_answers(design: LatticeDesign, measurement: Measurement) -> Coefficients:
    """The coefficients of the consistent tables nearest to those that are answered one by one."""
    asked, first = design.request.marginals, design.recovered_by("none").make_answers(measurement)
    tables = (
        (number, part, first.tables(batch.rows[part], batch.shape))
        for number, batch in enumerate(asked.batches)
        for part in batch.parts(CHUNK)
    )
    scale = kernel(MARGINAL, asked, np.ones(len(asked)), design.request.spaces)
    return _pooled(design, measurement, asked, tables, 1 / asked.cells, scale)


def _pooled(
    design: LatticeDesign,
    measurement: Measurement,
    family: Family,
    tables: Iterable[tuple[int, slice, Floats]],
    shares: Floats,
    scale: Floats,
) -> Coefficients:
    """For each space, the sum of its coefficients in all tables times their shares, over its scale.

    Tables come in parts of the family's batches.
    """
    result = Coefficients.zeros(design.request.spaces)
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    for number, part, values in tables:
        result.add_tables(family.part(number, part), values, shares[family.batches[number].ids[part]], inverse)
    total = design.measured.ids([()])[0]
    if total >= 0 and not np.isfinite(design.budgets[total]):  # public
        result.blocks[0][0] = measurement.values[0][0]
    return result


def _sums_of_sources(design: LatticeDesign, measurement: Measurement) -> Answers:
    """Sums of cells of one measured table."""
    measured, sets = Coefficients(design.measured, measurement.values), list(design.measured)
    sources = design.errors.sources()[0]

    def table(marginal: Marginal) -> Floats:
        source = sets[sources[design.request.marginals.find(position_rows(marginal))[0]]]
        found = measured.gather(position_rows(source))
        if found is None:
            raise LookupError("a source is a measured set")
        return summed(found[0], source, marginal)

    return OneByOne(table)


@dataclass(frozen=True, eq=False)
class InverseFourier:
    """The inverse Hadamard transform of Walsh-Fourier coefficients, phantom codes dropped."""

    coefficients: Coefficients

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        codes = tuple(map(hadamard.padded, shape))
        axes = range(1, len(shape) + 1)
        tables = hadamard.transform(self.coefficients.assemble(rows, codes), axes) / np.prod(codes, dtype=np.float64)
        return tables[(slice(None), *(slice(0, n) for n in shape))]
