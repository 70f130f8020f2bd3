"""Marginals and parts of marginals: tables of one shape are counted, transformed and given their noise together."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.lattice import helmert
from hushcube.lattice.family import Batch
from hushcube.plan.kinds import LatticePlan
from hushcube.private.engines import ExactCounts
from hushcube.private.kinds.base import Report, noisy_values
from hushcube.private.noise import Entropy, discrete_gaussian, discrete_laplace

Ints = NDArray[np.int64]
_CHUNK: Final = 2**18
"""Cells handled at once: large enough to batch, small enough to stay out of the way."""


@noisy_values.register
def _(plan: LatticePlan, counts: ExactCounts, entropy: Entropy, report: Report) -> tuple[Ints, ...]:
    values = []
    done, total = 0, float(plan.measured.cells.sum())
    for batch in plan.measured.batches:
        noisy = np.empty((len(batch.ids), *map(plan.basis.rows, batch.shape)), dtype=np.int64)
        for part in batch.parts(_CHUNK):
            exact = plan.basis.forward(
                counts.tables(batch.rows[part]).reshape(-1, *batch.shape), range(1, len(batch.shape) + 1)
            )
            noisy[part] = exact + _noise(plan, batch, part, entropy).reshape(exact.shape)
            done += exact.size
            report("measuring", min(done / total, 1.0))
        values.append(noisy)
    return tuple(values)


def _noise(plan: LatticePlan, batch: Batch, part: slice, entropy: Entropy) -> Ints:
    """Noise for some sets of one shape; none for answers that are public."""
    shares = plan.budgets[batch.ids[part]]
    numbers = int(np.prod([plan.basis.rows(n) for n in batch.shape], dtype=np.int64))
    noise = np.zeros((len(shares), numbers), dtype=np.int64)
    noise[np.isfinite(shares)] = _draw(plan, batch.shape, shares[np.isfinite(shares)].tolist(), numbers, entropy)
    return noise


def _draw(plan: LatticePlan, shape: tuple[int, ...], budgets: list[float], numbers: int, entropy: Entropy) -> Ints:
    if plan.law == "laplace":
        stretch = int(np.prod([plan.basis.stretch(n) for n in shape], dtype=np.int64))
        rates = {b: Fraction(b) / stretch for b in set(budgets)}
        return discrete_laplace([rates[b] for b in budgets], numbers, entropy)
    multipliers = helmert.residual_norms(shape).ravel() if plan.basis.name == "helmert" else np.ones(numbers, np.int64)
    variances = {b: 1 / (2 * Fraction(b)) for b in set(budgets)}
    return discrete_gaussian([variances[b] for b in budgets], multipliers, entropy)
