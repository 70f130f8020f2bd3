"""From a column of numbers to bounded integers: null, NaN and texts first, then clipping, then rounding.

Whatever a row holds, its integer lies within the measure's bounds: that alone is what the noise relies on. A value
that is missing, or is no number, counts as the measure says, or is refused. Infinities are clipped like large numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from hushcube.errors import DataError
from hushcube.model.arrays import Ints
from hushcube.model.measure import Measure
from hushcube.private.engines.coding import NUMBERS
from hushcube.private.engines.source import Opened

MOST: Final = 2**62
"""Sums of absolute integers that 64 bits hold with room to spare."""


def fetched(data: Opened, measure: Measure) -> str:
    """The SQL that fetches a measure as a double; NaN where it is missing or no number."""
    place = data.position(measure.source_column, f"measure {measure.name!r}")
    column, duckdb_type = f"#{place + 1}", str(data.relation.types[place].id)
    parsed = f"CAST({column} AS DOUBLE)" if duckdb_type in NUMBERS else f"TRY_CAST(CAST({column} AS VARCHAR) AS DOUBLE)"
    return f"COALESCE({parsed}, CAST('nan' AS DOUBLE))"


def quantised(array: pa.Array, measure: Measure) -> tuple[Ints, bool]:
    """The integers of some rows, and whether some were missing that must not be."""
    values = array.to_numpy(zero_copy_only=False).astype(np.float64, copy=True)
    missing = np.isnan(values)
    refused = bool(missing.any()) and measure.missing is None
    values[missing] = float(measure.center if measure.missing is None else measure.missing)
    low, high = (float(bound) for bound in measure.bounds)
    scaled = (np.clip(values, low, high) - float(measure.center)) / float(measure.resolution)
    return np.clip(np.rint(scaled), measure.low, measure.high).astype(np.int64), refused


def check_sums(measures: Sequence[Measure], rows: int) -> None:
    """Refuse sums that might not fit 64 bits."""
    for measure in measures:
        if rows * measure.largest >= MOST:
            raise DataError(f"measure {measure.name!r}", "its sums might not fit 64-bit integers", "give a larger step")
