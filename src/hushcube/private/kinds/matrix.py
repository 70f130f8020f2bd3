"""The rows of a matrix: exact integer sums of one table's counts, each with noise of its row's budget."""

from __future__ import annotations

import numpy as np

from hushcube.plan.kinds import MatrixPlan
from hushcube.private.engines import ExactCounts
from hushcube.private.kinds.base import Ints, Report, noise, noisy_values
from hushcube.private.noise import Entropy


@noisy_values.register
def _(plan: MatrixPlan, counts: ExactCounts, entropy: Entropy, report: Report) -> tuple[Ints, ...]:
    numbers = row_sums(plan, counts)
    noisy = ~plan.public
    numbers[noisy] += noise(plan, plan.row_budgets[noisy].tolist(), 1, entropy)[:, 0]
    report("measuring", 1.0)
    return (numbers,)


def row_sums(plan: MatrixPlan, counts: ExactCounts) -> Ints:
    """The exact answers of the rows."""
    table = counts.tables(np.array([plan.marginal], dtype=np.int32).reshape(1, len(plan.marginal))).reshape(-1)
    columns, values, row_of = plan.rows.arrays
    numbers = np.zeros(len(plan.rows), dtype=np.int64)
    np.add.at(numbers, row_of, values.astype(np.int64) * table[columns])  # at most 2^16 * 2^34 rows: no overflow
    return numbers
