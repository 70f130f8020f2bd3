"""Which cuboids can be read from which tables at which magnification of the noise: the material of selections.

    mag(A, C) = cells(C) / cells(A) for A inside C; table C serves A at threshold t where mag(A, C) <= t
                                                                                       [Ding et al. 2011, (1) and (4)]

Attributes are bits, sets of them are bit masks, magnifications are integers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from hushcube.model.arrays import Bools, Ints

Flags = Bools

FAR: Final = np.iinfo(np.int64).max
"""The magnification of a cuboid that is not inside."""


class Coverage(ABC):
    """Cuboids that are asked for, tables that may be measured (numbered by rising mask), and how they serve."""

    masks: Sequence[int]
    cells: Ints
    """Of the cuboids."""
    tables: Sequence[int]
    """Masks."""
    table_cells: Ints
    fits: Flags
    """The tables that may be measured."""

    def __len__(self) -> int:
        return len(self.cells)

    @property
    @abstractmethod
    def thresholds(self) -> Ints:
        """The distinct magnifications, the largest first."""

    @abstractmethod
    def number(self, mask: int) -> int:
        """The number of the table with a mask."""

    @abstractmethod
    def holds(self, table: int, cuboids: Ints) -> Flags:
        """Which of some cuboids lie inside a table."""

    @abstractmethod
    def above(self, cuboids: Ints) -> Flags:
        """The tables that may be measured and hold all of some cuboids."""

    @abstractmethod
    def gains(self, cuboids: Ints, weights: Ints, threshold: int) -> Ints:
        """How much of the weight of some cuboids each table serves."""

    @abstractmethod
    def falling_gains(self, weights: Ints, thresholds: Iterable[int]) -> Iterator[tuple[int, Ints]]:
        """The same for all cuboids (and their weights) at falling thresholds; each array is good until the next."""

    def magnifications(self, table: int) -> Ints:
        """mag(A, C) of all cuboids A for one table C."""
        held = self.holds(table, np.arange(len(self)))
        return np.where(held, self.table_cells[table] // self.cells, FAR)

    def serves(self, table: int, cuboids: Ints, threshold: int) -> Flags:
        """Which of some cuboids a table serves."""
        near: Flags = self.table_cells[table] <= self.cells[cuboids] * threshold
        return near & self.holds(table, cuboids)


def counted(at: Ints, weights: Ints, length: int) -> Ints:
    """Weights summed by number: floats, exact below 2^53."""
    return np.bincount(at, weights, length).astype(np.int64)
