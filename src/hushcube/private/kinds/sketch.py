"""Sketches: exact signed sums of one table's counts in each bucket, with noise alike for all of them."""

from __future__ import annotations

import numpy as np

from hushcube.designs import SketchDesign
from hushcube.private.engines import ExactCounts
from hushcube.private.kinds.base import Ints, Report, noise, noisy_values
from hushcube.private.noise import Entropy


@noisy_values.register
def _(design: SketchDesign, counts: ExactCounts, entropy: Entropy, report: Report) -> tuple[Ints, ...]:
    table = counts.tables(np.array([design.marginal], dtype=np.int32).reshape(1, len(design.marginal))).reshape(-1)
    numbers = np.empty((design.groups, design.buckets), dtype=np.int64)
    for r, (bucket, sign) in enumerate(design.throws):
        # floats add up fewer than 2^53 people without rounding
        exact = np.bincount(bucket, weights=sign * table, minlength=design.buckets).astype(np.int64)
        numbers[r] = exact + noise(design, [float(design.budgets[r])], design.buckets, entropy)[0]
        report("measuring", (r + 1) / design.groups)
    return (numbers,)
