"""Sketches: exact signed sums of one table's counts in each bucket, with noise alike for all of them."""

from __future__ import annotations

import numpy as np

from hushcube.plan.kinds import SketchPlan
from hushcube.private.engines import ExactCounts
from hushcube.private.kinds.base import Ints, Report, noise, noisy_values
from hushcube.private.noise import Entropy


@noisy_values.register
def _(plan: SketchPlan, counts: ExactCounts, entropy: Entropy, report: Report) -> tuple[Ints, ...]:
    table = counts.tables(np.array([plan.marginal], dtype=np.int32).reshape(1, len(plan.marginal))).reshape(-1)
    numbers = np.empty((plan.groups, plan.buckets), dtype=np.int64)
    for r, (bucket, sign) in enumerate(plan.throws):
        # floats add up fewer than 2^53 people without rounding
        exact = np.bincount(bucket, weights=sign * table, minlength=plan.buckets).astype(np.int64)
        numbers[r] = exact + noise(plan, [float(plan.budgets[r])], plan.buckets, entropy)[0]
        report("measuring", (r + 1) / plan.groups)
    return (numbers,)
