"""The rows of a matrix: exact integer sums of one table's counts, each with noise of its row's budget."""

from __future__ import annotations

import numpy as np

from hushcube.designs import MatrixDesign
from hushcube.private.engines import ExactCounts
from hushcube.private.kinds.base import Ints, Report, noise, noisy_values
from hushcube.private.noise import Entropy


@noisy_values.register
def _(design: MatrixDesign, counts: ExactCounts, entropy: Entropy, report: Report) -> tuple[Ints, ...]:
    numbers = row_sums(design, counts)
    noisy = ~design.public
    numbers[noisy] += noise(design, design.row_budgets[noisy].tolist(), 1, entropy)[:, 0]
    report("measuring", 1.0)
    return (numbers,)


def row_sums(design: MatrixDesign, counts: ExactCounts) -> Ints:
    """The exact answers of the rows."""
    table = counts.tables(np.array([design.marginal], dtype=np.int32).reshape(1, len(design.marginal))).reshape(-1)
    columns, values, row_of = design.rows.arrays
    numbers = np.zeros(len(design.rows), dtype=np.int64)
    np.add.at(numbers, row_of, values.astype(np.int64) * table[columns])  # at most 2^16 * 2^34 rows: no overflow
    return numbers
