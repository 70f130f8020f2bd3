"""The consistent answers nearest to noisy ones, for any matrix of queries: a face of plans that measure its rows.

Q has q rows of rank q' <= q. With Q' = q' independent rows of Q and Q = C Q', every y' is an answer to Q', so that the
consistent answers are C y', and the nearest have q' variables, never one for each cell:

    minimise   || C y' - z ||_p        p = 1, 2, infinity                     [Yaroslavtsev et al. 2013, III-C]

C has the identity in the chosen rows; the other rows of it are equations y_r = C_r y', the ties of `norms.py`.

The rows are chosen by pivoting: next comes the row farthest from the span of those chosen, each row taken at unit
length. The distances are of the rows themselves, orthogonalised twice; a Gram matrix would square the condition number.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hushcube.designs import MatrixDesign
from hushcube.designs.answers import Answers
from hushcube.designs.matrix.design import least_squares
from hushcube.faces.norms import Ties, deviations, distance, require_positive
from hushcube.faces.programs import stacked
from hushcube.faces.value import Norm, Weights
from hushcube.model.arrays import Floats, Ints
from hushcube.model.noise import Measurement
from hushcube.model.queries import SparseRows
from hushcube.progress import Clock

_WORK: Final = "the nearest answers"
_DEPENDENT: Final = 1e-9  # a row of unit length that is nearer to the span of the others depends on them
_UNSURE: Final = 1e-6  # squared distances come from subtracting; below this they are computed anew
_ROUNDING: Final = 1e-12  # entries of C below this share of its row's largest are zero


def decompose(Q: SparseRows | Floats, clock: Clock) -> tuple[Ints, Floats]:
    """Independent rows that span all, in increasing order, and C: Q = C Q[rows], and C[rows] is the identity."""
    dense = Q.dense() if isinstance(Q, SparseRows) else np.asarray(Q, dtype=np.float64)
    lengths = np.sqrt((dense**2).sum(axis=1))
    unit = dense / np.where(lengths > 0, lengths, 1.0)[:, None]
    chosen, basis = _pivot(unit, clock)
    rows = np.sort(np.array(chosen, np.int64))
    along = unit @ basis.T
    # unit = along basis and unit[rows] = along[rows] basis, with a square along[rows]: triangular but for the order
    C = np.linalg.solve(along[rows].T, along.T).T * lengths[:, None] / lengths[rows]
    C[np.abs(C) < _ROUNDING * np.abs(C).max(axis=1, initial=0.0, keepdims=True)] = 0.0
    C[rows] = np.eye(len(rows))
    return rows, C


def nearest_answers(
    Q: SparseRows | Floats, given: Floats, weights: Floats, norm: Norm, clock: Clock
) -> tuple[Floats, float]:
    """The consistent answers Q x nearest to given ones, and their distance.

    The distance is sum w |off|, max w |off|, or the root of sum w off².

    >>> answers, far = nearest_answers(np.array([[1.0], [1.0]]), np.array([3.0, 5.0]), np.ones(2), "l2", Clock())
    >>> answers.round(6).tolist(), round(far, 6)
    ([4.0, 4.0], 1.414214)
    """
    clock.tick(_WORK, 0.0)
    require_positive(weights)
    rows, C = decompose(Q, clock)
    if norm == "l2":
        root = np.sqrt(weights)
        answers = C @ np.linalg.lstsq(root[:, None] * C, root * given, rcond=None)[0]
        return answers, float(np.sqrt((weights * (answers - given) ** 2).sum()))
    # the ties: y_r - C_r y' = 0 for each row that was not chosen
    others = np.setdiff1d(np.arange(len(C)), rows)
    row, column = np.nonzero(C[others])
    matrix = stacked((row, rows[column], -C[others[row], column]), (np.arange(len(others)), others, 1.0))
    off = deviations(Ties(len(others), matrix), given, weights, norm, clock)
    answers = C @ (given + off)[rows]
    return answers, distance(answers - given, weights, norm)


def _pivot(unit: Floats, clock: Clock) -> tuple[list[int], Floats]:
    """Chosen rows in their order, and an orthonormal basis of their span."""
    most = min(unit.shape)
    basis = np.zeros((most, unit.shape[1]))
    left = (unit**2).sum(axis=1)  # the squared distance of each row from the span
    chosen: list[int] = []
    known = 1.0  # how large distances were when they were last computed anew
    while len(chosen) < most:
        clock.tick(_WORK, len(chosen) / most)
        at = int(np.argmax(left))
        if left[at] <= _UNSURE * known:
            left = (_outside(unit, basis) ** 2).sum(axis=1)
            left[chosen] = 0.0
            at = int(np.argmax(left))
            known = float(left[at])
        if left[at] <= _DEPENDENT**2:
            break
        direction = _outside(unit[at], basis)
        direction /= np.sqrt(direction @ direction)
        basis[len(chosen)] = direction
        chosen.append(at)
        left -= (unit @ direction) ** 2
        left[chosen] = 0.0
    return chosen, basis[: len(chosen)]


def _outside(rows: Floats, basis: Floats) -> Floats:
    """Rows less their part in the span of the basis, taken away twice."""
    for _ in range(2):
        rows = rows - (rows @ basis.T) @ basis
    return rows


def nearest_rows(
    design: MatrixDesign, measurement: Measurement, norm: Norm, weights: Weights, clock: Clock
) -> tuple[Answers, float]:
    """The table behind the nearest consistent answers of the rows, and their distance from the noisy ones."""
    noisy = measurement.values[0].astype(np.float64)
    own = np.ones(len(noisy))
    if weights == "deviation":
        deviations = np.sqrt(design.errors.row_variances(exact=True))
        own = 1 / np.where(design.public, 1.0, np.maximum(deviations, 1e-9))
    own[design.public] = 1e6 * own.max()  # known exactly
    answers, distance = nearest_answers(design.rows, noisy, own, norm, clock)
    return least_squares(design, answers), distance
