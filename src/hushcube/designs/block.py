"""What a design measures, as data: blocks of integers that are exact sums of counts, with the noise that each gets.

    numbers = transform(exact tables of `marginals`) + noise         (rows, columns), independent draws for each number

Row i has the budget `budgets[i]`, an infinite one where its numbers are public and get no noise. Laplace noise has the
rate budget / stretch, where the integers are multiples of the rows that were paid for; Gaussian noise has the parameter
multiplier / (2 budget), one multiplier for each column. `private/blocks.py` carries all of them out.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Bools, Floats, Ints


class Transform(Protocol):
    """An integer linear map: no data, no randomness, no floats that could round."""

    def apply(self, tables: Ints) -> Ints:
        """Exact tables (marginals, *shape) to the integers that are measured, as many as rows times columns."""
        ...


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of numbers of one array of a measurement."""

    marginals: NDArray[np.int32]
    """The marginals of one shape whose exact tables are needed: rows of positions. One object is counted once."""
    transform: Transform
    sets: Ints
    """The measured set that each row belongs to."""
    budgets: Floats
    columns: int
    array: int = 0
    """Which array of the measurement the numbers belong to, and which of its lines."""
    lines: slice = field(default_factory=lambda: slice(None))
    stretch: int = 1
    multipliers: Ints | None = None

    @property
    def noisy(self) -> Bools:
        """Rows that get noise; the others are public."""
        return np.isfinite(self.budgets)
