"""The step from exact counts to noisy integers, which every kind of plan takes in its own way."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from hushcube.plan.plan import Plan
from hushcube.private.engines import ExactCounts
from hushcube.private.noise import Entropy

Ints = NDArray[np.int64]
Report = Callable[[str, float], None]
"""Called now and then with the stage of the work and the share of it that is done."""


@singledispatch
def noisy_values(plan: Plan, counts: ExactCounts, entropy: Entropy, report: Report) -> tuple[Ints, ...]:
    """Exact integers plus noise, in the plan's shapes."""
    raise NotImplementedError(type(plan).__name__)
