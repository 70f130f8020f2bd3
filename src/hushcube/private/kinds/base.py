"""The step from exact counts to noisy integers, which every kind of plan takes in its own way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.design import Design
from hushcube.private.engines import ExactCounts
from hushcube.private.noise import Entropy, discrete_gaussian, discrete_laplace

Ints = NDArray[np.int64]
Report = Callable[[str, float], None]
"""Called now and then with the stage of the work and the share of it that is done."""


@singledispatch
def noisy_values(design: Design, counts: ExactCounts, entropy: Entropy, report: Report) -> tuple[Ints, ...]:
    """Exact integers plus noise, in the plan's shapes."""
    raise NotImplementedError(type(design).__name__)


def noise(
    design: Design,
    budgets: Sequence[float],
    columns: int,
    entropy: Entropy,
    *,
    stretch: int = 1,
    multipliers: Ints | None = None,
) -> Ints:
    """Independent draws, a row for each budget: of rate beta (Laplace) or variance parameter 1/(2 beta) (Gaussian).

    Laplace noise is wider by `stretch`, where the measured integers are multiples of the real rows; the Gaussian
    parameters are multiplied by `multipliers`, one for each column.
    """
    exact = {budget: Fraction(budget) for budget in set(budgets)}
    if design.law == "laplace":
        rates = {budget: value / stretch for budget, value in exact.items()}
        return discrete_laplace([rates[b] for b in budgets], columns, entropy)
    variances = {budget: 1 / (2 * value) for budget, value in exact.items()}
    every = np.ones(columns, np.int64) if multipliers is None else multipliers
    return discrete_gaussian([variances[b] for b in budgets], every, entropy)
