"""The numbers that a table is fitted to, as rows of a matrix over the cells that is never written out.

Two kinds of rows: the ±1 Walsh-Fourier coefficients (8) of bit-coded cells, and the cells of marginals (7).
A program asks for a few columns (`entries`), and for the product of all columns with a vector (`adjoint`), which is
one fast Hadamard transform, or a sum of broadcast tables. Phantom codes hold nobody: they are no columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.lattice.answers import InverseFourier
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.lattice import hadamard
from hushcube.lattice.family import Family
from hushcube.lattice.variances import dimensions
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.model.noise import Measurement

Triplets = tuple[Ints, Ints, Floats]
Value = TypeVar("Value", np.float64, np.bool_)


@dataclass(frozen=True, eq=False)
class Aim:
    """What each row should give: the noisy number, its noise's deviation, and whether it is public and thus exact."""

    targets: Floats
    deviations: Floats
    public: Bools


class Rows(Protocol):
    """A matrix over the cells of the schema's full table."""

    @property
    def aim(self) -> Aim:
        """What the rows should give."""

    @property
    def rank(self) -> int:
        """The dimension of the space that the rows span."""

    @property
    def column_entries(self) -> int:
        """The non-zeros of a column."""

    def entries(self, cells: Ints) -> Triplets:
        """The columns of some cells, as triplets (row, number of the cell in the list, entry)."""

    def adjoint(self, y: Floats) -> Floats:
        """For each cell, the product of its column with y."""


@dataclass(frozen=True, eq=False)
class FourierRows:
    """(-1)^<b, code of the cell> for each measured coefficient b, in the order of a Measurement."""

    aim: Aim
    rank: int
    sizes: tuple[int, ...]
    places: Ints
    """The coefficients' numbers b: the bits of all attributes, the first attribute's bits highest."""

    @property
    def column_entries(self) -> int:
        """All of them: ±1."""
        return len(self.places)

    def entries(self, cells: Ints) -> Triplets:
        """The columns of some cells."""
        codes = np.ravel_multi_index(np.unravel_index(cells, self.sizes), self._codes) if self.sizes else cells
        odd = np.bitwise_count(self.places[:, None] & np.asarray(codes, np.int64)) & 1
        rows = np.repeat(np.arange(len(self.places)), len(cells))
        return rows, np.tile(np.arange(len(cells)), len(self.places)), 1.0 - 2.0 * odd.ravel()

    def adjoint(self, y: Floats) -> Floats:
        """One Hadamard transform, cut to the real cells."""
        full = np.bincount(self.places, y, math.prod(self._codes)).reshape(self._codes)
        real = hadamard.transform(full, range(len(self.sizes)))[tuple(slice(0, n) for n in self.sizes)]
        return np.ravel(real)

    @property
    def _codes(self) -> tuple[int, ...]:
        return tuple(map(hadamard.padded, self.sizes))


@dataclass(frozen=True, eq=False)
class TableRows:
    """The cells of marginals, batch by batch in the family's order."""

    aim: Aim
    rank: int
    sizes: tuple[int, ...]
    family: Family

    @property
    def column_entries(self) -> int:
        """One for each marginal."""
        return len(self.family)

    def entries(self, cells: Ints) -> Triplets:
        """The columns of some cells: a one in each marginal."""
        where = np.stack(np.unravel_index(cells, self.sizes))
        rows, start = [], 0
        for batch in self.family.batches:
            strides = _strides(batch.shape)
            first = start + batch.cells * np.arange(len(batch.ids))
            rows.append(first[:, None] + np.einsum("ijc,j->ic", where[batch.rows], strides))
            start += batch.cells * len(batch.ids)
        every = np.concatenate(rows)
        return every.ravel(), np.tile(np.arange(len(cells)), len(every)), np.ones(every.size)

    def adjoint(self, y: Floats) -> Floats:
        """The sum of the marginals' tables, each spread over the cells that it counts."""
        result, start = np.zeros(self.sizes), 0
        for batch in self.family.batches:
            for row in batch.rows.tolist():
                spread = [n if i in row else 1 for i, n in enumerate(self.sizes)]
                result += y[start : start + batch.cells].reshape(spread)
                start += batch.cells
        return result.ravel()


def coefficient_rows(design: LatticeDesign, measurement: Measurement) -> FourierRows:
    """The measured Walsh-Fourier coefficients."""
    sizes = design.schema.sizes
    strides = _strides(tuple(map(hadamard.padded, sizes)))
    places = []
    for batch in design.measured.batches:
        shape = [design.basis.rows(n) for n in batch.shape]
        frequencies = np.indices(shape).reshape(len(shape), math.prod(shape)) + 1
        places.append((strides[batch.rows] @ frequencies).ravel())
    return FourierRows(_measured_aim(design, measurement), _rank(design.measured), sizes, np.concatenate(places))


def measured_rows(design: LatticeDesign, measurement: Measurement) -> TableRows:
    """The cells of the measured marginals."""
    return TableRows(_measured_aim(design, measurement), _rank(design.measured), design.schema.sizes, design.measured)


def workload_rows(design: LatticeDesign, measurement: Measurement) -> TableRows:
    """The cells of the workload's marginals, as the noisy Fourier coefficients give them; and the total if public."""
    asked = design.request.marginals
    total = design.measured.ids([()])[0]
    public_total = total >= 0 and not np.isfinite(design.budgets[total])
    family = Family.of({*asked, ()}, asked.sizes) if public_total else asked
    answers = InverseFourier(design, measurement)
    codes = family.product([hadamard.padded(n) for n in design.schema.sizes])
    rows = design.measured.product(design.basis.per_axis(design.basis.rows, design.measured.sizes))
    noisy = np.isfinite(design.budgets)
    deviations = (
        np.sqrt(family.sum_over_subsets(design.measured, rows * design.errors.set_variances(exact=True))) / codes
    )
    public = family.sum_over_subsets(design.measured, rows * noisy) == 0  # the total, also over attributes of one value
    targets = [answers.tables(batch.rows, batch.shape).ravel() for batch in family.batches]
    aim = Aim(np.concatenate(targets), _each(family, deviations), _each(family, public))
    return TableRows(aim, _rank(family), design.schema.sizes, family)


def _measured_aim(design: LatticeDesign, measurement: Measurement) -> Aim:
    targets = np.concatenate([values.ravel() for values in measurement.values]).astype(np.float64)
    repeats = [math.prod(shape[1:]) for shape in design.shapes]
    deviations = np.sqrt(design.errors.set_variances(exact=True))
    public = ~np.isfinite(design.budgets)
    return Aim(targets, _each(design.measured, deviations, repeats), _each(design.measured, public, repeats))


def _each(family: Family, values: NDArray[Value], repeats: Sequence[int] | None = None) -> NDArray[Value]:
    """A value of each set, repeated for each of its rows."""
    counts = [batch.cells for batch in family.batches] if repeats is None else repeats
    return np.concatenate([np.repeat(values[b.ids], n) for b, n in zip(family.batches, counts, strict=True)])


def _rank(family: Family) -> int:
    """sum over the residual spaces below the family of their dimensions."""
    return round(float(dimensions(family.closure).sum()))


def _strides(shape: Sequence[int]) -> Ints:
    return np.array([math.prod(shape[i + 1 :]) for i in range(len(shape))], np.int64)
