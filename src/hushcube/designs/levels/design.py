"""Designs that measure tables at nested levels of attributes, and the tables that come back.

Plain tables are measured, as in the marginal basis of a LatticeDesign, and a row of data moves one cell of each: the
cost, the counting and the noise are those of marginals. The tables' cells overlap in other ways than marginals do,
so that recovery and errors are a kind of their own; nothing that relies on residual spaces may take it for a lattice.

Least squares works on the coordinates of the levels:

    theta_b = G_b^-1 sum_i u_i (x)_a S_{l_i(a)}' y_i  on block b,     x = (x)_a S_{l(a)} theta     [lattice/nested.py]

Every table comes from the same coordinates, so all of them agree, whatever their levels. A public total is no estimate:
its coordinate is set, and what it says about the others is moved to the right-hand side.

Predicted errors are exact for groups of any sizes, cell by cell where they differ. With noise variances v_i and weights
u_i of the recovery, the covariance of the coordinates is, block by block,

    V = G(u)^-1 G(u² v) G(u)^-1          (= G(1/v)^-1 for generalised least squares)     [lattice/nested_blocks.py]

Without recovery a table is summed from one measured table, that of the least variance after summing; the variance of a
cell is then v_i times the number of its cells there, and tables need not agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from typing import Any, Final

import numpy as np

from hushcube.designs.answers import Answers, OneByOne
from hushcube.designs.errors import Along, Errors, kept
from hushcube.designs.lattice.design import FamilyDesign
from hushcube.designs.levels.nesting import Frame, Nesting, Rows, nesting
from hushcube.errors import NotApplicable
from hushcube.lattice.basis import MARGINAL, Basis
from hushcube.lattice.nested import group_sums
from hushcube.lattice.nested_blocks import Key, Levels, Pairs, Stacks
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.form import Form, GroupTable, RangeTable
from hushcube.model.noise import Measurement
from hushcube.model.queries import QueryTable

TOO_COUPLED: Final = "the levels of the tables couple in too many ways to be combined"


@dataclass(frozen=True, eq=False, repr=False)
class LevelDesign(FamilyDesign, kind="levels"):
    """Tables at some levels of some attributes. Two rows may differ at the coarsest level of every one of them."""

    serves_levels = True
    basis: Basis = field(default=MARGINAL, init=False)

    def __post_init__(self) -> None:
        if any(len({chain for chain, _ in self.nesting.levels(m)}) < len(m) for m in self.measured):
            raise ValueError("a table has an attribute at two levels")
        super().__post_init__()
        if self.recovery != "none":
            self.frame  # noqa: B018 - refuses what could not be combined

    @cached_property
    def nesting(self) -> Nesting:
        """The levels of the schema."""
        return nesting(self.schema)

    @cached_property
    def frame(self) -> Frame:
        """The coordinates in which the measured tables are combined."""
        found = Frame.of(self.nesting, list(self.measured))
        if found is None:
            raise NotApplicable(self.strategy, TOO_COUPLED)
        return found

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{len(self.measured):,} table(s) at nested levels"

    @cached_property
    def errors(self) -> LevelErrors:
        """Predicted errors."""
        return LevelErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """Least squares over the coordinates of the levels, or one measured table for each."""
        if self.recovery == "none":
            return OneByOne(partial(_from_source, self, dict(_measured(self, measurement))))
        return level_answers(self.errors, _measured(self, measurement))

    def is_answerable(self) -> bool:
        """Whether some measured table holds each table that is needed."""
        return self.nesting.all_held(self.request.marginals, self.measured)

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        return {"design": "levels", **super().specification()}


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

    def covariances(self, marginal: Marginal, rows: Along, totals: Along) -> Floats:
        """Of products of sums along the axes with their partners."""
        return self.product_variances(marginal, rows, exact=True, totals=totals)

    def product_variances(
        self, marginal: Marginal, rows: Sequence[Rows], *, exact: bool, totals: Along | None = None
    ) -> Floats:
        """Variances of products of sums along the axes of a marginal: one for each combination of sums.

        With totals along some axes, covariances of the products with those that have the totals in their place.
        """
        design, totals = self.design, [None] * len(marginal) if totals is None else totals
        if design.recovery == "none":
            at = self.source(marginal)
            source = list(design.measured)[at]
            groups = design.nesting.groups(source, marginal)
            variance = float(self.drawn_variances(exact=exact)[at])
            for position, own in zip(source, groups, strict=True):
                variance *= design.schema.sizes[position] if own is None else 1
            counts = (np.bincount(own).astype(np.float64) for own in groups if own is not None)
            axes = zip(rows, counts, totals, strict=True)
            squares = [_squares(each, own) if total is None else own * total for each, own, total in axes]
            return np.asarray(reduce(np.multiply.outer, squares, np.asarray(variance)))
        frame, V = design.frame, self.covariance(exact=exact)
        result = frame.blocks.product_variances(V, frame.table(marginal), frame.pairs(marginal, rows, totals))
        for axis, (own, total) in enumerate(zip(frame.groups(marginal), totals, strict=True)):
            if own is not None and total is not None:
                result = group_sums(result, axis, own)
        return result

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


def _measured(design: LevelDesign, measurement: Measurement) -> Iterator[tuple[int, Floats]]:
    """The number of each measured table, and its noisy cells."""
    for batch, values in zip(design.measured.batches, measurement.values, strict=True):
        for number, table in zip(batch.ids.tolist(), values, strict=True):
            yield number, table.astype(np.float64)


def _from_source(design: LevelDesign, measured: dict[int, Floats], marginal: Marginal) -> Floats:
    """Sums of cells of one measured table."""
    number = design.errors.source(marginal)
    values, axis = measured[number], 0
    for groups in design.nesting.groups(list(design.measured)[number], marginal):
        if groups is None:
            values = np.asarray(values.sum(axis=axis))
        else:
            values, axis = group_sums(values, axis, groups), axis + 1
    return values


def level_answers(errors: LevelErrors, tables: Iterable[tuple[int, Floats]]) -> Answers:
    """Tables from least squares over measured ones, each with its number."""
    frame, theta = errors.design.frame, _coordinates(errors, tables)
    return OneByOne(lambda table: frame.summed(frame.blocks.table(theta, frame.table(table)), table))


def _coordinates(errors: LevelErrors, tables: Iterable[tuple[int, Floats]]) -> dict[Key, Floats]:
    """theta of each block: (copies, coordinates)."""
    design, blocks = errors.design, errors.design.frame.blocks
    weights = errors.recovery_weights()
    levels = [design.frame.table(m) for m in design.measured]
    G, known = errors.information(weights), 0.0
    sides: dict[Key, Floats] = {}
    for number, values in tables:
        if not errors.noisy[number]:
            known = float(values.sum())
        for key, said in blocks.collected(values, levels[number]):
            if key not in sides:
                sides[key] = np.zeros((len(said), blocks.size(key)))
            sides[key][:, blocks.positions(key, levels[number]).ravel()] += weights[number] * said
    V = blocks.inverse(G, public=design.publishes_total)
    if design.publishes_total:
        sides[()] -= known * blocks.matrix(G, ())[0]
    result = {key: side @ blocks.matrix(V, key) for key, side in sides.items()}
    if design.publishes_total:
        result[()][0, 0] = known
    return result
