"""What is measured on a set of attributes B: four product bases, each a number on every residual space.

Along an axis i in B the measured rows S_i have a Gram matrix S_iᵀS_i = alpha I + beta J (rows weighted by their noise);
along the other axes everything is summed, Gram matrix J. Such matrices commute, so the whole strategy's Gram matrix is
diagonal over the residual spaces. With w_B the precision of the noise and N the domain's size, on V_C Gram / N is

    K_C(w)  =  sum_{B >= C}  w_B / cells(B)  prod_{i in C} inside_i  prod_{i in B - C} outside_i

where `inside` is the eigenvalue of S_iᵀS_i on centred vectors and `outside` the one on constants:

    basis       rows along an axis of size n              inside   outside      L1 column   L2² column    <two columns>
    marginal    the n cells                               1        1            1           1             0
    fourier     2^k - 1 Hadamard rows, n real columns     2^k      2^k - n      2^k - 1     2^k - 1       -1
    helmert     n - 1 integer Helmert rows, noise in      1        0            -           1 - 1/n       -1/n
                proportion to their norms
    centred     n cells less their mean, times n          1        0            2(n-1)/n    1 - 1/n       -1/n

(k = ceil(log2 n): a bit-coded attribute has 2^k - n phantom cells, which hold nobody and are dropped.)

A linear recovery estimates each residual space V_C by combining the measured sets B >= C with weights u_B
(u = 1/variance: generalised least squares; u = 1: ordinary). The estimate of a Helmert coefficient of V_C with squared
row norm h has variance h v_C,

    v_C = K_C(u² variance) / (cells(C) K_C(u)²)        (= 1/(cells(C) K_C(1/variance)) for generalised least squares)

and every cell of marginal A has variance  sum_{C <= A} m_C cells(C) v_C / cells(A)²       [docs/maths.md, 7].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Final

import numpy as np

from hushcube.lattice import hadamard, helmert
from hushcube.lattice.family import Family
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.model.noise import GAUSSIAN, LAPLACE, Law


@dataclass(frozen=True)
class Basis:
    """One row of the table above; functions take an axis's size n."""

    name: str
    laws: frozenset[Law]  # the noise that is drawn for it
    rows: Callable[[int], int]
    l1_column: Callable[[int], Fraction] | None
    l2_column: Callable[[int], Fraction]
    column_product: Callable[[int], Fraction]
    forward: Callable[[Ints, Sequence[int]], Ints]  # exact tables to measured integers, along the given axes
    adjoint: Callable[[Floats, Sequence[int]], Floats]
    """Measured numbers (sets, *rows) back to tables of a shape: the transposed real rows, weighted by their noise."""
    inside: Callable[[int], int] = lambda n: 1
    outside: Callable[[int], int] = lambda n: 0
    stretch: Callable[[int], int] = lambda n: 1  # the measured integers are this many times the real rows
    holds_cells: bool = False
    """Whether the numbers are the cells themselves, so that a row of data moves one of each set."""
    has_inverse: bool = False
    """Whether a table follows from the numbers of its own subsets alone, by the inverse transform."""
    is_minimal: bool = False
    """Whether each residual space is measured once, by as many orthogonal rows as it has dimensions."""
    row_norms: Callable[[Sequence[int]], Ints] | None = None
    """The squared norms of the rows over a table's shape, where Gaussian noise is in proportion to them."""
    extreme_norms: Callable[[int], tuple[int, int]] = lambda n: (1, 1)
    """The smallest and the largest of them along an axis."""
    farthest: int = 1
    """How far a row of data that is replaced moves a number at most, under Laplace noise; one that comes, 1 at most."""
    l1_change: Callable[[Sequence[int], Sequence[int]], float] | None = None
    """||difference of two columns||_1 over a shape, for attributes that differ or not, where no product gives it."""

    def touched(self, n: int) -> int:
        """How many numbers a row of data moves, along an axis."""
        return 1 if self.holds_cells else self.rows(n)

    def multipliers(self, shape: Sequence[int]) -> Ints | None:
        """What multiplies the Gaussian parameter of each number of a set, in a line; None where all are alike."""
        return None if self.row_norms is None else self.row_norms(shape).ravel()

    def per_axis(self, function: Callable[[int], float | Fraction], sizes: Sequence[int] | Ints) -> Floats:
        """A function of the size, for each attribute."""
        return np.array([float(function(int(n))) for n in sizes])


def _halves(n: int) -> Fraction:
    return Fraction(n - 1, n)


def _centre(tables: Ints, axes: Sequence[int]) -> Ints:
    for axis in axes:
        tables = tables.shape[axis] * tables - tables.sum(axis=axis, keepdims=True)
    return tables


def _centred(numbers: Floats, shape: Sequence[int]) -> Floats:
    """The noise is centred with the rest; counts were multiplied by the sizes."""
    for axis, n in enumerate(shape, start=1):
        numbers = (numbers - numbers.mean(axis=axis, keepdims=True)) / n
    return numbers


def _centred_change(shape: Sequence[int], pattern: Sequence[int]) -> float:
    """sum over cells c of |prod_i P[c_i, j_i] - prod_i P[c_i, k_i]|, P = I - J/n; cells classed by meeting j or k."""
    shared = math.prod(2 * (n - 1) / n for n, differs in zip(shape, pattern, strict=True) if not differs)
    varying = [n for n, differs in zip(shape, pattern, strict=True) if differs]
    # (how many cells, first, second factor)
    classes = [((1, 1 - 1 / n, -1 / n), (1, -1 / n, 1 - 1 / n), (n - 2, -1 / n, -1 / n)) for n in varying]
    each = (map(math.prod, zip((1, 1, 1), *cell, strict=True)) for cell in product(*classes))
    return shared * math.fsum(cells * abs(first - second) for cells, first, second in each)


MARGINAL: Final = Basis(
    name="marginal",
    laws=frozenset({LAPLACE, GAUSSIAN}),
    rows=lambda n: n,
    outside=lambda n: 1,
    l1_column=lambda n: Fraction(1),
    l2_column=lambda n: Fraction(1),
    column_product=lambda n: Fraction(0),
    forward=lambda tables, axes: tables,
    adjoint=lambda numbers, shape: numbers,
    holds_cells=True,
)

FOURIER: Final = Basis(
    name="fourier",
    laws=frozenset({LAPLACE, GAUSSIAN}),
    rows=lambda n: hadamard.padded(n) - 1,
    inside=hadamard.padded,
    outside=lambda n: hadamard.padded(n) - n,
    l1_column=lambda n: Fraction(hadamard.padded(n) - 1),
    l2_column=lambda n: Fraction(hadamard.padded(n) - 1),
    column_product=lambda n: Fraction(-1),
    farthest=2,
    forward=hadamard.residual,
    adjoint=lambda numbers, shape: hadamard.adjoint(numbers, shape, range(1, len(shape) + 1)),
    has_inverse=True,
)

HELMERT: Final = Basis(
    name="helmert",
    laws=frozenset({GAUSSIAN}),
    rows=lambda n: n - 1,
    l1_column=None,
    l2_column=_halves,
    column_product=lambda n: Fraction(-1, n),
    forward=helmert.residual,
    adjoint=lambda numbers, shape: helmert.inverse(
        np.pad(numbers, [(0, 0), *[(1, 0)] * len(shape)]), range(1, len(shape) + 1)
    ),
    is_minimal=True,
    row_norms=helmert.residual_norms,
    extreme_norms=lambda n: (2, n * (n - 1)),
)

CENTRED: Final = Basis(
    name="centred",
    laws=frozenset({LAPLACE}),
    rows=lambda n: n,
    l1_column=lambda n: 2 * _halves(n),
    l2_column=_halves,
    column_product=lambda n: Fraction(-1, n),
    stretch=lambda n: n,
    forward=_centre,
    adjoint=_centred,
    l1_change=_centred_change,
)

BASES: Final = {basis.name: basis for basis in (MARGINAL, FOURIER, HELMERT, CENTRED)}


def kernel(basis: Basis, measured: Family, weights: Floats, spaces: Family) -> Floats:
    """K_C(weights) for each residual space C."""
    inside = basis.per_axis(basis.inside, measured.sizes)
    outside = basis.per_axis(basis.outside, measured.sizes)
    if not outside.any():  # a set sees its own space alone
        own = np.concatenate([measured.find(level) for level in spaces.levels])
        return np.where(own >= 0, (weights / measured.cells * measured.product(inside))[own], 0.0)
    if (inside == 1).all() and (outside == 1).all():
        return measured.sum_over_supersets(spaces, weights / measured.cells)
    return measured.sum_over_supersets(spaces, weights / measured.cells, inside, outside)


def dimensions(spaces: Family) -> Floats:
    """m_C, the dimension of each residual space."""
    return spaces.product(spaces.sizes - 1)


def rank(family: Family) -> int:
    """The dimensions of the residual spaces below a family, added up."""
    return round(float(dimensions(family.closure).sum()))


def residual_variances(
    basis: Basis, measured: Family, variances: Floats, weights: Floats | None, spaces: Family
) -> Floats:
    """v_C for each space; infinite where nothing measured sees it, zero where known exactly or without dimension.

    Without weights it is generalised least squares, whose formula has no squares of very large or small numbers.
    """
    if weights is None:
        with np.errstate(divide="ignore"):
            return 1 / precisions(basis, measured, variances, spaces)
    exact = variances == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.where(exact, 0.0, weights)
        total = kernel(basis, measured, u, spaces)
        v = 1 / (spaces.cells * total)
        v *= kernel(basis, measured, u**2 * variances, spaces) / total
    v[total == 0] = np.inf
    v[_known(basis, measured, variances, spaces)] = 0.0
    return v


def precisions(basis: Basis, measured: Family, variances: Floats, spaces: Family) -> Floats:
    """1 / v_C under generalised least squares: what independent measurements say of a space adds up.

    Zero where nothing measured sees the space, infinite where it is known exactly or has no dimension.

    >>> precisions(MARGINAL, Family.of([(0,)], (2, 3)), np.array([0.5]), Family.of([(), (0,), (1,)], (2, 3))).tolist()
    [1.0, 2.0, 0.0]
    """
    with np.errstate(divide="ignore"):
        seen = kernel(basis, measured, np.where(variances > 0, 1 / variances, 0.0), spaces)
    return np.where(_known(basis, measured, variances, spaces), np.inf, spaces.cells * seen)


def _known(basis: Basis, measured: Family, variances: Floats, spaces: Family) -> Bools:
    """The spaces of which nothing is left to be learnt: measured without noise, or without dimension."""
    exact = (variances == 0).astype(np.float64)
    public = kernel(basis, measured, exact, spaces) > 0 if exact.any() else False
    return np.asarray((dimensions(spaces) == 0) | public)


def cell_variances(marginals: Family, spaces: Family, v: Floats) -> Floats:
    """The mean cell variance of each marginal; infinite where it cannot be answered."""
    return marginals.sum_over_subsets(spaces, dimensions(spaces) * spaces.cells * v) / marginals.cells**2


def with_dimension(spaces: Family) -> Family:
    """The spaces without those of dimension zero: an attribute of one value varies with nothing."""
    return Family(spaces.sizes, [level[(spaces.sizes[level] > 1).all(axis=1)] for level in spaces.levels])
