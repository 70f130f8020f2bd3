"""Relative errors of noisy tables against the true ones.

error of a cell  =  |y - q| / max(q, δ),  δ the sanity bound                       [Xiao et al. 2011, Equation 1]
overall error    =  mean over tables of the mean over cells                        [Definition 6]
expected         =  mean over tables of E|noise| * mean over cells of 1/max(q, δ)  [Section 5.2]

A table counts as much as any other, however many cells it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import BadInput
from hushcube.model.arrays import Floats

Table = NDArray[Any]


def overall_error(truth: Sequence[Table], answers: Sequence[Table], sanity_bound: float) -> float:
    """The mean over tables of the mean relative error of their cells.

    >>> overall_error([np.array([100, 0])], [np.array([90.0, 2.0])], sanity_bound=4)
    0.3
    """
    return float(np.mean([errors.mean() for errors in _errors(truth, answers, sanity_bound)]))


def worst_error(truth: Sequence[Table], answers: Sequence[Table], sanity_bound: float) -> float:
    """The largest relative error of any cell.

    >>> worst_error([np.array([100, 0])], [np.array([90.0, 2.0])], sanity_bound=4)
    0.5
    """
    return float(max(errors.max() for errors in _errors(truth, answers, sanity_bound)))


def expected_overall_error(truth: Sequence[Table], scales: Sequence[float], sanity_bound: float) -> float:
    """The expected overall error when the noise of table i has the mean absolute value scales[i] in every cell.

    >>> marginals = [np.array([100, 100]), np.array([1, 1, 1, 1])]
    >>> round(expected_overall_error(marginals, (22, 2.2), sanity_bound=1), 12)
    1.21
    """
    _check(truth, scales, "scales", sanity_bound)
    return float(
        np.mean([scale * (1 / _sizes(q, sanity_bound)).mean() for q, scale in zip(truth, scales, strict=True)])
    )


def _errors(truth: Sequence[Table], answers: Sequence[Table], sanity_bound: float) -> Iterator[Floats]:
    _check(truth, answers, "answers", sanity_bound)
    for q, y in zip(truth, answers, strict=True):
        if q.shape != y.shape:  # numpy would broadcast
            raise BadInput("answers", f"a table of shape {y.shape} answers one of shape {q.shape}", "match the shapes")
        yield np.abs(np.subtract(y, q, dtype=np.float64)) / _sizes(q, sanity_bound)


def _sizes(q: Table, sanity_bound: float) -> Floats:
    """max(q, δ): what an error is relative to."""
    return np.maximum(q, sanity_bound, dtype=np.float64)


def _check(truth: Sequence[Table], others: Sequence[Any], name: str, sanity_bound: float) -> None:
    if not sanity_bound > 0:
        raise BadInput("sanity_bound", f"{sanity_bound:g} is not positive", "give a count below which errors are alike")
    if not truth or len(truth) != len(others):
        raise BadInput(name, f"there are {len(others)} for {len(truth)} tables", "give one for each, and at least one")
