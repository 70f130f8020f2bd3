"""What is asked of a strategy: a workload under a guarantee. Sizes are checked here, before any memory is taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import BadInput, TooLarge
from hushcube.lattice.family import Family
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload

Effort = Literal["low", "default", "high"]
EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
MAX_TABLE_CELLS: Final = 100_000_000
"""The largest single table that is measured or answered: 800 MB of 64-bit numbers."""
MAX_WORKLOAD_CELLS: Final = 2_000_000_000
"""The most cells of one release; they stream to disk."""


@dataclass(frozen=True)
class Request:
    """A workload (with its schema) under a guarantee."""

    workload: Workload
    privacy: Privacy
    effort: Effort = field(default="default", compare=False)
    """How long strategies that search may search; the decision does not remember it."""

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise BadInput("effort", f"{self.effort!r} is unknown", f"choose one of {', '.join(EFFORTS)}")
        # floats are exact below 2^53, far above the limits; what is refused is counted in Python integers
        if self.marginals.cells.max() > MAX_TABLE_CELLS:
            raise TooLarge(
                "workload, largest marginal", max(map(self.schema.cells, self.workload.marginals)), MAX_TABLE_CELLS
            )
        if self.marginals.cells.sum() > MAX_WORKLOAD_CELLS:
            raise TooLarge("workload", self.workload.cells, MAX_WORKLOAD_CELLS)

    @property
    def schema(self) -> Schema:
        """The declared domain."""
        return self.workload.schema

    @cached_property
    def marginals(self) -> Family:
        """The marginals asked for."""
        return Family.of(self.workload.marginals, self.schema.sizes)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """The weights a_A, in the family's order."""
        result = np.empty(len(self.workload))
        result[self.marginals.ids(self.workload.marginals)] = self.workload.weights
        return result

    @property
    def spaces(self) -> Family:
        """The residual spaces seen by the workload."""
        return self.marginals.closure
