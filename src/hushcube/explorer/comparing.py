"""A sum of any cells of a table with its interval, and two such sums compared.                 [bundle/comparing.py]"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hushcube.bundle.comparing import compared_groups
from hushcube.bundle.estimate import Estimate
from hushcube.bundle.release import Release
from hushcube.bundle.tables import combined
from hushcube.errors import QueryError
from hushcube.model.arrays import Floats
from hushcube.model.schema import COUNT
from hushcube.model.workload import Quantity


def compared(
    release: Release, word: str, quantity: Quantity, cells: Sequence[int], versus: Sequence[int]
) -> dict[str, Any]:
    """The sum of some cells of a table, and where there are others, theirs, the difference and the ratio."""
    shape, counts = release.table(word).values.shape, release.parts[COUNT]
    (table, first), (_, second) = (counts.of_cells(word, _ones(shape, chosen)) for chosen in (cells, versus))
    if versus:
        found = compared_groups(release.parts, release.schema, quantity, table, (first, second), ("", ""))
        told = {"sum": found.first, "versus": found.second, "difference": found.difference, "ratio": found.ratio}
        return {name: _told(estimate) for name, estimate in told.items()}
    estimates = (release.parts[name].sum_of(table, first) for name in (COUNT, quantity.part))
    value, error, margin, ends = combined(quantity, release.schema, *estimates)
    low, high = ends or (value - margin, value + margin)
    own = Estimate(float(value), float(error), float(low), float(high))
    return {"sum": _told(own), "versus": None, "difference": None, "ratio": None}


def _ones(shape: tuple[int, ...], chosen: Sequence[int]) -> Floats:
    weights, size = np.zeros(shape), math.prod(shape)
    if len(set(chosen)) != len(chosen) or any(not 0 <= at < size for at in chosen):
        raise QueryError("cells", "are not numbers of cells, each once", f"give numbers from 0 to {size - 1:,}")
    weights.ravel()[list(chosen)] = 1.0
    return weights


def _told(estimate: Estimate) -> dict[str, float | None]:
    """Numbers; none where they are not known. An interval that is open, or has a gap, is none."""
    numbers = {name: getattr(estimate, name) for name in ("value", "std_error", "low", "high")}
    if estimate.gap is not None or not math.isfinite(estimate.high - estimate.low):
        numbers |= {"low": math.nan, "high": math.nan}
    return {name: number if math.isfinite(number) else None for name, number in numbers.items()}
