"""The integer Helmert basis: row 0 sums, row k is k ones, then -k; its rows are orthogonal with norms² n and k(k+1).

Along each axis of a table the transform separates the residual spaces: index 0 is 'summed out', indices 1..n-1 span the
centred part. The coefficient of B is the same in every marginal that contains B, which is what consistency means.
On binary axes it is the Hadamard basis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = TypeVar("Numbers", NDArray[np.int64], NDArray[np.float64])


def norms(n: int) -> NDArray[np.int64]:
    """Squared norms of the n rows.

    >>> norms(4).tolist()
    [4, 2, 6, 12]
    """
    k = np.arange(n, dtype=np.int64)
    return np.where(k == 0, n, k * (k + 1))


def residual_norms(shape: Sequence[int]) -> NDArray[np.int64]:
    """Squared norms of the rows that span V_B, for the sizes of B's attributes; shape (n_1 - 1, ..., n_k - 1)."""
    result = np.ones((), dtype=np.int64)
    for n in shape:
        result = np.multiply.outer(result, norms(n)[1:])
    return result


def forward(tables: Numbers, axes: Sequence[int]) -> Numbers:
    """Apply the basis along axes; exact on integers.

    >>> forward(np.array([3, 5, 7]), [0]).tolist()
    [15, -2, -6]
    """
    for axis in axes:
        moved = np.moveaxis(tables, axis, 0)
        n = len(moved)
        partial = np.cumsum(moved, axis=0)
        result = np.empty_like(partial)
        result[0] = partial[-1]
        factor = np.arange(1, n).reshape(-1, *[1] * (moved.ndim - 1))
        result[1:] = partial[:-1] - factor * moved[1:]
        tables = np.moveaxis(result, 0, axis)
    return tables


def residual(tables: Numbers, axes: Sequence[int]) -> Numbers:
    """Only the centred part along each axis: indices 1..n-1 of `forward`."""
    for axis in axes:
        moved = np.moveaxis(tables, axis, 0)
        factor = np.arange(1, len(moved)).reshape(-1, *[1] * (moved.ndim - 1))
        result = np.cumsum(moved[:-1], axis=0)
        result -= factor * moved[1:]
        tables = np.moveaxis(result, 0, axis)
    return tables


def inverse(coefficients: Floats, axes: Sequence[int]) -> Floats:
    """Undo `forward`: x_j = c_0/n - c_j/(j+1) [j > 0] + sum_{k>j} c_k / (k(k+1)).

    >>> inverse(np.array([15.0, -2.0, -6.0]), [0]).round(12).tolist()
    [3.0, 5.0, 7.0]
    """
    return _accumulate(coefficients, axes, power=1)


def inverse_variances(variances: Floats, axes: Sequence[int]) -> Floats:
    """Variances of the cells, from those of independent coefficients: `inverse` with squared weights."""
    return _accumulate(variances, axes, power=2)


def _accumulate(values: Floats, axes: Sequence[int], *, power: int) -> Floats:
    for axis in axes:
        moved = np.moveaxis(values, axis, 0)
        n = len(moved)
        j = np.arange(1, n, dtype=np.float64).reshape(-1, *[1] * (moved.ndim - 1))
        sign = -1.0 if power == 1 else 1.0
        result = np.empty(moved.shape)
        result[-1] = moved[0] / float(n) ** power
        if n > 1:
            scaled = moved[1:] / (j * (j + 1)) ** power
            result[:-1] = np.cumsum(scaled[::-1], axis=0)[::-1] + result[-1]
            result[1:] += sign * j**power * scaled
        values = np.moveaxis(result, 0, axis)
    return values
