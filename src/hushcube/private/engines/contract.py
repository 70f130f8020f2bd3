"""What an engine promises: it turns rows into exact tables of integers, and does nothing else.

What an engine returns is exact, hence secret: it never leaves `hushcube.private`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Ints
from hushcube.model.measure import Measure
from hushcube.model.schema import Schema

ReadShare = Callable[[float], None]
"""Called now and then with the fraction of the rows that has been read."""


BadRows = Literal["refuse", "missing"]
"""What to do about rows that cannot be read or do not fit the schema."""


class ExactCounts(ABC):
    """The exact tables of one data set; counted already, or counted when asked for."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows were counted."""

    dropped: int = 0
    """How many rows were left out because a person had more than counts; for the owner of the data only."""
    bad: int = 0
    """How many rows could not be read and count as missing in every attribute; for the owner of the data only."""
    sums: Mapping[str, ExactCounts] = MappingProxyType({})
    """Of each measure asked for: tables of the sums of its integers over the same rows."""

    @abstractmethod
    def tables(self, marginals: NDArray[np.int32]) -> Ints:
        """The tables of (m, k) marginals of one shape, as (m, *shape); k = 0 gives (m, 1), the total."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: exact, not shown>"


class Engine(Protocol):
    """Whatever can count."""

    def count(
        self,
        schema: Schema,
        wanted: Sequence[NDArray[np.int32]],
        *,
        measures: Sequence[Measure] = (),
        progress: ReadShare | None = None,
    ) -> ExactCounts:
        """Read the rows once; `wanted` holds all marginals to be asked for, an (m, k) array for each k."""
        ...
