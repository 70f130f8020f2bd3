"""What a method ends with: the samples of every group, with their rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hushcube.model.arrays import Ints


@dataclass(frozen=True, eq=False)
class Refined:
    """For each group the rates of its samples, and the samples themselves, (samples, cells)."""

    rates: Sequence[tuple[float, ...]]
    values: Sequence[Ints]
    report: dict[str, Any] = field(default_factory=dict)
