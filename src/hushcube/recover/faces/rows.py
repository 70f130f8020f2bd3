"""Faces of plans that measure the rows of a matrix.

The answers S x of the measured rows nearest to the noisy ones, by the rank-revealing form S = C S' [rank.py]; every
published number follows from them.                                            [Yaroslavtsev et al. 2013, III-C]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushcube.model.measurement import Measurement
from hushcube.plan.kinds import MatrixPlan
from hushcube.plan.kinds.matrix_errors import row_variances
from hushcube.recover.faces.clock import Clock
from hushcube.recover.faces.rank import nearest_answers
from hushcube.recover.faces.value import Norm, Weights
from hushcube.recover.kinds.matrix import LeastSquaresTable

Floats = NDArray[np.float64]


def least_squares_table(plan: MatrixPlan, measurement: Measurement) -> LeastSquaresTable:
    """The table that the rows give, whatever recovery the plan has for its published answers."""
    return LeastSquaresTable(plan, measurement.values[0].astype(np.float64))


def nearest_rows(
    plan: MatrixPlan, measurement: Measurement, norm: Norm, weights: Weights, clock: Clock
) -> tuple[LeastSquaresTable, float]:
    """The table behind the nearest consistent answers of the rows, and their distance from the noisy ones."""
    noisy = measurement.values[0].astype(np.float64)
    own = np.ones(len(noisy))
    if weights == "deviation":
        deviations = np.sqrt(row_variances(plan, exact=True))
        own = 1 / np.where(plan.public, 1.0, np.maximum(deviations, 1e-9))
    own[plan.public] = 1e6 * own.max()  # known exactly
    answers, distance = nearest_answers(plan.rows.dense(), noisy, own, norm, clock)
    return LeastSquaresTable(plan, answers), distance
