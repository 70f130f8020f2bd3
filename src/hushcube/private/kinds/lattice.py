"""Marginals and parts of marginals: tables of one shape are counted, transformed and given their noise together."""

from __future__ import annotations

from typing import Final

import numpy as np

from hushcube.designs import LatticeDesign
from hushcube.lattice import helmert
from hushcube.lattice.family import Batch
from hushcube.private.engines import ExactCounts
from hushcube.private.kinds.base import Ints, Report, noise, noisy_values
from hushcube.private.noise import Entropy

_CHUNK: Final = 2**18
"""Cells handled at once: large enough to batch, small enough to stay out of the way."""


@noisy_values.register
def _(design: LatticeDesign, counts: ExactCounts, entropy: Entropy, report: Report) -> tuple[Ints, ...]:
    values = []
    done, total = 0, float(design.measured.cells.sum())
    for batch in design.measured.batches:
        noisy = np.empty((len(batch.ids), *map(design.basis.rows, batch.shape)), dtype=np.int64)
        for part in batch.parts(_CHUNK):
            exact = design.basis.forward(
                counts.tables(batch.rows[part]).reshape(-1, *batch.shape), range(1, len(batch.shape) + 1)
            )
            noisy[part] = exact + _noise(design, batch, part, entropy).reshape(exact.shape)
            done += exact.size
            report("measuring", min(done / total, 1.0))
        values.append(noisy)
    return tuple(values)


def _noise(design: LatticeDesign, batch: Batch, part: slice, entropy: Entropy) -> Ints:
    """Noise for some sets of one shape; none for answers that are public."""
    shares = design.budgets[batch.ids[part]]
    columns = int(np.prod([design.basis.rows(n) for n in batch.shape], dtype=np.int64))
    stretch = int(np.prod([design.basis.stretch(n) for n in batch.shape], dtype=np.int64))
    norms = helmert.residual_norms(batch.shape).ravel() if design.basis.name == "helmert" else None
    result = np.zeros((len(shares), columns), dtype=np.int64)
    noisy = np.isfinite(shares)
    result[noisy] = noise(design, shares[noisy].tolist(), columns, entropy, stretch=stretch, multipliers=norms)
    return result
