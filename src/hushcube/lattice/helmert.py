"""The integer Helmert basis: row 0 sums, row k is k ones, then -k; its rows are orthogonal with norms² n and k(k+1).

Along each axis of a table the transform separates the residual spaces: index 0 is 'summed out', indices 1..n-1 span the
centred part. The coefficient of B is the same in every marginal that contains B, which is what consistency means.
On binary axes it is the Hadamard basis.

Short axes are multiplied by the small matrix (7 times faster than running sums); long ones use running sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final, TypeVar

import numpy as np

from hushcube.model.arrays import Floats, Ints, frozen

Numbers = TypeVar("Numbers", Ints, Floats)

_Sums = Callable[[Any], Any]  # a transform along the first axis, by running sums; of integers or of floats

_SHORT: Final = 64


def norms(n: int) -> Ints:
    """Squared norms of the n rows: n, 2, 6, 12 ..."""
    k = np.arange(n, dtype=np.int64)
    return np.where(k == 0, n, k * (k + 1))


def residual_norms(shape: Sequence[int]) -> Ints:
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
    return _exact(tables, axes, _forward_sums)


def residual(tables: Numbers, axes: Sequence[int]) -> Numbers:
    """Only the centred part along each axis: indices 1..n-1 of `forward`; exact on integers."""
    return _exact(tables, axes, _residual_sums)


def inverse(coefficients: Floats, axes: Sequence[int]) -> Floats:
    """Undo `forward`."""
    return np.asarray(_along(coefficients, axes, _inverse_sums))


def inverse_variances(variances: Floats, axes: Sequence[int]) -> Floats:
    """Variances of the cells, from those of independent coefficients: `inverse` with squared weights."""
    return np.asarray(_along(variances, axes, _inverse_variance_sums))


def interval_variances(variances: Floats, axis: int, starts: Ints, ends: Ints) -> Floats:
    """Variances of sums over [start, end) along an axis, from those of independent coefficients.

    Row k > 0 has with such a sum the product 0 for k < start, -start inside it, and end - start beyond; row 0 has
    end - start. Divided by the squared norms these are the weights of the coefficients.
    """
    v = np.moveaxis(variances, axis, 0)
    squares = norms(len(v)).astype(np.float64).reshape(-1, *[1] * (v.ndim - 1)) ** 2
    beyond = np.zeros((len(v) + 1, *v.shape[1:]))  # sums over k >= 1, 2, ..., the small numbers first
    beyond[-2:0:-1] = np.cumsum((v / squares)[:0:-1], axis=0)
    s, length = (x.astype(np.float64).reshape(-1, *[1] * (v.ndim - 1)) for x in (starts, ends - starts))
    found = length**2 * (v[0] / squares[0] + beyond[ends]) + s**2 * (beyond[starts] - beyond[ends])
    return np.moveaxis(found, 0, axis)


def _exact(tables: Numbers, axes: Sequence[int], sums: _Sums) -> Numbers:
    """Integers travel through floats where no intermediate sum can leave the 53 bits in which floats are exact."""
    if tables.dtype.kind == "f":
        return _along(tables, axes, sums)  # type: ignore[no-any-return]
    largest = int(max(tables.max(initial=0), -tables.min(initial=0)))
    if largest * math.prod(2 * tables.shape[axis] for axis in axes) < 2**53:
        return _along(tables.astype(np.float64), axes, sums).astype(np.int64)  # type: ignore[no-any-return]
    for axis in axes:
        tables = np.moveaxis(sums(np.moveaxis(tables, axis, 0)), 0, axis)
    return tables


def _along(tables: Any, axes: Sequence[int], sums: _Sums) -> Any:
    for axis in axes:
        n = tables.shape[axis]
        if n > _SHORT:
            tables = np.moveaxis(sums(np.moveaxis(tables, axis, 0)), 0, axis)
            continue
        matrix = _matrix(sums, n)
        before, after = tables.shape[:axis], tables.shape[axis + 1 :]
        if after:
            product = np.matmul(matrix, tables.reshape(math.prod(before), n, math.prod(after)))
        else:
            product = tables.reshape(-1, n) @ matrix.T
        tables = product.reshape(*before, len(matrix), *after)
    return tables


@lru_cache(maxsize=1024)
def _matrix(sums: _Sums, n: int) -> Floats:
    return frozen(sums(np.eye(n)))


def _forward_sums(x: Numbers) -> Numbers:
    """c_0 = sum x, c_k = x_0 + ... + x_{k-1} - k x_k, along the first axis."""
    return np.concatenate((x.sum(axis=0, keepdims=True), _residual_sums(x)))


def _residual_sums(x: Numbers) -> Numbers:
    k = np.arange(1, len(x)).reshape(-1, *[1] * (x.ndim - 1))
    return np.cumsum(x[:-1], axis=0) - k * x[1:]


def _accumulate(c: Floats, *, power: int) -> Floats:
    """x_j = c_0/n - c_j/(j+1) [j > 0] + sum_{k>j} c_k / (k(k+1)); for variances, with squared weights."""
    n = len(c)
    j = np.arange(1, n, dtype=np.float64).reshape(-1, *[1] * (c.ndim - 1))
    scaled = c[1:] / (j * (j + 1)) ** power
    result = np.empty(c.shape)
    result[:] = c[0] / float(n) ** power
    result[:-1] += np.cumsum(scaled[::-1], axis=0)[::-1]
    result[1:] += (-1 if power == 1 else 1) * j**power * scaled
    return result


_inverse_sums, _inverse_variance_sums = partial(_accumulate, power=1), partial(_accumulate, power=2)
