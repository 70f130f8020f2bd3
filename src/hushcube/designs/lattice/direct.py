"""Answers without recovery, as the papers' baselines do: each from its own noisy numbers; tables may disagree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.lattice.errors import sources
from hushcube.lattice import hadamard
from hushcube.lattice.coefficients import Coefficients
from hushcube.model.marginal import position_rows
from hushcube.model.measurement import Measurement

Floats = NDArray[np.float64]


class DirectTables:
    """Sums of cells of one measured table."""

    def __init__(self, design: LatticeDesign, measurement: Measurement) -> None:
        self._measured = Coefficients(design.measured, measurement.values)
        self._family = design.request.marginals
        self._sources = sources(design)[0]
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
