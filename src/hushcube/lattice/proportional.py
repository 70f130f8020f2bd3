"""Proportional fitting: tables with given margins that are as a start is, but for one factor for each of their cells.

The start is multiplied by factors for the cells of each margin in turn until all margins hold. From a start of ones
that is the table of greatest entropy; from any other, the one nearest to it in relative entropy. What the start says of
the interaction of all attributes stays: such factors cannot change it. Given the margins of single attributes, the
table of greatest entropy is the product of their shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats

_SWEEPS: Final = 25
_CLOSE: Final = 1e-4  # of all people: what margins may be off by when proportional fitting stops


def proportional(shape: tuple[int, ...], margins: Sequence[Floats], start: Floats | None = None) -> Floats:
    """The tables (tables, *shape) with given margins, of greatest entropy or from a start; margin i lacks axis i.

    >>> proportional((2, 2), [np.array([[3.0, 1.0]]), np.array([[2.0, 2.0]])]).tolist()
    [[[1.5, 0.5], [1.5, 0.5]]]
    """
    x = np.ones((len(margins[0]), *shape)) if start is None else start.copy()
    scale = max(float(margins[0].reshape(len(x), -1).sum(axis=1).max(initial=0.0)), 1e-300)
    for sweep in range(_SWEEPS):
        worst = 0.0
        for axis, margin in enumerate(margins, start=1):
            now = x.sum(axis=axis)
            if sweep:
                worst = max(worst, float(np.abs(now - margin).reshape(len(x), -1).sum(axis=1).max(initial=0.0)))
            x *= np.expand_dims(np.divide(margin, now, out=np.zeros_like(now), where=now > 0), axis)
        if (sweep and worst <= _CLOSE * scale) or (len(shape) == 2 and start is None):
            break
    return x


def independent(family: Family, shares: Mapping[int, Floats], people: float) -> list[Floats]:
    """The tables of a family if attributes were independent, an array for each batch; by the shares of their values.

    >>> shares = {0: np.array([0.5, 0.5]), 1: np.array([0.25, 0.75])}
    >>> independent(Family.of([(0, 1)], (2, 2)), shares, 8.0)[0].tolist()
    [[[1.0, 3.0], [1.0, 3.0]]]
    """
    found = []
    for batch in family.batches:
        axes = range(1, len(batch.shape) + 1)
        tables = np.full((len(batch.ids), *[1] * len(axes)), people)
        for axis in axes:
            factors = np.stack([shares[i] for i in batch.rows[:, axis - 1].tolist()])
            tables = tables * np.expand_dims(factors, [a for a in axes if a != axis])
        found.append(tables)
    return found
