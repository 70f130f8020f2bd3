"""Predicted errors of designs over nested levels: exact for groups of any sizes, cell by cell where they differ.

With noise variances v_i and weights u_i of the recovery, the covariance of the coordinates is, block by block,

    V = G(u)^-1 G(u² v) G(u)^-1          (= G(1/v)^-1 for generalised least squares)     [lattice/nested_blocks.py]

Without recovery a table is summed from one measured table, that of the least variance after summing; the variance of a
cell is then v_i times the number of its cells there, and tables need not agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np

from hushcube.designs.errors import Errors, kept
from hushcube.designs.levels.nesting import Frame, Rows
from hushcube.lattice.nested_blocks import Levels, Pairs, Stacks
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.form import Form, GroupTable, RangeTable
from hushcube.model.queries import QueryTable

if TYPE_CHECKING:
    from hushcube.designs.levels.design import LevelDesign


class LevelErrors(Errors):
    """Variances from the covariance of the coordinates of the levels."""

    design: LevelDesign

    def recovery_weights(self, *, exact: bool = True) -> Floats:
        """The weights u_i with which least squares combines the tables, at most 1; zero for what is public."""
        return self.least_squares_weights(self.drawn_variances(exact=exact))

    @cached_property
    def _measured_pairs(self) -> dict[int, Pairs]:
        return self.design.frame.blocks.pairs([self.design.frame.table(m) for m in self.design.measured])

    def information(self, weights: Floats) -> Stacks:
        """G for some weights of the measured tables."""
        return self.design.frame.blocks.add(self._measured_pairs, weights)

    @kept
    def covariance(self, *, exact: bool) -> Stacks:
        """V, the covariance of the coordinates under least squares."""
        design, u, v = self.design, self.recovery_weights(exact=exact), self.drawn_variances(exact=exact)
        inverse = design.frame.blocks.inverse(self.information(u), public=design.publishes_total)
        if design.recovery == "ols":
            middle = self.information(u**2 * v)
            return {size: each @ middle[size] @ each for size, each in inverse.items()}
        smallest = v[u > 0].min(initial=np.inf) if (u > 0).any() else 0.0
        return {size: each * smallest for size, each in inverse.items()}

    @kept
    def source(self, marginal: Marginal) -> int:
        """Without recovery: the measured table that answers a marginal, itself or the best to sum up."""
        measured = list(self.design.measured)
        if marginal in measured:
            return measured.index(marginal)
        noise = self.drawn_variances(exact=True) * self.design.measured.cells
        able = [i for i, big in enumerate(measured) if self.design.nesting.holds(big, marginal)]
        return min(able, key=lambda i: (noise[i], i))

    def product_variances(self, marginal: Marginal, rows: Sequence[Rows], *, exact: bool) -> Floats:
        """Variances of products of sums along the axes of a marginal: one for each combination of sums."""
        design = self.design
        if design.recovery == "none":
            at = self.source(marginal)
            source = list(design.measured)[at]
            groups = design.nesting.groups(source, marginal)
            variance = float(self.drawn_variances(exact=exact)[at])
            for position, own in zip(source, groups, strict=True):
                variance *= design.schema.sizes[position] if own is None else 1
            counts = (np.bincount(own).astype(np.float64) for own in groups if own is not None)
            squares = [_squares(each, own) for each, own in zip(rows, counts, strict=True)]
            return np.asarray(reduce(np.multiply.outer, squares, np.asarray(variance)))
        frame, V = design.frame, self.covariance(exact=exact)
        return frame.blocks.product_variances(V, frame.table(marginal), frame.sums(marginal, rows))

    def cell_variances(self, *, exact: bool) -> Floats:
        """Mean cell variances."""
        design, marginals = self.design, self.design.request.marginals
        if design.recovery == "none":
            found = np.array([self.source(A) for A in marginals], np.int64)
            return self.drawn_variances(exact=exact)[found] * (design.measured.cells[found] / marginals.cells)
        totals = design.frame.blocks.totals(self.covariance(exact=exact), self._asked_pairs, len(marginals))
        return np.asarray(totals / marginals.cells)

    @cached_property
    def _asked_pairs(self) -> dict[int, Pairs]:
        frame, marginals = self.design.frame, self.design.request.marginals
        return frame.blocks.pairs(*asked_sums(frame, [(A, None) for A in marginals]))

    def cell_variance_table(self, marginal: Marginal) -> Floats:
        """Variances of the cells of a table."""
        table = self.product_variances(marginal, [None] * len(marginal), exact=True)
        return table.reshape(-1)[:1].reshape(()) if table.size == 1 else table

    def form_variances(self, form: Form, *, exact: bool) -> Floats:
        """Variances of the answers of a form."""
        rows = form_rows(form)
        if rows is not None:
            return self.product_variances(form.marginal, rows, exact=exact).reshape(form.shape)
        if not isinstance(form, QueryTable):
            raise TypeError(type(form).__name__)
        each = (row.reshape(form.carrier_shape) for row in form.rows.iterate())
        return np.array([self._weighted(form.marginal, row, exact=exact) for row in each])

    def form_total(self, form: Form, *, exact: bool) -> float:
        """Their sum."""
        rows = form_rows(form)
        if rows is None or self.design.recovery == "none":
            return super().form_total(form, exact=exact)
        blocks = self.design.frame.blocks
        pairs = blocks.pairs(*asked_sums(self.design.frame, [(form.marginal, rows)]))
        return float(blocks.totals(self.covariance(exact=exact), pairs, 1)[0])

    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        """The variance of a weighted sum of cells."""
        return self._weighted(marginal, weights, exact=True)

    def _weighted(self, marginal: Marginal, weights: Floats, *, exact: bool) -> float:
        if self.design.recovery == "none":
            return float((weights**2 * self.product_variances(marginal, [None] * len(marginal), exact=exact)).sum())
        frame, V = self.design.frame, self.covariance(exact=exact)
        return float(frame.blocks.sum_variances(V, frame.table(marginal), frame.expanded(weights[None], marginal))[0])


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
        return [None if kind == "cells" else ends for kind, ends in zip(form.along, form.intervals, strict=True)]
    if isinstance(form, GroupTable):
        return list(form.members)
    return None


def asked_sums(
    frame: Frame, asked: Sequence[tuple[Marginal, Sequence[Rows] | None]]
) -> tuple[list[Levels], list[list[Floats]]]:
    """Tables, and the sums of their cells or of other answers, as the blocks of coordinates take them."""
    tables = [frame.table(marginal) for marginal, _ in asked]
    return tables, [[each.gram for each in frame.sums(marginal, rows)] for marginal, rows in asked]
