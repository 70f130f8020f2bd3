"""Tables at nested levels: least squares over the coordinates of the levels, or each table from one measured one.

    theta_b = G_b^-1 sum_i u_i (x)_a S_{l_i(a)}' y_i  on block b,     x = (x)_a S_{l(a)} theta     [lattice/nested.py]

Every table comes from the same coordinates, so all of them agree, whatever their levels. A public total is no estimate:
its coordinate is set, and what it says about the others is moved to the right-hand side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hushcube.lattice.nested import group_sums
from hushcube.lattice.nested_blocks import Key
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.noise import Measurement

if TYPE_CHECKING:
    from hushcube.designs.levels.design import LevelDesign


class LevelAnswers:
    """The coordinates, estimated once; tables on demand."""

    def __init__(self, design: LevelDesign, measurement: Measurement) -> None:
        self._plan = design
        self._coordinates = _estimate(design, measurement)

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return np.stack([self._table(tuple(row)) for row in rows.tolist()]).reshape(len(rows), *shape)

    def _table(self, marginal: Marginal) -> Floats:
        frame = self._plan.frame
        return frame.summed(frame.blocks.table(self._coordinates, frame.table(marginal)), marginal)


class SingleSources:
    """Sums of cells of one measured table; tables may disagree."""

    def __init__(self, design: LevelDesign, measurement: Measurement) -> None:
        self._plan = design
        self._measured = dict(_measured(design, measurement))

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return np.stack([self._table(tuple(row)) for row in rows.tolist()]).reshape(len(rows), *shape)

    def _table(self, marginal: Marginal) -> Floats:
        design = self._plan
        number = design.errors.source(marginal)
        values, axis = self._measured[number], 0
        for groups in design.nesting.groups(list(design.measured)[number], marginal):
            if groups is None:
                values = np.asarray(values.sum(axis=axis))
            else:
                values, axis = group_sums(values, axis, groups), axis + 1
        return values


def _measured(design: LevelDesign, measurement: Measurement) -> Iterator[tuple[int, Floats]]:
    """The number of each measured table, and its noisy cells."""
    for batch, values in zip(design.measured.batches, measurement.values, strict=True):
        for number, table in zip(batch.ids.tolist(), values, strict=True):
            yield number, table.astype(np.float64)


def _estimate(design: LevelDesign, measurement: Measurement) -> dict[Key, Floats]:
    """theta of each block: (copies, coordinates)."""
    blocks, weights = design.frame.blocks, design.errors.recovery_weights()
    levels = [design.frame.table(m) for m in design.measured]
    G, known = design.errors.information(weights), 0.0
    sides: dict[Key, Floats] = {}
    for number, values in _measured(design, measurement):
        if not np.isfinite(design.budgets[number]):
            known = float(values.sum())
        for key, said in blocks.collected(values, levels[number]):
            if key not in sides:
                sides[key] = np.zeros((len(said), blocks.size(key)))
            sides[key][:, blocks.positions(key, levels[number]).ravel()] += weights[number] * said
    V = blocks.inverse(G, public=design.errors.is_public())
    result = {}
    for key, side in sides.items():
        if key == () and design.errors.is_public():
            side -= known * blocks.matrix(G, key)[0]
        result[key] = side @ blocks.matrix(V, key)
    if design.errors.is_public():
        result[()][0, 0] = known
    return result
