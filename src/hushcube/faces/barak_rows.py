"""The numbers that a table is fitted to, as rows of a matrix over the cells that is never written out.

Two kinds of rows: the ±1 Walsh-Fourier coefficients (8) of bit-coded cells, and the cells of marginals (7).
A program asks for a few columns (`entries`), and for the product of all columns with a vector (`adjoint`), which is
one fast Hadamard transform, or a sum of broadcast tables. Phantom codes hold nobody: they are no columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.lattice.design import InverseFourier, LatticeDesign
from hushcube.faces.programs import Matrix
from hushcube.lattice import hadamard
from hushcube.lattice.basis import rank
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.family import Family
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.model.noise import Measurement

Value = TypeVar("Value", np.float64, np.bool_)


@dataclass(frozen=True, eq=False)
class Aim:
    """What each row should give: the noisy number, its noise's deviation, and whether it is public and thus exact."""

    targets: Floats
    deviations: Floats
    public: Bools


@dataclass(frozen=True, eq=False)
class FourierRows:
    """(-1)^<b, code of the cell> for each measured coefficient b, in the order of a Measurement."""

    aim: Aim
    rank: int  # the dimension of the space that the rows span
    sizes: tuple[int, ...]
    places: Ints  # the coefficients' numbers b: the bits of all attributes, the first attribute's bits highest

    @property
    def column_entries(self) -> int:
        """The non-zeros of a column: all of them are ±1."""
        return len(self.places)

    def entries(self, cells: Ints) -> Matrix:
        """The columns of some cells."""
        codes = np.ravel_multi_index(np.unravel_index(cells, self.sizes), _codes(self.sizes)) if self.sizes else cells
        odd = np.bitwise_count(self.places[:, None] & np.asarray(codes, np.int64)) & 1
        row, column = np.indices(odd.shape)
        return row.ravel(), column.ravel(), 1.0 - 2.0 * odd.ravel()

    def adjoint(self, y: Floats) -> Floats:
        """For each cell, the product of its column with y: one Hadamard transform, cut to the real cells."""
        codes = _codes(self.sizes)
        full = np.bincount(self.places, y, math.prod(codes)).reshape(codes)
        return np.ravel(hadamard.transform(full, range(len(codes)))[tuple(slice(0, n) for n in self.sizes)])


@dataclass(frozen=True, eq=False)
class TableRows:
    """The cells of marginals, batch by batch in the family's order."""

    aim: Aim
    rank: int
    sizes: tuple[int, ...]
    family: Family

    @property
    def column_entries(self) -> int:
        """The non-zeros of a column: one for each marginal."""
        return len(self.family)

    def entries(self, cells: Ints) -> Matrix:
        """The columns of some cells."""
        where = np.stack(np.unravel_index(cells, self.sizes))
        rows, start = [], 0
        for batch in self.family.batches:
            first = start + batch.cells * np.arange(len(batch.ids))
            rows.append(first[:, None] + np.einsum("ijc,j->ic", where[batch.rows], _strides(batch.shape)))
            start += batch.cells * len(batch.ids)
        every = np.concatenate(rows)
        return every.ravel(), np.tile(np.arange(len(cells)), len(every)), np.ones(every.size)

    def adjoint(self, y: Floats) -> Floats:
        """For each cell, the product of its column with y: the marginals' tables, spread over the cells they count."""
        result, start = np.zeros(self.sizes), 0
        for batch in self.family.batches:
            for row in batch.rows.tolist():
                spread = [n if i in row else 1 for i, n in enumerate(self.sizes)]
                result += y[start : start + batch.cells].reshape(spread)
                start += batch.cells
        return result.ravel()


Rows = FourierRows | TableRows


def coefficient_rows(design: LatticeDesign, measurement: Measurement) -> FourierRows:
    """The measured Walsh-Fourier coefficients."""
    sizes = design.schema.sizes
    places = []
    for batch in design.measured.batches:
        shape = [design.basis.rows(n) for n in batch.shape]
        frequencies = np.indices(shape).reshape(len(shape), math.prod(shape)) + 1
        places.append((_strides(_codes(sizes))[batch.rows] @ frequencies).ravel())
    return FourierRows(_measured_aim(design, measurement), rank(design.measured), sizes, np.concatenate(places))


def measured_rows(design: LatticeDesign, measurement: Measurement) -> TableRows:
    """The cells of the measured marginals."""
    return TableRows(_measured_aim(design, measurement), rank(design.measured), design.schema.sizes, design.measured)


def workload_rows(design: LatticeDesign, measurement: Measurement) -> TableRows:
    """The cells of the workload's marginals, as the noisy Fourier coefficients give them; and the total if public."""
    family, measured, sizes = design.request.marginals, design.measured, design.schema.sizes
    if design.publishes_total:
        family = Family.of({*family, ()}, family.sizes)
    answers = InverseFourier(Coefficients(measured, measurement.values))
    rows, noisy = design.numbers, np.isfinite(design.budgets)
    variances = family.sum_over_subsets(measured, rows * design.errors.set_variances(exact=True))
    public = family.sum_over_subsets(measured, rows * noisy) == 0  # the total, also over attributes of one value
    targets = np.concatenate([answers.tables(batch.rows, batch.shape).ravel() for batch in family.batches])
    cells = [batch.cells for batch in family.batches]
    deviations = _each(family, np.sqrt(variances) / family.product(_codes(sizes)), cells)
    return TableRows(Aim(targets, deviations, _each(family, public, cells)), rank(family), sizes, family)


def _measured_aim(design: LatticeDesign, measurement: Measurement) -> Aim:
    targets = np.concatenate([values.ravel() for values in measurement.values]).astype(np.float64)
    repeats = [math.prod(shape[1:]) for shape in design.shapes]
    deviations = np.sqrt(design.errors.set_variances(exact=True))
    public = ~np.isfinite(design.budgets)
    return Aim(targets, _each(design.measured, deviations, repeats), _each(design.measured, public, repeats))


def _each(family: Family, values: NDArray[Value], repeats: Sequence[int]) -> NDArray[Value]:
    """A value of each set, repeated for each of its rows."""
    return np.concatenate([np.repeat(values[b.ids], n) for b, n in zip(family.batches, repeats, strict=True)])


def _codes(sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(hadamard.padded, sizes))


def _strides(shape: Sequence[int]) -> Ints:
    return np.array([math.prod(shape[i + 1 :]) for i in range(len(shape))], np.int64)
