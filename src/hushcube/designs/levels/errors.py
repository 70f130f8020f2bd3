"""Predicted errors of plans over nested levels: exact for groups of any sizes, cell by cell where they differ.

With noise variances v_i and weights u_i of the recovery, the covariance of the coordinates is, block by block,

    V = G(u)^-1 G(u² v) G(u)^-1          (= G(1/v)^-1 for generalised least squares)     [lattice/nested_blocks.py]

Without recovery a table is summed from one measured table, that of the least variance after summing; the variance of a
cell is then v_i times the number of its cells there, and tables need not agree.
"""

from __future__ import annotations

import math
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
from hushcube.designs.levels.design import LevelDesign
from hushcube.designs.levels.nesting import Frame, Rows
from hushcube.lattice.nested_blocks import Levels, Stacks
from hushcube.model.form import Form, QueryTable, RangeTable
from hushcube.model.groups import GroupTable
from hushcube.model.marginal import Marginal

Floats = NDArray[np.float64]


def recovery_weights(design: LevelDesign, *, exact: bool = True) -> Floats:
    """The weights u_i with which least squares combines the tables, at most 1; zero for what is public."""
    noisy = np.isfinite(design.budgets)
    if design.recovery == "ols":
        return noisy.astype(np.float64)
    variances = np.where(noisy, drawn_variances(design, exact=exact), 1.0)
    return np.asarray(noisy * variances[noisy].min(initial=np.inf) / variances if noisy.any() else noisy * 1.0)


def information(design: LevelDesign, weights: Floats) -> Stacks:
    """G for some weights of the measured tables."""
    blocks = design.frame.blocks
    pairs = once(design, "_measured_pairs", lambda: blocks.pairs([design.frame.table(m) for m in design.measured]))
    return blocks.add(pairs, weights)


def is_public(design: LevelDesign) -> bool:
    """Whether the total is known exactly."""
    return not bool(np.isfinite(design.budgets).all())


def covariance(design: LevelDesign, *, exact: bool) -> Stacks:
    """V, the covariance of the coordinates under least squares."""
    return once(design, f"_covariance_{exact}", lambda: _covariance(design, exact=exact))


def _covariance(design: LevelDesign, *, exact: bool) -> Stacks:
    u, v = recovery_weights(design, exact=exact), drawn_variances(design, exact=exact)
    inverse = design.frame.blocks.inverse(information(design, u), public=is_public(design))
    if design.recovery == "ols":
        middle = information(design, u**2 * v)
        return {size: each @ middle[size] @ each for size, each in inverse.items()}
    smallest = v[u > 0].min(initial=np.inf) if (u > 0).any() else 0.0
    return {size: each * smallest for size, each in inverse.items()}


def source(design: LevelDesign, marginal: Marginal) -> int:
    """Without recovery: the measured table that answers a marginal, itself or the best to sum up."""
    return once(design, f"_source_{marginal}", lambda: _find_source(design, marginal))


def _find_source(design: LevelDesign, marginal: Marginal) -> int:
    measured = list(design.measured)
    if marginal in measured:
        return measured.index(marginal)
    noise = drawn_variances(design, exact=True) * design.measured.cells
    able = [i for i, big in enumerate(measured) if design.nesting.holds(big, marginal)]
    return min(able, key=lambda i: (noise[i], i))


def product_variances(design: LevelDesign, marginal: Marginal, rows: Sequence[Rows], *, exact: bool) -> Floats:
    """Variances of products of sums along the axes of a marginal: one for each combination of sums."""
    if design.recovery == "none":
        at = source(design, marginal)
        groups = design.nesting.groups(list(design.measured)[at], marginal)
        variance = float(drawn_variances(design, exact=exact)[at])
        for position, own in zip(list(design.measured)[at], groups, strict=True):
            variance *= design.schema.sizes[position] if own is None else 1
        counts = (np.bincount(own).astype(np.float64) for own in groups if own is not None)
        squares = [_squares(each, own) for each, own in zip(rows, counts, strict=True)]
        return np.asarray(reduce(np.multiply.outer, squares, np.asarray(variance)))
    frame = design.frame
    return frame.blocks.product_variances(
        covariance(design, exact=exact), frame.table(marginal), frame.sums(marginal, rows)
    )


def _squares(rows: Rows, counts: Floats) -> Floats:
    """How many independent numbers each sum adds up, weights squared."""
    if rows is None:
        return counts
    if isinstance(rows, tuple):
        running = np.insert(counts.cumsum(), 0, 0.0)
        return np.asarray(running[rows[1]] - running[rows[0]])
    return np.asarray(rows**2 @ counts)


def form_rows(form: Form) -> list[Rows] | None:
    """The sums along each axis of a form that is a product of such; None for others."""
    if isinstance(form, RangeTable):
        return [None if kind == "cells" else ends for kind, ends in zip(form.kinds, form.intervals, strict=True)]
    if isinstance(form, GroupTable):
        return list(form.members)
    return None


@cell_variances.register
def _cell_variances(design: LevelDesign, *, exact: bool) -> Floats:
    marginals = list(design.request.marginals)
    if design.recovery == "none":
        found = np.array([source(design, A) for A in marginals], np.int64)
        cells = design.measured.cells[found] / design.request.marginals.cells
        return np.asarray(drawn_variances(design, exact=exact)[found] * cells)
    blocks = design.frame.blocks
    pairs = once(
        design, "_asked_pairs", lambda: blocks.pairs(*asked_sums(design.frame, [(A, None) for A in marginals]))
    )
    totals = blocks.totals(covariance(design, exact=exact), pairs, len(marginals))
    return np.asarray(totals / design.request.marginals.cells)


def asked_sums(
    frame: Frame, asked: Sequence[tuple[Marginal, Sequence[Rows] | None]]
) -> tuple[list[Levels], list[list[Floats]]]:
    """Tables, and the sums of their cells or of other answers, as the blocks of coordinates take them."""
    tables = [frame.table(marginal) for marginal, _ in asked]
    return tables, [[each.gram for each in frame.sums(marginal, rows)] for marginal, rows in asked]


@cell_variance_table.register
def _cell_variance_table(design: LevelDesign, marginal: Marginal) -> Floats:
    table = product_variances(design, marginal, [None] * len(marginal), exact=True)
    return table.reshape(-1)[:1].reshape(()) if table.size == 1 else table


@form_variances.register
def _form_variances(design: LevelDesign, form: Form, *, exact: bool) -> Floats:
    rows = form_rows(form)
    if rows is not None:
        return product_variances(design, form.marginal, rows, exact=exact).reshape(form.shape)
    if not isinstance(form, QueryTable):
        raise TypeError(type(form).__name__)
    each = (row.reshape(form.carrier_shape)[None] for row in form.rows.iterate())
    return np.array([float(_weighted(design, form.marginal, row, exact=exact)[0]) for row in each])


@form_total.register
def _form_total(design: LevelDesign, form: Form, *, exact: bool) -> float:
    rows = form_rows(form)
    if rows is None or design.recovery == "none":
        return float(form_variances(design, form, exact=exact).sum())
    blocks = design.frame.blocks
    pairs = blocks.pairs(*asked_sums(design.frame, [(form.marginal, rows)]))
    return float(blocks.totals(covariance(design, exact=exact), pairs, 1)[0])


@sum_variance.register
def _sum_variance(design: LevelDesign, marginal: Marginal, weights: Floats) -> float:
    return float(_weighted(design, marginal, weights[None], exact=True)[0])


def _weighted(design: LevelDesign, marginal: Marginal, weights: Floats, *, exact: bool) -> Floats:
    """Variances of any weighted sums of the cells of a table: (sums, *shape)."""
    if design.recovery != "none":
        frame = design.frame
        V, finer = covariance(design, exact=exact), frame.expanded(weights, marginal)
        return frame.blocks.sum_variances(V, frame.table(marginal), finer)
    cells = product_variances(design, marginal, [None] * len(marginal), exact=exact)
    return np.asarray((weights**2 * cells).reshape(len(weights), math.prod(cells.shape)).sum(axis=1))
