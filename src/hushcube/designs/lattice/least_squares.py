"""Consistent tables by weighted least squares, diagonal over the residual spaces.

With t_B the measured set B brought back to a table on B's attributes (the adjoint of its rows) and weights u_B,

    coefficient_C = sum_{B >= C}  u_B / cells(B)  coefficient_C(t_B)  /  K_C(u)                  [lattice/variances.py]

u = 1/variance is generalised least squares, the best linear unbiased answer; u = 1 the papers' ordinary one.
No vector of the domain's size appears, and no matrix is inverted.       [Ding et al. 2011, (9)-(14), for any noise]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.lattice.errors import recovery_weights
from hushcube.lattice import hadamard, helmert
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.family import Batch, Family
from hushcube.lattice.projection import Projection
from hushcube.lattice.variances import kernel
from hushcube.model.measurement import Measurement

Floats = NDArray[np.float64]
_CHUNK: Final = 2**18


def estimate(design: LatticeDesign, measurement: Measurement, spaces: Family | None = None) -> Coefficients:
    """The coefficients of every residual space of the workload, or of the given ones (zero where none was measured)."""
    if design.basis.name == "helmert":  # each space was measured once, in this very basis
        return Coefficients(design.measured, measurement.values)
    spaces = design.request.spaces if spaces is None else spaces
    result = _zeros(spaces)
    weights = recovery_weights(design)
    scale = kernel(design.basis, design.measured, weights, spaces)
    shares = weights / design.measured.cells
    for batch, values in zip(design.measured.batches, measurement.values, strict=True):
        for part in batch.parts(_CHUNK):
            _accumulate(batch, part, _adjoint(design, values[part], batch.shape), shares, _inverse(scale), result)
    _insert_public_total(design, measurement, result)
    return result


def combine(tables: Family, values: Sequence[Floats], weights: Floats, spaces: Family) -> Coefficients:
    """The coefficients of the consistent tables nearest to given ones: sum_A weights_A ||table_A - given_A||² is least.

    `values` holds one array (tables, *shape) for each batch of the family.
    """
    return Projection(tables, weights, spaces).coefficients(values)


def _zeros(spaces: Family) -> Coefficients:
    return Coefficients(spaces, tuple(np.zeros((len(b.ids), *(n - 1 for n in b.shape))) for b in spaces.batches))


def _inverse(scale: Floats) -> Floats:
    return np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)


def _accumulate(
    batch: Batch, part: slice, tables: Floats, shares: Floats, inverse: Floats, result: Coefficients
) -> None:
    coefficients = helmert.forward(tables, range(1, len(batch.shape) + 1))
    share = shares[batch.ids[part]]
    level: list[NDArray[np.int32]] = [np.zeros((0, k), np.int32) for k in range(len(batch.shape))]
    # keeps the batch's order, which is sorted
    members = Family(result.spaces.sizes, [*level, batch.rows[part]])
    for pair in members.inclusions(result.spaces):
        if pair.kept.ndim == 1:
            chosen = coefficients[(pair.big, *_block(pair.kept.tolist()))]
            factor = (share[pair.big] * inverse[pair.small]).reshape(-1, *[1] * (chosen.ndim - 1))
            result.add(pair.small, chosen * factor)
            continue
        for big, small, kept in zip(pair.big.tolist(), pair.small.tolist(), pair.kept.tolist(), strict=True):
            chosen = coefficients[(big, *_block(kept))]
            result.add(np.array([small]), chosen[None] * (share[big] * inverse[small]))


def _adjoint(design: LatticeDesign, values: NDArray[np.int64], shape: tuple[int, ...]) -> Floats:
    """The measured numbers as tables on the set's attributes."""
    axes = range(1, len(shape) + 1)
    numbers = values.astype(np.float64)
    if design.basis.name == "fourier":
        return hadamard.adjoint(numbers, shape, axes)
    if design.basis.name == "centred":  # the noise is centred with the rest; counts were multiplied by the sizes
        for axis in axes:
            numbers = (numbers - numbers.mean(axis=axis, keepdims=True)) / shape[axis - 1]
    return numbers


def _insert_public_total(design: LatticeDesign, measurement: Measurement, result: Coefficients) -> None:
    total = design.measured.ids([()])[0]
    if total >= 0 and not np.isfinite(design.budgets[total]):
        result.blocks[0][0] = measurement.values[0][0]


def _block(kept: list[bool]) -> tuple[slice | int, ...]:
    return tuple(slice(1, None) if inside else 0 for inside in kept)
