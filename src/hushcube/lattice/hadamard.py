"""The unnormalised Hadamard (Walsh-Fourier) transform on bit-coded axes: entries +-1, exact on integers.

chi_b(x) = sum_j (-1)^<b, j> x_j over the 2^k codes j; an axis of size n < 2^k is padded with phantom zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from hushcube.model.arrays import Floats, Ints

Numbers = TypeVar("Numbers", Ints, Floats)


def padded(n: int) -> int:
    """The smallest power of two that holds n codes.

    >>> [padded(n) for n in (1, 2, 3, 9, 16)]
    [1, 2, 4, 16, 16]
    """
    return 1 << (n - 1).bit_length()


def transform(tables: Numbers, axes: Sequence[int]) -> Numbers:
    """The whole transform along axes whose sizes are powers of two (its own inverse, up to the size)."""
    for axis in axes:
        moved = np.moveaxis(tables, axis, -1)
        values = np.ascontiguousarray(moved)
        n = values.shape[-1]
        half = 1
        while half < n:
            pairs = values.reshape(*values.shape[:-1], n // (2 * half), 2, half)
            values = np.stack((pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]), axis=-2)
            values = values.reshape(moved.shape)
            half *= 2
        tables = np.moveaxis(values, -1, axis)
    return tables


def pad(tables: Numbers, axes: Sequence[int]) -> Numbers:
    """Add the phantom cells, zeros at the end of each axis."""
    width = [(0, padded(n) - n if axis in axes else 0) for axis, n in enumerate(tables.shape)]
    return np.pad(tables, width) if width else tables


def residual(tables: Numbers, axes: Sequence[int]) -> Numbers:
    """The coefficients with a non-zero frequency along each axis: indices 1..2^k - 1."""
    keep = tuple(slice(1, None) if axis in axes else slice(None) for axis in range(tables.ndim))
    return transform(pad(tables, axes), axes)[keep]


def adjoint(coefficients: Numbers, shape: Sequence[int], axes: Sequence[int]) -> Numbers:
    """Transposed `residual`: back to tables of the real cells; `shape` gives the sizes along `axes`."""
    width = [(1 if axis in axes else 0, 0) for axis in range(coefficients.ndim)]
    real = [slice(None)] * coefficients.ndim
    for axis, n in zip(axes, shape, strict=True):
        real[axis] = slice(0, n)
    return transform(np.pad(coefficients, width), axes)[tuple(real)]
