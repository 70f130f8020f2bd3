"""Predicted errors of tree designs.

On space l (a level of each attribute's tree) least squares has the variance v_l per unit of the squared norm that a
query has there: a sum q over the cells of marginal A has the variance

    sum_l v_l ||P_l q||²,     v_l = K_l(u² variance) / (leaves(A) K_l(u)²),     K_l(u) = sum_{m sees l} u_m / nodes(m)

with u = 1/variance for generalised least squares. Cells of a table are alike up to the last ones; ranges are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from hushcube.designs.errors import Along, Errors, kept
from hushcube.lattice.trees import Tree
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.form import Form, GroupTable, RangeTable
from hushcube.model.queries import QueryTable

if TYPE_CHECKING:
    from hushcube.designs.tree.design import TreeDesign


class TreeErrors(Errors):
    """Variances over the spaces between the levels of trees."""

    design: TreeDesign

    def set_variances(self, *, exact: bool) -> Floats:
        """The noise variance of each set, per unit of its rows' squared norm over the nodes."""
        return self.drawn_variances(exact=exact) / self.design.row_norms

    def recovery_weights(self) -> Floats:
        """The weights u_m with which least squares combines the sets; zero for what is exact."""
        noisy = np.isfinite(self.design.budgets)
        if self.design.recovery == "ols":
            return noisy * self.design.row_norms
        return noisy / np.where(noisy, self.set_variances(exact=True), 1.0)

    @kept
    def space_variances(self, A: Marginal, *, exact: bool) -> Floats:
        """v_l for the spaces of a marginal, by levels."""
        design = self.design
        variances = self.set_variances(exact=exact)
        public = variances == 0
        u = self.recovery_weights()
        if design.recovery != "ols" and not exact:
            u = np.where(public, 0.0, 1 / np.where(public, 1.0, variances))
        leaves = np.prod([design.trees[i].leaves for i in A], dtype=np.float64)
        total = design.kernel(A, u)
        unseen = total == 0  # spaces without dimension: `is_answerable` has seen to the others
        total = np.where(unseen, 1.0, total)
        # with u = 1/variance the numerator is the kernel itself; squares of u would overflow for tiny variances
        v = 1 / (leaves * total)
        if design.recovery == "ols":
            v = design.kernel(A, u**2 * variances) / (leaves * total**2)
        return np.where(unseen | (design.kernel(A, public.astype(np.float64)) > 0), 0.0, v)

    def cell_variance_table(self, marginal: Marginal) -> Floats:
        """Variances of the cells of a table."""
        v = self.space_variances(marginal, exact=True)
        for tree in (self.design.trees[i] for i in marginal):
            cells = np.arange(tree.size if tree.leaves > tree.size else 1)
            v = tree.weigh(v, cells, cells + 1)
        return v.reshape(()) if v.size == 1 else v

    def _cell_variance(self, A: Marginal, *, exact: bool) -> float:
        v = self.space_variances(A, exact=exact)
        for tree in (self.design.trees[i] for i in A):
            v = np.tensordot(v, tree.cell_energies / tree.size, axes=(0, 0))
        return float(v)

    def cell_variances(self, *, exact: bool) -> Floats:
        """Mean cell variances."""
        return np.array([self._cell_variance(A, exact=exact) for A in self.design.request.marginals])

    def form_variances(self, form: Form, *, exact: bool) -> Floats:
        """Variances of the answers of a form."""
        v, trees = self.space_variances(form.marginal, exact=exact), [self.design.trees[i] for i in form.marginal]
        if isinstance(form, RangeTable):
            for tree, (starts, ends) in zip(trees, form.intervals, strict=True):
                v = tree.weigh(v, starts, ends)
            return v
        if isinstance(form, GroupTable):
            return _weighed(v, trees, form.members, [None] * len(trees)).reshape(form.shape)
        if isinstance(form, QueryTable):
            rows = (row.reshape(form.carrier_shape) for row in form.rows.iterate())
            return np.array([self._variance_of(form.marginal, row, v) for row in rows])
        raise TypeError(type(form).__name__)

    def form_total(self, form: Form, *, exact: bool) -> float:
        """Their sum."""
        energies = form_energies(form, [self.design.trees[i] for i in form.marginal])
        return float((self.space_variances(form.marginal, exact=exact) * energies).sum())

    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        """The variance of a weighted sum of cells."""
        return self._variance_of(marginal, weights, self.space_variances(marginal, exact=True))

    def _variance_of(self, A: Marginal, weights: Floats, v: Floats) -> float:
        """From the coefficients of the weights: squares over norms add up to ||P_l q||²."""
        trees = [self.design.trees[i] for i in A]
        squares = _transformed(weights, trees) ** 2
        for axis, tree in enumerate(trees):
            squares = squares / tree.norms.reshape([-1 if a == axis else 1 for a in range(len(A))])
        at = v[np.ix_(*(tree.levels for tree in trees))] if A else v
        return float((squares * at).sum())

    def covariances(self, marginal: Marginal, rows: Along, totals: Along) -> Floats:
        """sum_l v_l q' P_l t for sums q and their partners t, axis by axis."""
        trees = [self.design.trees[i] for i in marginal]
        return _weighed(self.space_variances(marginal, exact=True), trees, rows, totals)


def _weighed(v: Floats, trees: Sequence[Tree], rows: Along, totals: Along) -> Floats:
    """From a number for each space to one for each combination of sums: v's axes of levels give way one by one."""
    for tree, own, total in zip(trees, rows, totals, strict=True):
        if total is not None:
            coefficients = tree.forward(tree.spread(total, 0), 0)
            at_level = tree.levels == np.arange(tree.depth + 1)[:, None]
            v = np.tensordot(v, tree.inverse(coefficients * at_level, 1), axes=(0, 0))
        elif own is None:
            cells = np.arange(tree.size)
            v = tree.weigh(v, cells, cells + 1)
        else:
            squares = tree.forward(tree.spread(own, 1), 1) ** 2 / tree.norms
            v = np.tensordot(v, _by_levels(squares, 1, tree), axes=(0, 1))
    return np.asarray(v)


def _transformed(values: Floats, trees: Sequence[Tree]) -> Floats:
    for axis, tree in enumerate(trees):
        values = tree.forward(tree.spread(values, axis), axis)
    return values


def _by_levels(values: Floats, axis: int, tree: Tree) -> Floats:
    """Summed along an axis over the coefficients of each level."""
    parts = np.moveaxis(values, axis, -1)
    return np.stack([parts[..., tree.block(level)].sum(axis=-1) for level in range(tree.depth + 1)], axis=axis)


def form_energies(form: Form, trees: Sequence[Tree]) -> Floats:
    """||P_l q||² summed over the answers of a form, by levels."""
    if isinstance(form, RangeTable):
        blocks = (
            [form.block_energy(axis, span, tree.leaves) for span in tree.spans.astype(np.int64).tolist()]
            for axis, tree in enumerate(trees)
        )
        return outer([np.diff(each, prepend=0.0) for each in blocks])
    if not isinstance(form, QueryTable):
        raise TypeError(type(form).__name__)
    squares = np.zeros([tree.leaves for tree in trees])
    for row in form.rows.iterate():
        squares += _transformed(row.reshape(form.carrier_shape), trees) ** 2
    for axis, tree in enumerate(trees):
        norms = tree.norms.reshape([-1 if a == axis else 1 for a in range(len(trees))])
        squares = _by_levels(squares / norms, axis, tree)
    return squares


def outer(factors: Sequence[Floats]) -> Floats:
    """The product of vectors, an axis for each."""
    return np.asarray(reduce(np.multiply.outer, factors, np.ones(())))
