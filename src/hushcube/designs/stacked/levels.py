"""Least squares over layers at nested levels: that of one layer, of the means of what all of them measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from hushcube.designs.levels.design import LevelErrors
from hushcube.designs.stacked.pool import Pool
from hushcube.model.arrays import Bools, Floats
from hushcube.model.noise import Measurement

if TYPE_CHECKING:
    from hushcube.designs.stacked.design import StackedDesign


class StackedLevelErrors(LevelErrors):
    """Variances from the covariance of the coordinates of the levels."""

    design: StackedDesign  # type: ignore[assignment] # which has tables at levels as a level design has

    @property
    def noisy(self) -> Bools:
        """The tables of which no layer is public."""
        return ~self._pool.public

    def drawn_variances(self, *, exact: bool) -> Floats:
        """The variance of the mean of what all layers say of a table."""
        return self._pool.variances(exact=exact)

    @property
    def _pool(self) -> Pool:
        (pool,) = self.design.pools
        return pool


def mean_tables(pool: Pool, measurement: Measurement) -> Iterator[tuple[int, Floats]]:
    """The number of each measured table, and the mean of what all layers say of its cells."""
    for batch, tables in zip(pool.measured.batches, pool.means(measurement).blocks, strict=True):
        yield from zip(batch.ids.tolist(), np.asarray(tables, np.float64), strict=True)
