"""Predicted errors of matrix designs, from the covariance of the least-squares table, or row by row without recovery.

    Cov(x) = H diag(variance) H^T            [designs/matrix/row_space.py]

A table's covariance sums those of its carrier's cells; a marginal's total variance adds up the entries for pairs of
cells that agree on its attributes.
"""

from __future__ import annotations

import math
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.errors import Errors, kept
from hushcube.designs.matrix.row_space import indicator, positions
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.form import Form, GroupTable, RangeTable
from hushcube.model.queries import QueryTable
from hushcube.model.schema import Schema

if TYPE_CHECKING:
    from hushcube.designs.matrix.design import MatrixDesign


class MatrixErrors(Errors):
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
        sums = pair_sums(design.schema, design.marginal, self.covariance(exact=exact))
        variances = np.array([sums[agreement(design.schema, design.marginal, A)] for A in marginals]) / marginals.cells
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
        """Variances of the answers of a form."""
        design = self.design
        if isinstance(form, GroupTable):
            cells = (reduce(np.multiply.outer, rows, np.ones(())) for rows in product(*form.members))
            return np.array([self.sum_variance(form.marginal, each) for each in cells]).reshape(form.shape)
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
        """The variance of a weighted sum of cells."""
        design = self.design
        flat = weights.reshape(-1)
        if design.recovery == "none":
            at, factor = design.matches.table(design.schema, design.marginal, marginal)
            used = np.bincount(at, weights=flat * factor, minlength=len(design.rows))
            return float((used**2 * self.row_variances(exact=True)).sum())
        return max(float(flat @ self.table_covariance(marginal, exact=True) @ flat), 0.0)

    def cell_variance_table(self, marginal: Marginal) -> Floats:
        """Variances of the cells of a table."""
        design = self.design
        shape = design.schema.shape(marginal)
        if design.recovery == "none":
            return self._rolled_up(marginal).reshape(shape)
        return np.maximum(np.diag(self.table_covariance(marginal, exact=True)), 0.0).reshape(shape)


def agreement(schema: Schema, carrier: Marginal, A: Marginal) -> int:
    """The attributes of A with more than one value as a bit mask over those of the carrier."""
    varying = [i for i in carrier if schema.sizes[i] > 1]
    return sum(1 << bit for bit, i in enumerate(varying) if i in A)


def pair_sums(schema: Schema, carrier: Marginal, values: Floats) -> Floats:
    """For each set of attributes (a bit mask), the sum of values[c, c'] over pairs of cells that agree on them."""
    varying = [i for i in carrier if schema.sizes[i] > 1]
    alike = agreement_masks(schema, carrier)
    sums = np.bincount(alike.reshape(-1), weights=values.reshape(-1), minlength=1 << len(varying))
    for bit in range(len(varying)):  # pairs that agree on more agree on less
        pairs = sums.reshape(-1, 2, 1 << bit)
        pairs[:, 0] += pairs[:, 1]
    return np.asarray(sums)


def agreement_masks(schema: Schema, carrier: Marginal) -> NDArray[np.int32]:
    """The set of attributes on which each pair of cells agrees."""
    cells = schema.cells(carrier)
    result = np.zeros((cells, cells), np.int32)
    for bit, i in enumerate([i for i in carrier if schema.sizes[i] > 1]):
        place = positions(schema, carrier, (i,))
        result |= (place[:, None] == place).astype(np.int32) << bit
    return result
