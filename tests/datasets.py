"""The one way by which tests and benchmarks find the shared real data."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema

ROOT = Path(__file__).resolve().parent.parent
EARLIER = ROOT / "tests" / "unit" / "bundle" / "earlier"
"""Releases and plan files as earlier versions wrote them, with seeded noise."""


def shared(name: str) -> Path:
    """A file of the shared data; the test is skipped where that is not there.

    It is looked for in `shared/data` beside the project's folder, or where HUSHCUBE_SHARED_DATA says.
    """
    folder = Path(os.environ.get("HUSHCUBE_SHARED_DATA", ROOT.parent / "shared" / "data"))
    path = folder / name
    if not path.is_file():
        pytest.skip(f"the shared data is not here: no {name} in {folder}; set HUSHCUBE_SHARED_DATA")
    return path


def adult8_schema() -> Schema:
    """The eight categorical attributes of Adult: sizes 9, 16, 7, 15, 6, 5, 2, 2."""
    import pyarrow.parquet as pq

    table = pq.read_table(shared("adult8.parquet"))
    attributes = (
        Attribute(name=name, values=tuple(sorted(table.column(name).unique().to_pylist())))
        for name in table.column_names
    )
    return Schema(tuple(attributes), "adult8")


def nltcs_schema() -> Schema:
    """The sixteen indicators of NLTCS, 0 or 1."""
    import pyarrow.parquet as pq

    names = pq.read_schema(shared("nltcs.parquet")).names
    return Schema(tuple(Attribute(name=name, codes=2) for name in names), "nltcs")


def coded(name: str, schema: Schema) -> np.ndarray:
    """The people of a shared file as positions in the schema's labels: (people, attributes)."""
    import pyarrow.parquet as pq

    table = pq.read_table(shared(name))
    places = [{label: i for i, label in enumerate(a.labels)} for a in schema.attributes]
    return np.array([[at[str(v)] for v in c.to_pylist()] for at, c in zip(places, table.columns, strict=True)]).T
