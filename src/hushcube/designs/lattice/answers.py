"""Tables from marginals and parts of marginals: by weighted least squares, or without recovery.

Least squares is diagonal over the residual spaces. With t_B the measured set B brought back to a table on B's
attributes (the adjoint of its rows) and weights u_B,

    coefficient_C = sum_{B >= C}  u_B / cells(B)  coefficient_C(t_B)  /  K_C(u)                      [lattice/basis.py]

u = 1/variance is generalised least squares, the best linear unbiased answer; u = 1 the papers' ordinary one.
No vector of the domain's size appears, and no matrix is inverted.       [Ding et al. 2011, (9)-(14), for any noise]

Without recovery, as in the papers' baselines, each table comes from its own noisy numbers; tables may disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.lattice import hadamard, helmert
from hushcube.lattice.basis import kernel
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.family import Batch, Family
from hushcube.model.arrays import Floats, position_rows
from hushcube.model.noise import Measurement

if TYPE_CHECKING:
    from hushcube.designs.lattice.design import LatticeDesign

_CHUNK: Final = 2**18


def estimate(design: LatticeDesign, measurement: Measurement, spaces: Family | None = None) -> Coefficients:
    """The coefficients of every residual space of the workload, or of the given ones (zero where none was measured)."""
    if design.basis.is_minimal:  # each space was measured once, in the basis of the coefficients
        return Coefficients(design.measured, measurement.values)
    spaces = design.request.spaces if spaces is None else spaces
    result = _zeros(spaces)
    weights = design.errors.recovery_weights()
    scale = kernel(design.basis, design.measured, weights, spaces)
    shares = weights / design.measured.cells
    for batch, values in zip(design.measured.batches, measurement.values, strict=True):
        for part in batch.parts(_CHUNK):
            tables = design.basis.adjoint(values[part].astype(np.float64), batch.shape)
            _accumulate(batch, part, tables, shares, _inverse(scale), result)
    _insert_public_total(design, measurement, result)
    return result


def _zeros(spaces: Family) -> Coefficients:
    return Coefficients(spaces, tuple(np.zeros((len(b.ids), *(n - 1 for n in b.shape))) for b in spaces.batches))


def _inverse(scale: Floats) -> Floats:
    return np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)


def _accumulate(
    batch: Batch, part: slice, tables: Floats, shares: Floats, inverse: Floats, result: Coefficients
) -> None:
    coefficients = helmert.forward(tables, range(1, len(batch.shape) + 1))
    share = shares[batch.ids[part]]
    for pair in Family.of_rows(batch.rows[part], result.spaces.sizes).inclusions(result.spaces):
        if pair.kept.ndim == 1:
            chosen = coefficients[(pair.big, *_block(pair.kept.tolist()))]
            factor = (share[pair.big] * inverse[pair.small]).reshape(-1, *[1] * (chosen.ndim - 1))
            result.add(pair.small, chosen * factor)
            continue
        for big, small, kept in zip(pair.big.tolist(), pair.small.tolist(), pair.kept.tolist(), strict=True):
            chosen = coefficients[(big, *_block(kept))]
            result.add(np.array([small]), chosen[None] * (share[big] * inverse[small]))


def _insert_public_total(design: LatticeDesign, measurement: Measurement, result: Coefficients) -> None:
    total = design.measured.ids([()])[0]
    if total >= 0 and not np.isfinite(design.budgets[total]):
        result.blocks[0][0] = measurement.values[0][0]


def _block(kept: list[bool]) -> tuple[slice | int, ...]:
    return tuple(slice(1, None) if inside else 0 for inside in kept)


class DirectTables:
    """Sums of cells of one measured table."""

    def __init__(self, design: LatticeDesign, measurement: Measurement) -> None:
        self._measured = Coefficients(design.measured, measurement.values)
        self._family = design.request.marginals
        self._sources = design.errors.sources()[0]
        self._sets = list(design.measured)

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        result = np.empty((len(rows), *shape))
        for at, (row, number) in enumerate(zip(rows.tolist(), self._family.find(rows).tolist(), strict=True)):
            source = self._sets[self._sources[number]]
            table = self._measured.gather(position_rows(source))
            if table is None:
                raise LookupError("a source is a measured set")
            result[at] = table[0].sum(axis=tuple(axis for axis, i in enumerate(source) if i not in row))
        return result


class InverseFourier:
    """The inverse Hadamard transform, phantom codes dropped."""

    def __init__(self, design: LatticeDesign, measurement: Measurement) -> None:
        self._measured = Coefficients(design.measured, measurement.values)

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        codes = tuple(map(hadamard.padded, shape))
        axes = range(1, len(shape) + 1)
        tables = hadamard.transform(self._measured.assemble(rows, codes), axes) / np.prod(codes, dtype=np.float64)
        return tables[(slice(None), *(slice(0, n) for n in shape))]
