"""Made-up rows of any number, the same each time: ten attributes, whose row it is, and two numbers.

Ten skewed attributes of ten values, `person` (three people for ten rows, so that some have many), `wage` and `nights`.
Pieces of a million rows are written as they are made: memory does not grow with the rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hushcube.model.attribute import Attribute
from hushcube.model.measure import Measure
from hushcube.model.privacy import Unit
from hushcube.model.schema import Schema

SIZES = (10,) * 10
NAMES = tuple(f"a{i}" for i in range(len(SIZES)))
MEASURES = (
    Measure(name="wage", bounds=(0, 200_000), resolution=100),
    Measure(name="nights", bounds=(0, 30)),
)
MOST = 4
"""Rows of a person that count, where people are bounded: a quarter of them have more."""
PIECE = 1_000_000
FIELDS = pa.schema(
    [
        *((name, pa.uint8()) for name in NAMES),
        ("person", pa.int64()),
        ("wage", pa.int32()),
        ("nights", pa.int32()),
    ]
)


def schema_of(*, unit=False):
    attributes = tuple(Attribute(name=name, codes=size) for name, size in zip(NAMES, SIZES, strict=True))
    return Schema(attributes, unit=Unit("person", MOST) if unit else None)


def write(path, rows, seed=7):
    """One Parquet file."""
    rng = np.random.default_rng(seed)
    people = max(1, rows * 3 // 10)
    skewed = [(size * (np.arange(256) / 256) ** 1.3).astype(np.uint8) for size in SIZES]
    with pq.ParquetWriter(path, FIELDS) as writer:
        for start in range(0, rows, PIECE):
            n = min(PIECE, rows - start)
            columns = [skew[rng.integers(0, 256, n, dtype=np.uint8)] for skew in skewed]
            columns.append(rng.integers(0, people, n))
            columns.append(rng.integers(0, 1_000, n, dtype=np.int32) ** 2 // 4)
            columns.append(rng.integers(0, 40, n, dtype=np.int32))
            writer.write_table(pa.table(columns, schema=FIELDS))
    return path
