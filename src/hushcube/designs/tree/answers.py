"""Consistent tables from levels of trees, by weighted least squares; diagonal over the spaces between the levels.

    coefficient_l = sum_{m sees l}  u_m / nodes(m)  coefficient_l(measured set m)  /  K_l(u)    [designs/tree/design.py]

The coefficients of a set measured in wavelets are the measured numbers themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hushcube.lattice.trees import Tree
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.noise import Measurement

if TYPE_CHECKING:
    from hushcube.designs.tree.design import TreeDesign


class TreeAnswers:
    """The coefficients of each carrier, estimated when it is first asked for."""

    def __init__(self, design: TreeDesign, measurement: Measurement) -> None:
        self._plan = design
        self._values = measurement.values
        self._weights = design.errors.recovery_weights()
        self._kept: dict[Marginal, Floats] = {}

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return np.stack([self._table(tuple(row)) for row in rows.tolist()]).reshape(len(rows), *shape)

    def _table(self, marginal: Marginal) -> Floats:
        carrier = next(c for c in self._plan.carriers if set(marginal) <= set(c))
        if carrier not in self._kept:
            self._kept[carrier] = self._estimate(carrier)
        table = self._kept[carrier][tuple(slice(None) if i in marginal else 0 for i in carrier)]
        for axis, i in enumerate(marginal):
            table = self._plan.trees[i].inverse(table, axis)
        return table

    def _estimate(self, A: Marginal) -> Floats:
        """The coefficients of one carrier: what every set says about its spaces, weighted."""
        design = self._plan
        result = np.zeros([design.trees[i].leaves for i in A])
        shares = self._weights / design.nodes
        for number, (row, values) in enumerate(zip(design.levels.tolist(), self._values, strict=True)):
            seen = self._coefficients(row, values.astype(np.float64), A)
            if seen is not None and shares[number]:
                place = tuple(self._place(i, row[i]) for i in A)
                result[place] += shares[number] * seen
        scale = design.kernel(A, self._weights)
        scale = scale[np.ix_(*(design.trees[i].levels for i in A))] if A else scale
        result = np.divide(result, scale, out=np.zeros_like(result), where=scale > 0)
        return self._with_public(A, result)

    def _coefficients(self, row: list[int], values: Floats, A: Marginal) -> Floats | None:
        """One set's coefficients, an axis for each attribute of A; None where it sees nothing of A."""
        axis = 0
        for i, m in enumerate(row):
            wavelet, tree = self._plan.wavelet[i], self._plan.trees[i]
            if m and not wavelet:
                values = Tree(tree.nodes[m], tree.fan_outs[:m]).forward(values, axis)
            if m and i not in A:
                if wavelet:
                    return None
                values = np.asarray(values.take(0, axis=axis))
            elif i in A:
                values = values if m else np.expand_dims(values, axis)
                axis += 1
        return values

    def _place(self, attribute: int, level: int) -> slice:
        tree = self._plan.trees[attribute]
        return tree.block(level) if self._plan.wavelet[attribute] else slice(0, tree.nodes[level])

    def _with_public(self, A: Marginal, result: Floats) -> Floats:
        """The total, where it is known exactly."""
        for number in np.flatnonzero(~np.isfinite(self._plan.budgets)).tolist():
            result[(0,) * len(A)] = float(self._values[number])
        return result
