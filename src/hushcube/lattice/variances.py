"""Variances on residual spaces and of cells, from the noise of what was measured.

A linear recovery estimates each residual space V_C by combining the measured sets B >= C with weights u_B
(u = 1/variance: generalised least squares; u = 1: ordinary). With the kernel

    K_C(u) = sum_{B >= C}  u_B / cells(B)  prod_C inside_i  prod_{B - C} outside_i         [lattice/basis.py]

the estimate of a Helmert coefficient of V_C with squared row norm h has variance h v_C,

    v_C = K_C(u² variance) / (cells(C) K_C(u)²)        (= 1/(cells(C) K_C(1/variance)) for generalised least squares)

and every cell of marginal A has variance  sum_{C <= A} m_C cells(C) v_C / cells(A)²       [docs/maths.md, 7].
"""

from __future__ import annotations

import numpy as np

from hushcube.lattice.basis import Basis
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats


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


def residual_variances(
    basis: Basis, measured: Family, variances: Floats, weights: Floats | None, spaces: Family
) -> Floats:
    """v_C for each space; infinite where nothing measured sees it, zero where known exactly or without dimension.

    Without weights it is generalised least squares, whose formula has no squares of very large or small numbers.
    """
    exact = variances == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.where(exact, 0.0, 1 / variances if weights is None else weights)
        total = kernel(basis, measured, u, spaces)
        v = 1 / (spaces.cells * total)
        if weights is not None:
            v *= kernel(basis, measured, u**2 * variances, spaces) / total
    v[total == 0] = np.inf
    if exact.any():
        v[kernel(basis, measured, exact.astype(np.float64), spaces) > 0] = 0.0
    v[dimensions(spaces) == 0] = 0.0
    return v


def cell_variances(marginals: Family, spaces: Family, v: Floats) -> Floats:
    """The mean cell variance of each marginal; infinite where it cannot be answered."""
    return marginals.sum_over_subsets(spaces, dimensions(spaces) * spaces.cells * v) / marginals.cells**2
