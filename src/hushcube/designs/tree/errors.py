"""Predicted errors of tree plans.

On space l (a level of each attribute's tree) least squares has the variance v_l per unit of the squared norm that a
query has there: a sum q over the cells of marginal A has the variance

    sum_l v_l ||P_l q||²,     v_l = K_l(u² variance) / (leaves(A) K_l(u)²),     K_l(u) = sum_{m sees l} u_m / nodes(m)

with u = 1/variance for generalised least squares. Cells of a table are alike up to the last ones; ranges are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.errors import (
    cell_variance_table,
    cell_variances,
    drawn_variances,
    form_total,
    form_variances,
    once,
    sum_variance,
)
from hushcube.designs.tree.design import TreeDesign
from hushcube.lattice.trees import Tree
from hushcube.model.form import Form, QueryTable, RangeTable
from hushcube.model.groups import GroupTable
from hushcube.model.marginal import Marginal

Floats = NDArray[np.float64]


def set_variances(design: TreeDesign, *, exact: bool) -> Floats:
    """The noise variance of each set, per unit of its rows' squared norm over the nodes."""
    return drawn_variances(design, exact=exact) / design.row_norms


def recovery_weights(design: TreeDesign) -> Floats:
    """The weights u_m with which least squares combines the sets; zero for what is exact."""
    noisy = np.isfinite(design.budgets)
    if design.recovery == "ols":
        return noisy * design.row_norms
    return noisy / np.where(noisy, set_variances(design, exact=True), 1.0)


def space_variances(design: TreeDesign, A: Marginal, *, exact: bool) -> Floats:
    """v_l for the spaces of a marginal, by levels."""
    return once(design, f"_space_variances_{A}_{exact}", lambda: _space_variances(design, A, exact=exact))


def _space_variances(design: TreeDesign, A: Marginal, *, exact: bool) -> Floats:
    variances = set_variances(design, exact=exact)
    public = variances == 0
    u = recovery_weights(design)
    if design.recovery != "ols" and not exact:
        u = np.where(public, 0.0, 1 / np.where(public, 1.0, variances))
    leaves = np.prod([design.trees[i].leaves for i in A], dtype=np.float64)
    total = design.kernel(A, u)
    unseen = total == 0  # spaces without dimension: `is_answerable` has seen to the others
    total = np.where(unseen, 1.0, total)
    # with u = 1/variance the numerator is the kernel itself; squares of u would overflow for tiny variances
    v = design.kernel(A, u**2 * variances) / (leaves * total**2) if design.recovery == "ols" else 1 / (leaves * total)
    return np.where(unseen | (design.kernel(A, public.astype(np.float64)) > 0), 0.0, v)


@cell_variance_table.register
def _cell_variance_table(design: TreeDesign, marginal: Marginal) -> Floats:
    v = space_variances(design, marginal, exact=True)
    for i in marginal:
        tree = design.trees[i]
        cells = np.arange(tree.size if tree.leaves > tree.size else 1)
        v = tree.weigh(v, cells, cells + 1)
    return v.reshape(()) if v.size == 1 else v


def _cell_variance(design: TreeDesign, A: Marginal, *, exact: bool) -> float:
    v = space_variances(design, A, exact=exact)
    for i in A:
        v = np.tensordot(v, design.trees[i].cell_energies / design.trees[i].size, axes=(0, 0))
    return float(v)


@cell_variances.register
def _cell_variances(design: TreeDesign, *, exact: bool) -> Floats:
    return np.array([_cell_variance(design, A, exact=exact) for A in design.request.marginals])


@form_variances.register
def _form_variances(design: TreeDesign, form: Form, *, exact: bool) -> Floats:
    v = space_variances(design, form.marginal, exact=exact)
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
        return np.array([_variance_of(design, form.marginal, row, v) for row in rows])
    raise TypeError(type(form).__name__)


def _row_energies(tree: Tree, rows: Floats) -> Floats:
    """||P_l q||² for the rows q of a matrix along one axis; one column for each level."""
    squares = tree.forward(tree.spread(rows, 1), 1) ** 2 / tree.norms
    return np.stack([squares[:, tree.block(level)].sum(axis=1) for level in range(tree.depth + 1)], axis=1)


@form_total.register
def _form_total(design: TreeDesign, form: Form, *, exact: bool) -> float:
    v = space_variances(design, form.marginal, exact=exact)
    return float((v * form_energies(form, [design.trees[i] for i in form.marginal])).sum())


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


@sum_variance.register
def _sum_variance(design: TreeDesign, marginal: Marginal, weights: Floats) -> float:
    return _variance_of(design, marginal, weights, space_variances(design, marginal, exact=True))


def _variance_of(design: TreeDesign, A: Marginal, weights: Floats, v: Floats) -> float:
    """From the coefficients of the weights: squares over norms add up to ||P_l q||²."""
    squares = weights
    for axis, i in enumerate(A):
        squares = design.trees[i].forward(design.trees[i].spread(squares, axis), axis)
    squares = squares**2
    for axis, i in enumerate(A):
        norms = design.trees[i].norms.reshape([-1 if a == axis else 1 for a in range(len(A))])
        squares = squares / norms
    at = v[np.ix_(*(design.trees[i].levels for i in A))] if A else v
    return float((squares * at).sum())
