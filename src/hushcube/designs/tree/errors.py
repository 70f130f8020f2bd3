"""Predicted errors of tree plans.

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

from hushcube.designs.errors import Errors
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
        design = self.design
        return self.drawn_variances(exact=exact) / design.row_norms

    def recovery_weights(self) -> Floats:
        """The weights u_m with which least squares combines the sets; zero for what is exact."""
        design = self.design
        noisy = np.isfinite(design.budgets)
        if design.recovery == "ols":
            return noisy * design.row_norms
        return noisy / np.where(noisy, self.set_variances(exact=True), 1.0)

    def space_variances(self, A: Marginal, *, exact: bool) -> Floats:
        """v_l for the spaces of a marginal, by levels."""
        return self.once(f"_space_variances_{A}_{exact}", lambda: self._space_variances(A, exact=exact))

    def _space_variances(self, A: Marginal, *, exact: bool) -> Floats:
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
        v = (
            design.kernel(A, u**2 * variances) / (leaves * total**2)
            if design.recovery == "ols"
            else 1 / (leaves * total)
        )
        return np.where(unseen | (design.kernel(A, public.astype(np.float64)) > 0), 0.0, v)

    def cell_variance_table(self, marginal: Marginal) -> Floats:
        """Variances of the cells of a table."""
        design = self.design
        v = self.space_variances(marginal, exact=True)
        for i in marginal:
            tree = design.trees[i]
            cells = np.arange(tree.size if tree.leaves > tree.size else 1)
            v = tree.weigh(v, cells, cells + 1)
        return v.reshape(()) if v.size == 1 else v

    def _cell_variance(self, A: Marginal, *, exact: bool) -> float:
        design = self.design
        v = self.space_variances(A, exact=exact)
        for i in A:
            v = np.tensordot(v, design.trees[i].cell_energies / design.trees[i].size, axes=(0, 0))
        return float(v)

    def cell_variances(self, *, exact: bool) -> Floats:
        """Mean cell variances."""
        design = self.design
        return np.array([self._cell_variance(A, exact=exact) for A in design.request.marginals])

    def form_variances(self, form: Form, *, exact: bool) -> Floats:
        """Variances of the answers of a form."""
        design = self.design
        v = self.space_variances(form.marginal, exact=exact)
        if isinstance(form, RangeTable):
            for i, (starts, ends) in zip(form.marginal, form.intervals, strict=True):
                v = design.trees[i].weigh(v, starts, ends)
            return v
        if isinstance(form, GroupTable):
            for i, members in zip(form.marginal, form.members, strict=True):
                v = np.tensordot(v, _row_energies(design.trees[i], members), axes=(0, 1))
            return v.reshape(form.shape)
        if isinstance(form, QueryTable):
            rows = (row.reshape(form.carrier_shape) for row in form.rows.iterate())
            return np.array([self._variance_of(form.marginal, row, v) for row in rows])
        raise TypeError(type(form).__name__)

    def form_total(self, form: Form, *, exact: bool) -> float:
        """Their sum."""
        design = self.design
        v = self.space_variances(form.marginal, exact=exact)
        return float((v * form_energies(form, [design.trees[i] for i in form.marginal])).sum())

    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        """The variance of a weighted sum of cells."""
        return self._variance_of(marginal, weights, self.space_variances(marginal, exact=True))

    def _variance_of(self, A: Marginal, weights: Floats, v: Floats) -> float:
        """From the coefficients of the weights: squares over norms add up to ||P_l q||²."""
        design = self.design
        squares = weights
        for axis, i in enumerate(A):
            squares = design.trees[i].forward(design.trees[i].spread(squares, axis), axis)
        squares = squares**2
        for axis, i in enumerate(A):
            norms = design.trees[i].norms.reshape([-1 if a == axis else 1 for a in range(len(A))])
            squares = squares / norms
        at = v[np.ix_(*(design.trees[i].levels for i in A))] if A else v
        return float((squares * at).sum())


def _row_energies(tree: Tree, rows: Floats) -> Floats:
    """||P_l q||² for the rows q of a matrix along one axis; one column for each level."""
    squares = tree.forward(tree.spread(rows, 1), 1) ** 2 / tree.norms
    return np.stack([squares[:, tree.block(level)].sum(axis=1) for level in range(tree.depth + 1)], axis=1)


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
        coefficients = row.reshape(form.carrier_shape)
        for axis, tree in enumerate(trees):
            coefficients = tree.forward(tree.spread(coefficients, axis), axis)
        squares += coefficients**2
    for axis, tree in enumerate(trees):
        each = np.moveaxis(squares, axis, -1) / tree.norms
        levels = [each[..., tree.block(level)].sum(axis=-1) for level in range(tree.depth + 1)]
        squares = np.stack(levels, axis=axis)
    return squares


def outer(factors: Sequence[Floats]) -> Floats:
    """The product of vectors, an axis for each."""
    return np.asarray(reduce(np.multiply.outer, factors, np.ones(())))
