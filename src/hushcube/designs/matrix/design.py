"""Designs that measure the integer rows of any matrix over the cells of one small table.

Rows share a budget within a group; every number gets noise of its own. What the rows cost is in costs/row_cost.py, what
they can answer in row_space.py. Without recovery a query is answered by the first row that is a multiple of it.

Predicted errors come from the covariance of the least-squares table, or row by row without recovery.

    Cov(x) = H diag(variance) H^T            [designs/matrix/row_space.py]

A table's covariance sums those of its carrier's cells; a marginal's total variance adds up the entries for pairs of
cells that agree on its attributes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.costs import calibrate
from hushcube.costs.exchange import row_moves
from hushcube.costs.row_cost import cost_of_rows
from hushcube.designs.answers import Answers, OneByOne, summed
from hushcube.designs.block import Block
from hushcube.designs.design import Design, read_marginal
from hushcube.designs.errors import Along, Errors, kept
from hushcube.designs.matrix.row_space import Matches, RowSpace, indicator, outside, pair_sums, positions, row_space
from hushcube.errors import PlanError
from hushcube.model.arrays import Bools, Floats, Ints, Marginal, applied, position_rows
from hushcube.model.form import Form, GroupTable, RangeTable
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.queries import QueryTable, SparseRows, integer_problem
from hushcube.model.schema import Schema

MAX_CELLS: Final = 4_096  # dense algebra: a few matrices of this size are held


@dataclass(frozen=True, eq=False)
class RowSums:
    """Sums of a table's cells, each times the integer that a row has there."""

    rows: SparseRows

    def apply(self, tables: Ints) -> Ints:
        """One number for each row."""
        columns, values, row_of = self.rows.arrays
        numbers = np.zeros(len(self.rows), dtype=np.int64)
        np.add.at(numbers, row_of, values.astype(np.int64) * tables.reshape(-1)[columns])  # at most 2^16 * 2^34 rows
        return numbers


@dataclass(frozen=True, eq=False, repr=False)
class MatrixDesign(Design, kind="matrix"):
    """Rows over the cells of a marginal, in groups with a budget each."""

    marginal: Marginal
    rows: SparseRows
    group_of: tuple[int, ...]
    most_cells: ClassVar[int] = MAX_CELLS

    def __post_init__(self) -> None:
        if self.schema.cells(self.marginal) != self.rows.width or not 0 < self.rows.width <= self.most_cells:
            raise PlanError("plan, marginal", "does not fit the rows", "plan again")
        if not all(set(needed) <= set(self.marginal) for needed in self.request.marginals):
            raise PlanError("plan, marginal", "does not hold the workload's attributes", "plan again")
        if len(self.group_of) != len(self.rows) or set(self.group_of) != set(range(len(self.budgets))):
            raise PlanError("plan, group_of", "does not fit the rows and budgets", "plan again")
        if problem := integer_problem(self.rows):
            raise PlanError("plan, rows", problem[0], "plan again")
        super().__post_init__()

    def blocks(self) -> Iterator[Block]:
        """All rows together."""
        groups = np.array(self.group_of, dtype=np.int64)
        yield Block(position_rows(self.marginal), RowSums(self.rows), groups, self.row_budgets, columns=1)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """One number for each row."""
        return [(len(self.rows),)]

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{len(self.rows):,} row(s) of a matrix over {self.schema.describe(self.marginal)}"

    @property
    def row_budgets(self) -> Floats:
        """The budget of each row."""
        return np.asarray(self.budgets[np.array(self.group_of)])

    @property
    def public(self) -> Bools:
        """Rows that are published exactly."""
        return ~np.isfinite(self.row_budgets)

    @property
    def space(self) -> RowSpace:
        """What the rows can answer."""
        return row_space(self.rows, tuple(self.public.tolist()))

    @cached_property
    def matches(self) -> Matches:
        """Which rows answer queries without recovery."""
        return Matches(self.rows)

    def row_cost(self, budgets: Floats) -> Fraction:
        """The cost of one row of data, never understated."""
        return cost_of_rows(self.rows, np.array(self.group_of), budgets, self.privacy)

    def moves(self) -> Floats:
        """By the entries of a column, or of the difference of two."""
        return row_moves(self.rows, np.array(self.group_of), self.groups, self.privacy)

    def proof_variance(self) -> float:
        """What the proof by smoothing adds."""
        return smoothing(self.rows, self.privacy)

    @cached_property
    def errors(self) -> _MatrixErrors:
        """Predicted errors."""
        return _MatrixErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """One table by least squares, or each answer by its own row."""
        numbers = measurement.values[0].astype(np.float64)
        return _MatchedRows(self, numbers) if self.recovery == "none" else least_squares(self, numbers)

    def is_answerable(self) -> bool:
        """Whether every published table is in the row space or, without recovery, among the rows."""
        if self.recovery == "none":
            return self.matches.missing(self.workload, self.marginal) is None
        return outside(self.space, self.workload, self.marginal) is None

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        own = {"marginal": list(self.marginal), "rows": self.rows.to_dict(), "group_of": list(self.group_of)}
        return {"design": "matrix", **own}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The rows and their groups from the JSON form."""
        marginal, rows = read_marginal(raw["marginal"], schema), SparseRows.from_dict(raw["rows"])
        return {"marginal": marginal, "rows": rows, "group_of": tuple(map(int, raw["group_of"]))}


class _MatrixErrors(Errors):
    """Variances from the covariance of the least-squares table, or row by row."""

    design: MatrixDesign

    def row_variances(self, *, exact: bool) -> Floats:
        """The noise variance of each row; zero where it is public."""
        return np.asarray(self.drawn_variances(exact=exact)[np.array(self.design.group_of)])

    @kept
    def recovery_matrix(self, *, exact: bool) -> Floats:
        """H of least squares: generalised with the true variances of the noise, or ordinary."""
        variances = self.row_variances(exact=exact)[~self.design.public]
        if self.design.recovery == "ols":
            weights = np.ones(len(variances))
        else:  # noise so small that its variance rounds to nothing is as good as any
            weights = 1 / np.maximum(variances, max(float(variances.max(initial=0.0)) * 1e-12, 1e-300))
        return self.design.space.inverse(weights)

    @kept
    def covariance(self, *, exact: bool) -> Floats:
        """The covariance of the carrier's cells under least squares."""
        half = self.recovery_matrix(exact=exact) * np.sqrt(self.row_variances(exact=exact))
        return np.asarray(half @ half.T)

    def table_covariance(self, A: Marginal, *, exact: bool) -> Floats:
        """The covariance of a marginal's cells."""
        design = self.design
        shape, d = design.schema.shape(design.marginal), len(design.marginal)
        dropped = [axis for axis, i in enumerate(design.marginal) if i not in A]
        pairs = self.covariance(exact=exact).reshape(*shape, *shape)
        cells = design.schema.cells(A)
        return np.asarray(pairs.sum(axis=(*dropped, *(d + axis for axis in dropped))).reshape(cells, cells))

    def cell_variances(self, *, exact: bool) -> Floats:
        """NaN for a marginal that only carries queries and cannot be answered by itself."""
        design, marginals = self.design, self.design.request.marginals
        published = set(design.workload.published)
        if design.recovery == "none":
            return np.array([self._direct(A, exact=exact).mean() if A in published else math.nan for A in marginals])
        sums = pair_sums(design.schema, design.marginal, self.covariance(exact=exact), marginals)
        variances = sums / marginals.cells
        for at, A in enumerate(marginals):
            if A not in published and design.space.outside(indicator(design.schema, design.marginal, A)).any():
                variances[at] = math.nan
        return variances

    def _direct(self, A: Marginal, *, exact: bool) -> Floats:
        """Without recovery: the variance of each cell of a published marginal."""
        design = self.design
        at, factor = design.matches.table(design.schema, design.marginal, A)
        return np.asarray(self.row_variances(exact=exact)[at] * factor**2)

    def _rolled_up(self, marginal: Marginal) -> Floats:
        """Without recovery: cells of a published marginal, or sums of cells of the smallest one that contains it."""
        design = self.design
        published, schema = design.workload.published, design.schema
        if marginal in published:
            return self._direct(marginal, exact=True)
        source = min((m for m in published if set(marginal) <= set(m)), key=lambda m: (schema.cells(m), m))
        at, factor = design.matches.table(schema, design.marginal, source)
        used = np.zeros((schema.cells(marginal), len(design.rows)))
        np.add.at(used, (positions(schema, source, marginal), at), factor)
        return np.asarray(used**2 @ self.row_variances(exact=True))

    def form_variances(self, form: Form, *, exact: bool) -> Floats:
        design = self.design
        if isinstance(form, GroupTable):
            found = self.covariances(form.marginal, form.members, [None] * len(form.members))
            return np.maximum(found, 0.0).reshape(form.shape)
        if design.recovery == "none":
            at, factor = design.matches.form(design.schema, design.marginal, form)
            return (self.row_variances(exact=exact)[at] * factor**2).reshape(form.shape)
        table = self.table_covariance(form.marginal, exact=exact)
        if isinstance(form, QueryTable):
            return np.array([max(float(row @ table @ row), 0.0) for row in form.rows.iterate()])
        if not isinstance(form, RangeTable):
            raise TypeError(type(form).__name__)
        d, shape = len(form.marginal), form.carrier_shape
        pairs = table.reshape(*shape, *shape)
        for axis, (starts, ends) in enumerate(form.intervals):  # both copies of the axis become one axis of sums
            pairs = np.moveaxis(pairs, (axis, d), (0, 1))
            running = np.zeros((shape[axis] + 1, shape[axis] + 1, *pairs.shape[2:]))
            running[1:, 1:] = pairs.cumsum(axis=0).cumsum(axis=1)
            sums = running[ends, ends] - running[ends, starts] - running[starts, ends] + running[starts, starts]
            pairs = np.moveaxis(sums, 0, axis)
        return np.maximum(pairs, 0.0)

    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        design = self.design
        flat = weights.reshape(-1)
        if design.recovery == "none":
            at, factor = design.matches.table(design.schema, design.marginal, marginal)
            used = np.bincount(at, weights=flat * factor, minlength=len(design.rows))
            return float((used**2 * self.row_variances(exact=True)).sum())
        return max(float(flat @ self.table_covariance(marginal, exact=True) @ flat), 0.0)

    def covariances(self, marginal: Marginal, rows: Along, totals: Along) -> Floats:
        half = self._half(marginal)
        return pair_products(half, half, rows, totals)

    def _half(self, A: Marginal) -> Floats:
        """What each measured number adds to the cells of a published marginal, per standard deviation; (*shape, m)."""
        design, deviations = self.design, np.sqrt(self.row_variances(exact=True))
        shape = design.schema.shape(A)
        if design.recovery != "none":
            half = (self.recovery_matrix(exact=True) * deviations).reshape(*design.schema.shape(design.marginal), -1)
            return np.asarray(half.sum(axis=tuple(axis for axis, i in enumerate(design.marginal) if i not in A)))
        at, factor = design.matches.table(design.schema, design.marginal, A)
        half = np.zeros((len(at), len(deviations)))
        half[np.arange(len(at)), at] = factor * deviations[at]
        return half.reshape(*shape, -1)

    def cell_variance_table(self, marginal: Marginal) -> Floats:
        design = self.design
        shape = design.schema.shape(marginal)
        if design.recovery == "none":
            return self._rolled_up(marginal).reshape(shape)
        return np.maximum(np.diag(self.table_covariance(marginal, exact=True)), 0.0).reshape(shape)


def pair_products(first: Floats, second: Floats, rows: Along, totals: Along) -> Floats:
    """Covariances of products of sums and their partners, from what independent numbers add to both; numbers last."""
    for axis, (own, total) in enumerate(zip(rows, totals, strict=True)):
        if total is not None:
            second = applied(total[None], second, axis)
        elif own is not None:
            first, second = applied(own, first, axis), applied(own, second, axis)
    return np.asarray((first * second).sum(axis=-1))


def smoothing(rows: SparseRows, privacy: Privacy) -> float:
    """t²: a row of data moves as many numbers as its column has entries."""
    touched = np.bincount(rows.arrays[0], minlength=rows.width).max(initial=0)
    return calibrate.smoothing_variance(privacy, float(touched))


def least_squares(design: MatrixDesign, numbers: Floats) -> Answers:
    """Sums of the table H z, which holds what the rows can answer; its cells alone may mean nothing."""
    table = (design.errors.recovery_matrix(exact=True) @ numbers).reshape(design.schema.shape(design.marginal))
    return OneByOne(lambda marginal: summed(table, design.marginal, marginal))


@dataclass(frozen=True, eq=False)
class _MatchedRows:
    """Each answer from the row that is a multiple of it."""

    design: MatrixDesign
    numbers: Floats

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        design = self.design
        found = [design.matches.table(design.schema, design.marginal, tuple(row)) for row in rows.tolist()]
        return np.stack([self.numbers[at] * factor for at, factor in found]).reshape(len(rows), *shape)

    def form(self, form: Form) -> Floats:
        at, factor = self.design.matches.form(self.design.schema, self.design.marginal, form)
        return (self.numbers[at] * factor).reshape(form.shape)
