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

from hushcube.lattice.nested_blocks import Levels, Stacks
from hushcube.model.form import Form, QueryTable, RangeTable
from hushcube.model.groups import GroupTable
from hushcube.model.marginal import Marginal
from hushcube.plan.error import (
    cell_variance_table,
    cell_variances,
    drawn_variances,
    form_total,
    form_variances,
    once,
    sum_variance,
)
from hushcube.plan.kinds.levels import LevelPlan
from hushcube.plan.nesting import Frame, Rows

Floats = NDArray[np.float64]


def recovery_weights(plan: LevelPlan, *, exact: bool = True) -> Floats:
    """The weights u_i with which least squares combines the tables, at most 1; zero for what is public."""
    noisy = np.isfinite(plan.budgets)
    if plan.recovery == "ols":
        return noisy.astype(np.float64)
    variances = np.where(noisy, drawn_variances(plan, exact=exact), 1.0)
    return np.asarray(noisy * variances[noisy].min(initial=np.inf) / variances if noisy.any() else noisy * 1.0)


def information(plan: LevelPlan, weights: Floats) -> Stacks:
    """G for some weights of the measured tables."""
    blocks = plan.frame.blocks
    pairs = once(plan, "_measured_pairs", lambda: blocks.pairs([plan.frame.table(m) for m in plan.measured]))
    return blocks.add(pairs, weights)


def is_public(plan: LevelPlan) -> bool:
    """Whether the total is known exactly."""
    return not bool(np.isfinite(plan.budgets).all())


def covariance(plan: LevelPlan, *, exact: bool) -> Stacks:
    """V, the covariance of the coordinates under least squares."""
    return once(plan, f"_covariance_{exact}", lambda: _covariance(plan, exact=exact))


def _covariance(plan: LevelPlan, *, exact: bool) -> Stacks:
    u, v = recovery_weights(plan, exact=exact), drawn_variances(plan, exact=exact)
    inverse = plan.frame.blocks.inverse(information(plan, u), public=is_public(plan))
    if plan.recovery == "ols":
        middle = information(plan, u**2 * v)
        return {size: each @ middle[size] @ each for size, each in inverse.items()}
    smallest = v[u > 0].min(initial=np.inf) if (u > 0).any() else 0.0
    return {size: each * smallest for size, each in inverse.items()}


def source(plan: LevelPlan, marginal: Marginal) -> int:
    """Without recovery: the measured table that answers a marginal, itself or the best to sum up."""
    return once(plan, f"_source_{marginal}", lambda: _find_source(plan, marginal))


def _find_source(plan: LevelPlan, marginal: Marginal) -> int:
    measured = list(plan.measured)
    if marginal in measured:
        return measured.index(marginal)
    noise = drawn_variances(plan, exact=True) * plan.measured.cells
    able = [i for i, big in enumerate(measured) if plan.nesting.holds(big, marginal)]
    return min(able, key=lambda i: (noise[i], i))


def product_variances(plan: LevelPlan, marginal: Marginal, rows: Sequence[Rows], *, exact: bool) -> Floats:
    """Variances of products of sums along the axes of a marginal: one for each combination of sums."""
    if plan.recovery == "none":
        at = source(plan, marginal)
        groups = plan.nesting.groups(list(plan.measured)[at], marginal)
        variance = float(drawn_variances(plan, exact=exact)[at])
        for position, own in zip(list(plan.measured)[at], groups, strict=True):
            variance *= plan.schema.sizes[position] if own is None else 1
        counts = (np.bincount(own).astype(np.float64) for own in groups if own is not None)
        squares = [_squares(each, own) for each, own in zip(rows, counts, strict=True)]
        return np.asarray(reduce(np.multiply.outer, squares, np.asarray(variance)))
    frame = plan.frame
    return frame.blocks.product_variances(
        covariance(plan, exact=exact), frame.table(marginal), frame.sums(marginal, rows)
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
def _cell_variances(plan: LevelPlan, *, exact: bool) -> Floats:
    marginals = list(plan.request.marginals)
    if plan.recovery == "none":
        found = np.array([source(plan, A) for A in marginals], np.int64)
        cells = plan.measured.cells[found] / plan.request.marginals.cells
        return np.asarray(drawn_variances(plan, exact=exact)[found] * cells)
    blocks = plan.frame.blocks
    pairs = once(plan, "_asked_pairs", lambda: blocks.pairs(*asked_sums(plan.frame, [(A, None) for A in marginals])))
    totals = blocks.totals(covariance(plan, exact=exact), pairs, len(marginals))
    return np.asarray(totals / plan.request.marginals.cells)


def asked_sums(
    frame: Frame, asked: Sequence[tuple[Marginal, Sequence[Rows] | None]]
) -> tuple[list[Levels], list[list[Floats]]]:
    """Tables, and the sums of their cells or of other answers, as the blocks of coordinates take them."""
    tables = [frame.table(marginal) for marginal, _ in asked]
    return tables, [[each.gram for each in frame.sums(marginal, rows)] for marginal, rows in asked]


@cell_variance_table.register
def _cell_variance_table(plan: LevelPlan, marginal: Marginal) -> Floats:
    table = product_variances(plan, marginal, [None] * len(marginal), exact=True)
    return table.reshape(-1)[:1].reshape(()) if table.size == 1 else table


@form_variances.register
def _form_variances(plan: LevelPlan, form: Form, *, exact: bool) -> Floats:
    rows = form_rows(form)
    if rows is not None:
        return product_variances(plan, form.marginal, rows, exact=exact).reshape(form.shape)
    if not isinstance(form, QueryTable):
        raise TypeError(type(form).__name__)
    each = (row.reshape(form.carrier_shape)[None] for row in form.rows.iterate())
    return np.array([float(_weighted(plan, form.marginal, row, exact=exact)[0]) for row in each])


@form_total.register
def _form_total(plan: LevelPlan, form: Form, *, exact: bool) -> float:
    rows = form_rows(form)
    if rows is None or plan.recovery == "none":
        return float(form_variances(plan, form, exact=exact).sum())
    blocks = plan.frame.blocks
    pairs = blocks.pairs(*asked_sums(plan.frame, [(form.marginal, rows)]))
    return float(blocks.totals(covariance(plan, exact=exact), pairs, 1)[0])


@sum_variance.register
def _sum_variance(plan: LevelPlan, marginal: Marginal, weights: Floats) -> float:
    return float(_weighted(plan, marginal, weights[None], exact=True)[0])


def _weighted(plan: LevelPlan, marginal: Marginal, weights: Floats, *, exact: bool) -> Floats:
    """Variances of any weighted sums of the cells of a table: (sums, *shape)."""
    if plan.recovery != "none":
        frame = plan.frame
        V, finer = covariance(plan, exact=exact), frame.expanded(weights, marginal)
        return frame.blocks.sum_variances(V, frame.table(marginal), finer)
    cells = product_variances(plan, marginal, [None] * len(marginal), exact=exact)
    return np.asarray((weights**2 * cells).reshape(len(weights), math.prod(cells.shape)).sum(axis=1))
