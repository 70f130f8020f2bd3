"""Faces of plans that measure the rows of a matrix.

The answers S x of the measured rows nearest to the noisy ones, by the rank-revealing form S = C S' [rank.py]; every
published number follows from them.                                            [Yaroslavtsev et al. 2013, III-C]
"""

from __future__ import annotations

import numpy as np

from hushcube.designs import MatrixDesign
from hushcube.designs.matrix.answers import LeastSquaresTable
from hushcube.designs.matrix.errors import row_variances
from hushcube.faces.rank import nearest_answers
from hushcube.faces.value import Norm, Weights
from hushcube.model.measurement import Measurement
from hushcube.progress import Clock


def least_squares_table(design: MatrixDesign, measurement: Measurement) -> LeastSquaresTable:
    """The table that the rows give, whatever recovery the plan has for its published answers."""
    return LeastSquaresTable(design, measurement.values[0].astype(np.float64))


def nearest_rows(
    design: MatrixDesign, measurement: Measurement, norm: Norm, weights: Weights, clock: Clock
) -> tuple[LeastSquaresTable, float]:
    """The table behind the nearest consistent answers of the rows, and their distance from the noisy ones."""
    noisy = measurement.values[0].astype(np.float64)
    own = np.ones(len(noisy))
    if weights == "deviation":
        deviations = np.sqrt(row_variances(design, exact=True))
        own = 1 / np.where(design.public, 1.0, np.maximum(deviations, 1e-9))
    own[design.public] = 1e6 * own.max()  # known exactly
    answers, distance = nearest_answers(design.rows.dense(), noisy, own, norm, clock)
    return LeastSquaresTable(design, answers), distance
