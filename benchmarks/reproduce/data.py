"""The data of the experiments: the shared files where they are, and declared stand-ins of the same sizes where not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.datasets import adult8_schema, nltcs_schema, shared
from tests.populations import ADULT8, generated

from hushcube import Attribute, Schema
from hushcube.model.arrays import Ints

ADULT_PEOPLE, NLTCS_PEOPLE = 32_561, 21_574


@dataclass(frozen=True, eq=False)
class Data:
    """People, the schema that describes them, and whether they are made up in place of the paper's."""

    name: str
    schema: Schema
    people: pa.Table
    stand_in: bool

    def first(self, attributes: int | None) -> Data:
        """The first attributes only; all of them if none is given."""
        return self if attributes is None else _first(self, attributes)

    @property
    def codes(self) -> Ints:
        """People as positions in the schema's labels: (people, attributes)."""
        places = [{label: i for i, label in enumerate(a.labels)} for a in self.schema.attributes]
        return np.array(
            [[at[str(v)] for v in c.to_pylist()] for at, c in zip(places, self.people.columns, strict=True)]
        ).T


@cache
def _first(data: Data, attributes: int) -> Data:
    schema = Schema(data.schema.attributes[:attributes], data.schema.name)
    return Data(data.name, schema, data.people.select(list(schema.names)), data.stand_in)


def present(name: str) -> bool:
    """Whether a file of the shared data is there."""
    try:
        return shared(name).is_file()
    except pytest.skip.Exception:
        return False


@cache
def adult() -> Data:
    """The 32,561 people of the Adult training set with the papers' eight attributes."""
    if present("adult8.parquet"):
        return Data("Adult", adult8_schema(), pq.read_table(shared("adult8.parquet")), stand_in=False)
    made = generated(ADULT_PEOPLE, ADULT8.sizes, seed=8)
    return Data("Adult", ADULT8, made.rename_columns(list(ADULT8.names)), stand_in=True)


@cache
def nltcs() -> Data:
    """The sixteen indicators of the National Long-Term Care Survey."""
    if present("nltcs.parquet"):
        return Data("NLTCS", nltcs_schema(), pq.read_table(shared("nltcs.parquet")), stand_in=False)
    schema = Schema(tuple(Attribute(name=f"a{i}", codes=2) for i in range(16)), "nltcs")
    return Data("NLTCS", schema, generated(NLTCS_PEOPLE, schema.sizes, seed=16), stand_in=True)


@cache
def adult_and_more() -> Data:
    """Adult with two more dimensions of four random values each [Ding et al. 2011, Exp-IV]."""
    base = adult()
    random = np.random.default_rng(2011)
    people, attributes = base.people, list(base.schema.attributes)
    for name in ("extra1", "extra2"):
        people = people.append_column(name, pa.array(random.integers(0, 4, people.num_rows, dtype=np.uint8)))
        attributes.append(Attribute(name=name, codes=4))
    return Data("Adult and more", Schema(tuple(attributes), "adult10"), people, base.stand_in)


@cache
def even(dimensions: int, cardinality: int) -> Schema:
    """Dimensions of equal cardinality [Ding et al. 2011, Exp-V]; its uniform people are not drawn, for errors are
    those on empty tables."""
    return Schema(tuple(Attribute(name=f"a{i}", codes=cardinality) for i in range(dimensions)), f"even{cardinality}")


DATA: dict[str, Callable[[], Data]] = {"Adult": adult, "NLTCS": nltcs}
