"""What is measured on a set of attributes B: four product bases, each a number on every residual space.

Along an axis i in B the measured rows S_i have a Gram matrix S_iᵀS_i = alpha I + beta J (rows weighted by their noise);
along the other axes everything is summed, Gram matrix J. Such matrices commute, so the whole strategy's Gram matrix is
diagonal over the residual spaces. With w_B the precision of the noise and N the domain's size, on V_C:

    Gram / N  =  sum_{B >= C}  w_B / cells(B)  prod_{i in C} inside_i  prod_{i in B - C} outside_i

where `inside` is the eigenvalue of S_iᵀS_i on centred vectors and `outside` the one on constants:

    basis       rows along an axis of size n              inside   outside      L1 column   L2² column    <two columns>
    marginal    the n cells                               1        1            1           1             0
    fourier     2^k - 1 Hadamard rows, n real columns     2^k      2^k - n      2^k - 1     2^k - 1       -1
    helmert     n - 1 integer Helmert rows, noise in      1        0            -           1 - 1/n       -1/n
                proportion to their norms
    centred     n cells less their mean, times n          1        0            2(n-1)/n    1 - 1/n       -1/n

(k = ceil(log2 n): a bit-coded attribute has 2^k - n phantom cells, which hold nobody and are dropped.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.lattice import hadamard, helmert

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Basis:
    """One row of the table above; functions take an axis's size n."""

    name: str
    laws: frozenset[str]
    """The noise that is drawn for it: laplace, gaussian."""
    rows: Callable[[int], int]
    inside: Callable[[int], int]
    outside: Callable[[int], int]
    l1_column: Callable[[int], Fraction] | None
    l2_column: Callable[[int], Fraction]
    column_product: Callable[[int], Fraction]
    stretch: Callable[[int], int]
    """The measured integers are this many times the real rows."""
    forward: Callable[[Ints, Sequence[int]], Ints]
    """Exact tables to measured integers, along the given axes."""
    row_norms: Callable[[Sequence[int]], Ints] | None = None
    """The squared norms of the measured rows over a table's shape, where Gaussian noise is in proportion to them."""

    def multipliers(self, shape: Sequence[int]) -> Ints | None:
        """What multiplies the Gaussian parameter of each number of a set, in a line; None where all are alike."""
        return None if self.row_norms is None else self.row_norms(shape).ravel()

    def per_axis(self, function: Callable[[int], float | Fraction], sizes: Sequence[int] | Ints) -> Floats:
        """A function of the size, for each attribute."""
        return np.array([float(function(int(n))) for n in sizes])


def _halves(n: int) -> Fraction:
    return Fraction(n - 1, n)


MARGINAL: Final = Basis(
    name="marginal",
    laws=frozenset({"laplace", "gaussian"}),
    rows=lambda n: n,
    inside=lambda n: 1,
    outside=lambda n: 1,
    l1_column=lambda n: Fraction(1),
    l2_column=lambda n: Fraction(1),
    column_product=lambda n: Fraction(0),
    stretch=lambda n: 1,
    forward=lambda tables, axes: tables,
)

FOURIER: Final = Basis(
    name="fourier",
    laws=frozenset({"laplace", "gaussian"}),
    rows=lambda n: hadamard.padded(n) - 1,
    inside=hadamard.padded,
    outside=lambda n: hadamard.padded(n) - n,
    l1_column=lambda n: Fraction(hadamard.padded(n) - 1),
    l2_column=lambda n: Fraction(hadamard.padded(n) - 1),
    column_product=lambda n: Fraction(-1),
    stretch=lambda n: 1,
    forward=hadamard.residual,
)

HELMERT: Final = Basis(
    name="helmert",
    laws=frozenset({"gaussian"}),
    rows=lambda n: n - 1,
    inside=lambda n: 1,
    outside=lambda n: 0,
    l1_column=None,
    l2_column=_halves,
    column_product=lambda n: Fraction(-1, n),
    stretch=lambda n: 1,
    forward=helmert.residual,
    row_norms=helmert.residual_norms,
)

CENTRED: Final = Basis(
    name="centred",
    laws=frozenset({"laplace"}),
    rows=lambda n: n,
    inside=lambda n: 1,
    outside=lambda n: 0,
    l1_column=lambda n: 2 * _halves(n),
    l2_column=_halves,
    column_product=lambda n: Fraction(-1, n),
    stretch=lambda n: n,
    forward=lambda tables, axes: _centre(tables, axes),
)

BASES: Final = {basis.name: basis for basis in (MARGINAL, FOURIER, HELMERT, CENTRED)}


def _centre(tables: Ints, axes: Sequence[int]) -> Ints:
    for axis in axes:
        tables = tables.shape[axis] * tables - tables.sum(axis=axis, keepdims=True)
    return tables
