"""Count, transform, add noise: the one way from rows to a Measurement.

Every measured number is an exact integer until its noise is in. The plan has been checked to cost what it promises
(`Plan` refuses to exist otherwise), and decides alone which noise is drawn: nothing here depends on the data but the
counts themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import DataError
from hushcube.lattice import helmert
from hushcube.lattice.family import Batch
from hushcube.model.measurement import Measurement
from hushcube.plan.plan import Plan
from hushcube.private.engines import Engine
from hushcube.private.noise import Entropy, SystemEntropy, discrete_gaussian, discrete_laplace

Ints = NDArray[np.int64]
Progress = Callable[[str, float], None]

MAX_ROWS: Final = 2**34
"""Tables have at most 10^8 cells, so no transform of this many rows can overflow 64 bits."""
_CHUNK: Final = 2**18
"""Cells handled at once: large enough to batch, small enough to stay out of the way."""


def measure(
    plan: Plan, engine: Engine, *, entropy: Entropy | None = None, progress: Progress | None = None
) -> Measurement:
    """The noisy answers of a plan on the data behind an engine, with noise from the operating system unless given."""
    entropy = SystemEntropy() if entropy is None else entropy
    report = progress or (lambda _stage, _share: None)
    report("counting", 0.0)
    counts = engine.count(plan.schema, plan.measured.levels, progress=lambda share: report("counting", share))
    if counts.rows > MAX_ROWS:
        raise DataError("data", "there are more than 2^34 rows", "release parts of the data separately")
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
    return Measurement(plan.digest, tuple(values), private=entropy.private)


def _noise(plan: Plan, batch: Batch, part: slice, entropy: Entropy) -> Ints:
    """Noise for some sets of one shape; none for answers that are public."""
    shares = plan.budgets[batch.ids[part]]
    numbers = int(np.prod([plan.basis.rows(n) for n in batch.shape], dtype=np.int64))
    noise = np.zeros((len(shares), numbers), dtype=np.int64)
    noise[np.isfinite(shares)] = _draw(plan, batch.shape, shares[np.isfinite(shares)].tolist(), numbers, entropy)
    return noise


def _draw(plan: Plan, shape: tuple[int, ...], budgets: list[float], numbers: int, entropy: Entropy) -> Ints:
    if plan.law == "laplace":
        stretch = int(np.prod([plan.basis.stretch(n) for n in shape], dtype=np.int64))
        rates = {b: Fraction(b) / stretch for b in set(budgets)}
        return discrete_laplace([rates[b] for b in budgets], numbers, entropy)
    multipliers = helmert.residual_norms(shape).ravel() if plan.basis.name == "helmert" else np.ones(numbers, np.int64)
    variances = {b: 1 / (2 * Fraction(b)) for b in set(budgets)}
    return discrete_gaussian([variances[b] for b in budgets], multipliers, entropy)
