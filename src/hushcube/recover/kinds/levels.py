"""Tables at nested levels: least squares over the coordinates of the levels, or each table from one measured one.

    theta_b = G_b^-1 sum_i u_i (x)_a S_{l_i(a)}' y_i  on block b,     x = (x)_a S_{l(a)} theta     [lattice/nested.py]

Every table comes from the same coordinates, so all of them agree, whatever their levels. A public total is no estimate:
its coordinate is set, and what it says about the others is moved to the right-hand side.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hushcube.lattice.nested import group_sums
from hushcube.lattice.nested_blocks import Key
from hushcube.model.marginal import Marginal
from hushcube.model.measurement import Measurement
from hushcube.plan.kinds import LevelPlan
from hushcube.plan.kinds.levels_errors import information, is_public, recovery_weights, source
from hushcube.recover.kinds.base import Answers, answers

Floats = NDArray[np.float64]


@answers.register
def _(plan: LevelPlan, measurement: Measurement) -> Answers:
    return SingleSources(plan, measurement) if plan.recovery == "none" else LevelAnswers(plan, measurement)


class LevelAnswers:
    """The coordinates, estimated once; tables on demand."""

    def __init__(self, plan: LevelPlan, measurement: Measurement) -> None:
        self._plan = plan
        self._coordinates = _estimate(plan, measurement)

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return np.stack([self._table(tuple(row)) for row in rows.tolist()]).reshape(len(rows), *shape)

    def _table(self, marginal: Marginal) -> Floats:
        frame = self._plan.frame
        return frame.summed(frame.blocks.table(self._coordinates, frame.table(marginal)), marginal)


class SingleSources:
    """Sums of cells of one measured table; tables may disagree."""

    def __init__(self, plan: LevelPlan, measurement: Measurement) -> None:
        self._plan = plan
        self._measured = dict(_measured(plan, measurement))

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return np.stack([self._table(tuple(row)) for row in rows.tolist()]).reshape(len(rows), *shape)

    def _table(self, marginal: Marginal) -> Floats:
        plan = self._plan
        number = source(plan, marginal)
        values, axis = self._measured[number], 0
        for groups in plan.nesting.groups(list(plan.measured)[number], marginal):
            if groups is None:
                values = np.asarray(values.sum(axis=axis))
            else:
                values, axis = group_sums(values, axis, groups), axis + 1
        return values


def _measured(plan: LevelPlan, measurement: Measurement) -> Iterator[tuple[int, Floats]]:
    """The number of each measured table, and its noisy cells."""
    for batch, values in zip(plan.measured.batches, measurement.values, strict=True):
        for number, table in zip(batch.ids.tolist(), values, strict=True):
            yield number, table.astype(np.float64)


def _estimate(plan: LevelPlan, measurement: Measurement) -> dict[Key, Floats]:
    """theta of each block: (copies, coordinates)."""
    blocks, weights = plan.frame.blocks, recovery_weights(plan)
    levels = [plan.frame.table(m) for m in plan.measured]
    G, known = information(plan, weights), 0.0
    sides: dict[Key, Floats] = {}
    for number, values in _measured(plan, measurement):
        if not np.isfinite(plan.budgets[number]):
            known = float(values.sum())
        for key, said in blocks.collected(values, levels[number]):
            if key not in sides:
                sides[key] = np.zeros((len(said), blocks.size(key)))
            sides[key][:, blocks.positions(key, levels[number]).ravel()] += weights[number] * said
    V = blocks.inverse(G, public=is_public(plan))
    result = {}
    for key, side in sides.items():
        if key == () and is_public(plan):
            side -= known * blocks.matrix(G, key)[0]
        result[key] = side @ blocks.matrix(V, key)
    if is_public(plan):
        result[()][0, 0] = known
    return result
