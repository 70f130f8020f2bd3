"""Errors of answers that are made of independent coefficients of residual spaces, whatever those were estimated from.

A coefficient of V_C whose row has the squared norm h has variance h v_C, and a weighted sum q of the cells of a table
the variance sum_k (row_k · q)² / h_k² · variance_k.                                               [lattice/basis.py]
Helmert coefficients with very small discrete noise are *uneven*: their variances are not in proportion to h.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from hushcube.designs.errors import Along, Errors
from hushcube.designs.request import projected
from hushcube.lattice import helmert
from hushcube.lattice.basis import cell_variances
from hushcube.lattice.family import Family
from hushcube.model.arrays import Bools, Floats, Marginal, applied, subsets, times
from hushcube.model.form import Along as Sums, Form, GroupTable, RangeTable
from hushcube.model.noise import LAPLACE, SMOOTH, gaussian_variance
from hushcube.model.queries import QueryTable

if TYPE_CHECKING:
    from hushcube.designs.lattice.design import FamilyDesign

_ROUNDING: Final = 1e-13  # of a sum of numbers that cancel, relative to the sum of their absolute values


def set_variances(design: FamilyDesign, *, exact: bool) -> Floats:
    """The noise variance of each set, in units of its real rows; of Helmert rows, per unit of squared norm."""
    if not exact:
        with np.errstate(divide="ignore"):
            return design.law.formula(design.budgets) - design.smoothing * np.isfinite(design.budgets)
    if design.law is LAPLACE:
        stretch = design.measured.product(design.basis.per_axis(design.basis.stretch, design.measured.sizes))
        return LAPLACE.variance(design.budgets / stretch) / stretch**2
    parameters = 0.5 / design.budgets
    if not design.basis.is_minimal:
        return np.where(parameters > 0, gaussian_variance(np.maximum(parameters, 1e-300)), 0.0)
    result, uneven = parameters.copy(), uneven_sets(design)
    for batch in design.measured.batches:
        for i in batch.ids[uneven[batch.ids]].tolist():
            variances = helmert_coefficient_variances(float(parameters[i]), batch.shape)
            result[i] = float(np.mean(variances / helmert.residual_norms(batch.shape)))
    return result


def uneven_sets(design: FamilyDesign) -> Bools:
    """The sets whose Helmert coefficients have unequal true variances."""
    smallest = 0.5 / design.budgets * design.measured.product(np.full(len(design.measured.sizes), 2.0))
    return np.asarray(design.basis.is_minimal & (smallest > 0) & (smallest < SMOOTH))


@lru_cache(maxsize=256)
def helmert_coefficient_variances(parameter: float, shape: tuple[int, ...]) -> Floats:
    """True variances of one set's noisy Helmert coefficients; uneven where the parameter is small."""
    return gaussian_variance(parameter * helmert.residual_norms(shape).astype(np.float64))


class SpaceErrors(Errors):
    """Variances over the residual spaces."""

    slabs_are_alike = True

    @abstractmethod
    def space_variances(self, *, exact: bool) -> Floats:
        """v_C for each residual space of the workload."""

    @abstractmethod
    def uneven_variances(self, B: Marginal) -> Floats | None:
        """The true variances of the coefficients of a space, where they are uneven."""

    @abstractmethod
    def is_uneven(self, marginal: Marginal) -> bool:
        """Whether some space of a table is."""

    def own_space_variances(self, marginal: Marginal, *, exact: bool) -> Floats:
        """v_C of one answered table, for the subsets C of its marginal in their order."""
        return np.asarray(self.space_variances(exact=exact)[self.design.request.spaces.ids(subsets(marginal))])

    def coefficient_variances(self, marginal: Marginal) -> Floats:
        """Variances of the Helmert coefficients of one answered table under least squares; shape of the table."""
        schema, v = self.design.schema, self.own_space_variances(marginal, exact=True)
        result = np.empty(schema.shape(marginal))
        for own, B in zip(v.tolist(), subsets(marginal), strict=True):
            uneven = self.uneven_variances(B)
            even = own * helmert.residual_norms(schema.shape(B)) if uneven is None else uneven
            result[block(marginal, B)] = even
        return result

    def cell_variances(self, *, exact: bool) -> Floats:
        """Mean cell variances."""
        request = self.design.request
        return cell_variances(request.marginals, request.spaces, self.space_variances(exact=exact))

    def form_variances(self, form: Form, *, exact: bool) -> Floats:
        """Variances of the answers of a form."""
        if exact and self.is_uneven(form.marginal):
            return self._uneven_form_variances(form)
        weights = self.square_weights(form, exact=exact)
        found = form.combine(weights)
        if (weights >= 0).all():
            return found
        # what cancels, such as a public total, is zero and not a little below
        return np.where(found > _ROUNDING * form.combine(np.abs(weights)), found, 0.0)

    def form_total(self, form: Form, *, exact: bool) -> float:
        """Their sum."""
        if exact and self.is_uneven(form.marginal):
            return float(self._uneven_form_variances(form).sum())
        return float((form.squares() * self.square_weights(form, exact=exact)).sum())

    def square_weights(self, form: Form, *, exact: bool) -> Floats:
        """What each of the squares M_S of a sum adds to its variance."""
        A, schema = form.marginal, self.design.schema
        f = np.zeros((2,) * len(A))
        for own, B in zip(self.own_space_variances(A, exact=exact).tolist(), subsets(A), strict=True):
            f[inside(A, B)] = own * schema.cells(B) / schema.cells(A)
        return projected(f, form.carrier_shape)

    def cell_covariances(self, marginal: Marginal) -> Floats | None:
        """A sum q has the variance sum_S f_S M_S; for two cells the cross term of M_S is 2, if they agree along S."""
        if self.is_uneven(marginal):
            return None
        attributes = tuple(self.design.schema.attributes[i] for i in marginal)
        cell: Sums = "cells"
        cells = RangeTable(marginal, attributes, (cell,) * len(marginal))
        found = self.square_weights(cells, exact=True)
        for axis in range(len(marginal)):
            found = np.cumsum(found, axis=axis)
        return found

    def _uneven_form_variances(self, form: Form) -> Floats:
        """Along an axis an answer weighs coefficient k by (row_k · q) / ||row_k||²; coefficients are independent."""
        if isinstance(form, QueryTable):
            rows = (row.reshape(form.carrier_shape) for row in form.rows.iterate())
            return np.array([self.sum_variance(form.marginal, row) for row in rows])
        if isinstance(form, GroupTable):
            return self.covariances(form.marginal, form.members, [None] * len(form.members)).reshape(form.shape)
        if not isinstance(form, RangeTable):
            raise TypeError(type(form).__name__)
        result = self.coefficient_variances(form.marginal)
        for axis, (starts, ends) in enumerate(form.intervals):
            result = helmert.interval_variances(result, axis, starts, ends)
        return result

    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        """The variance of a weighted sum of cells."""
        # q·y = sum_k (Tq)_k c_k / ||row_k||², the coefficients c_k independent
        axes = range(len(marginal))
        transformed = helmert.forward(weights, axes)
        for axis in axes:
            along = [-1 if a == axis else 1 for a in axes]
            transformed = transformed / helmert.norms(weights.shape[axis]).reshape(along)
        return float((transformed**2 * self.coefficient_variances(marginal)).sum())

    def covariances(self, marginal: Marginal, rows: Along, totals: Along) -> Floats:
        """Axis by axis, from the variances of the coefficients and their weights (row_k · q) / ||row_k||²."""
        result = self.coefficient_variances(marginal)
        for axis, (own, total) in enumerate(zip(rows, totals, strict=True)):
            norms = helmert.norms(result.shape[axis])
            if total is not None:
                result = helmert.inverse(times(result, helmert.forward(total, [0]) / norms, axis), [axis])
            elif own is None:
                result = helmert.inverse_variances(result, [axis])
            else:
                result = applied((helmert.forward(own, [1]) / norms) ** 2, result, axis)
        return result

    def cell_variance_table(self, marginal: Marginal) -> Floats:
        """Variances of the cells of a table."""
        request = self.design.request
        if self.is_uneven(marginal):
            return helmert.inverse_variances(self.coefficient_variances(marginal), range(len(marginal)))
        if request.marginals.ids([marginal])[0] >= 0:
            return np.asarray(self.variance_of(marginal))
        v, only = self.space_variances(exact=True), Family.of([marginal], self.design.schema.sizes)
        return np.asarray(cell_variances(only, request.spaces, v)[0])

    def variance_of(self, marginal: Marginal) -> float:
        """The mean cell variance of one of the marginals asked for."""
        return float(self.exact_cell_variances[self.design.request.marginals.ids([marginal])[0]])


def block(A: Marginal, B: Marginal) -> tuple[slice | int, ...]:
    """Where the coefficients of table A have those of the residual space B."""
    return tuple(slice(1, None) if i in B else 0 for i in A)


def inside(A: Marginal, B: Marginal) -> tuple[int, ...]:
    """Which attributes of A are in B."""
    return tuple(int(i in B) for i in A)
