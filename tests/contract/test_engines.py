"""What every engine must do, over every kind of source; brute force in Python is the judge.

A new kind of source registers in SOURCES: a function from a folder and an Arrow table to the arguments of
`open_source`.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from datasets import adult8_schema, nltcs_schema, shared
from hushcube.errors import DataError
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.engines import open_source

LONG = "l" * 10_000
TEXTS = (
    "it's",
    'a"b',
    "x'); DROP TABLE t;--",
    "\u00e9",
    "e\u0301",
    LONG,
    "two\nlines",
    " lead",
    "NULL",
    "1",
    "\uff11",
)
HOSTILE = Schema(
    (
        Attribute(name="text", column='te"xt; --', values=TEXTS, missing="none", other="rest"),
        Attribute(name="age", range=(-3, 5), missing="none", other="rest"),
        Attribute(name="income", bins=(-1.5, 0, 10, 50), missing="none", other="rest"),
        Attribute(name="code", codes=4, missing="none", other="rest"),
        Attribute(name="flag", values=("true", "false"), missing="none"),
        Attribute(name="number", values=("30", "1", "-2"), other="rest", missing="1"),
    )
)
COLUMNS = {
    'te"xt; --': pa.array([*TEXTS, None, "?", "rest", "none", "E\u0301", "it's "]),
    "age": pa.array([-3, 5, 6, -4, None, 0, 0, 1, 2, 3, 4, 5, -1, -2, None, 2**62, -(2**62)], pa.int64()),
    "income": pa.array(
        [-1.5, -1.51, 0, 9.999, 10, 50, 50.1, math.inf, -math.inf, math.nan, None, 1, 2, 3, 4, 1e300, -0.0],
        pa.float64(),
    ),
    "code": pa.array([0, 1, 2, 3, 4, -1, None, 0.5, 1.0, 2.0, 3.5, math.nan, math.inf, 0, 1, 2, 3], pa.float64()),
    "flag": pa.array([True, False, None] * 5 + [True, True]),
    "number": pa.array([1, 30, -2, 0, None, 3, 31, 1, 1, 1, 30, 30, -2, None, 10, 300, 1], pa.int16()),
    "unused": pa.array(list(range(17))),
}
TABLE = pa.table(COLUMNS)


def write_csv(path: Path, table: pa.Table) -> Path:
    """As a person would write it: nothing for a null, true and false, NaN and inf."""

    def text(value):
        if value is None:
            return ""
        return str(value).lower() if isinstance(value, bool) else str(value)

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.column_names)
        writer.writerows([[text(value) for value in row] for row in zip(*table.to_pydict().values(), strict=True)])
    return path


def from_csv(folder, table):
    return {"source": str(write_csv(folder / "da'ta;x.csv", table))}


def from_parquet(folder, table):
    pq.write_table(table, folder / "da'ta;[x].parquet")
    return {"source": folder / "da'ta;[x].parquet"}


def from_parquet_glob(folder, table):
    (folder / "parts").mkdir(exist_ok=True)
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), folder / "parts" / "1.parquet")
    pq.write_table(table.slice(half).select(table.column_names[::-1]), folder / "parts" / "2.parquet")
    return {"source": f"parquet:{folder}/parts/*.parquet"}


def from_database(folder, table):
    (folder / "x.duckdb").unlink(missing_ok=True)
    with duckdb.connect(str(folder / "x.duckdb")) as connection:
        connection.execute('CREATE SCHEMA s; CREATE TABLE s."peo""ple; --" AS FROM "table"')
    return {"source": f'{folder}/x.duckdb#peo"ple; --'}


def from_query(folder, table):
    source = from_database(folder, table)["source"].partition("#")[0]
    return {"source": source, "query": 'SELECT * FROM s."peo""ple; --" ORDER BY ALL -- a comment'}


def from_query_alone(folder, table):
    pq.write_table(table, folder / "q.parquet")
    return {"source": None, "query": f"SELECT * FROM '{folder}/q.parquet';"}


def from_relation(folder, table):
    return {"source": duckdb.connect().from_arrow(table)}


def from_polars(folder, table):
    import polars

    return {"source": polars.from_arrow(table)}


SOURCES = {
    "csv": from_csv,
    "parquet": from_parquet,
    "parquet-glob": from_parquet_glob,
    "database": from_database,
    "query": from_query,
    "query-alone": from_query_alone,
    "relation": from_relation,
    "pandas": lambda folder, table: {"source": table.to_pandas()},
    "polars": from_polars,
    "polars-lazy": lambda folder, table: {"source": from_polars(folder, table)["source"].lazy()},
    "arrow": lambda folder, table: {"source": table},
    "arrow-stream": lambda folder, table: {"source": table.to_reader(max_chunksize=5)},
}


@pytest.fixture(params=SOURCES)
def make(request, tmp_path):
    return lambda table: open_source(**SOURCES[request.param](tmp_path, table))


def marginals(d, orders):
    return [
        np.array(list(itertools.combinations(range(d), k)), dtype=np.int32).reshape(-1 if k else 1, k) for k in orders
    ]


def place(attribute, value):
    """The position of a value: the contract in the plainest words."""
    missing, other = attribute.missing_position, attribute.other_position
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return missing
    if attribute.declared_by == "values":
        text = str(value).lower() if isinstance(value, bool) else str(value)
        found = attribute.position(text)
        return other if found is None else found
    if not isinstance(value, str) and attribute.declared_by == "bins":
        *edges, last = attribute.bins
        if value == last:
            return len(edges) - 1
        inside = [i for i, edge in enumerate(edges) if edge <= value]
        return inside[-1] if inside and value < last else other
    low, high = attribute.range or (0, (attribute.codes or 0) - 1)
    return int(value) - low if low <= value <= high and value == int(value) else other


def brute(schema, table, marginal):
    columns = [table.column(schema.attributes[i].source_column).to_pylist() for i in marginal]
    attributes = [schema.attributes[i] for i in marginal]
    cells = Counter(
        tuple(place(a, value) for a, value in zip(attributes, row, strict=True)) for row in zip(*columns, strict=True)
    )
    counts = np.zeros(schema.shape(marginal) or (1,), dtype=np.int64)
    for cell, n in cells.items():
        counts[cell] = n
    return counts if marginal else np.array([table.num_rows])


def check(engine, schema, table, orders=(0, 1, 2, 3)):
    wanted = marginals(len(schema), orders)
    counts = engine.count(schema, wanted)
    assert counts.rows == table.num_rows
    for group in wanted:
        for marginal in group:
            found = counts.tables(marginal[None])
            assert found.dtype == np.int64
            assert np.array_equal(found[0], brute(schema, table, tuple(marginal.tolist()))), schema.describe(marginal)


def test_every_source_agrees_with_brute_force_on_hostile_data(make):
    check(make(TABLE), HOSTILE, TABLE)


def test_order_of_rows_does_not_matter(make):
    check(make(TABLE.take(np.random.default_rng(5).permutation(TABLE.num_rows))), HOSTILE, TABLE, (2,))


@pytest.mark.parametrize("rows", [0, 1])
def test_empty_table_and_one_row(make, rows):
    check(make(TABLE.slice(0, rows)), HOSTILE, TABLE.slice(0, rows))


def test_engine_counts_more_than_once_and_in_any_order(make):
    engine = make(TABLE)
    for orders in ((2,), (1, 3), (0,)):
        check(engine, HOSTILE, TABLE, orders)
    wanted = [np.array([[2, 3], [0, 5], [2, 3]], dtype=np.int32)]
    counts = engine.count(HOSTILE, wanted)
    for _ in range(2):
        for row in (2, 0, 1):
            expected = brute(HOSTILE, TABLE, tuple(wanted[0][row].tolist()))
            assert np.array_equal(counts.tables(wanted[0][row : row + 1])[0], expected)


@pytest.mark.parametrize("name", ["text", "age", "income", "code", "flag", "number"])
@pytest.mark.parametrize("policy", ["missing", "other"])
def test_refusals_name_the_column_and_the_fix_but_no_value(make, name, policy):
    attribute = HOSTILE[name]
    strict = Attribute(**_strict(attribute, policy))
    if name == "flag" and policy == "other":
        return
    with pytest.raises(DataError) as caught:
        make(TABLE).count(Schema((strict,)), [np.array([[0]], dtype=np.int32)])
    message = str(caught.value)
    assert repr(name) in message
    assert repr(attribute.source_column) in message
    assert f"`{policy}: " in message
    leaked = [str(value) for value in TABLE.column(attribute.source_column).to_pylist() if len(str(value)) > 2]
    assert not [value for value in leaked if value in message and value not in ("none", "None", "True", "False")]
    assert caught.value.__cause__ is None


def _strict(attribute, policy):
    fields = ("name", "column", "values", "range", "bins", "codes", "missing", "other")
    return {field: "error" if field == policy else getattr(attribute, field) for field in fields}


def test_missing_column_is_named(make):
    schema = Schema((Attribute(name="Age", range=(0, 9)),))
    with pytest.raises(DataError, match=r"'Age'.*upper and lower case differ"):
        make(TABLE).count(schema, marginals(1, (1,)))
    schema = Schema((Attribute(name="nothing", column="te'xt", codes=2),))
    with pytest.raises(DataError, match="no column"):
        make(TABLE).count(schema, marginals(1, (1,)))


CASE_TWINS = pa.table({"a": [0, 1, 1], "A": [1, 1, 1]})


def test_columns_that_differ_by_case_are_told_apart_or_refused(make):
    schema = Schema((Attribute(name="a", codes=2), Attribute(name="A", codes=2)))
    try:
        check(make(CASE_TWINS), schema, CASE_TWINS, (1, 2))
    except DataError as error:  # DuckDB itself has renamed the second one
        assert "upper and lower case differ" in str(error)


@pytest.mark.slow
@given(
    data=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "'", '"', ";", "zz", None]),
            st.one_of(st.none(), st.integers(-5, 15)),
            st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)),
            st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
        ),
        max_size=40,
    )
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_small_tables(data, tmp_path_factory):
    columns = list(zip(*data, strict=True)) or [()] * 4
    types = (pa.string(), pa.int8(), pa.float64(), pa.int64())
    table = pa.table({name: pa.array(c, t) for name, c, t in zip("stuv", columns, types, strict=True)})
    schema = Schema(
        (
            Attribute(name="s", values=("b", "'", ";", "a"), missing="none", other="rest"),
            Attribute(name="t", range=(-2, 9), missing="none", other="none"),
            Attribute(name="u", bins=(-1e10, -1.0, 0.0, 0.5, 1e10), missing="none", other="rest"),
            Attribute(name="v", range=(-(2**62) + 1, -(2**62) + 3), missing="rest", other="rest"),
        )
    )
    folder = tmp_path_factory.mktemp("random")
    for kind in ("csv", "parquet", "arrow"):
        check(open_source(**SOURCES[kind](folder, table)), schema, table, (1, 2))


def test_adult_has_the_known_smallest_and_largest_cells():
    schema = adult8_schema()
    wanted = marginals(8, (1, 8))
    counts = open_source(shared("adult8.parquet")).count(schema, wanted)
    assert schema.sizes == (9, 16, 7, 15, 6, 5, 2, 2)
    smallest = (7, 51, 23, 9, 981, 271, 10_771, 7_841)
    largest = (22_696, 10_501, 14_976, 4_140, 13_193, 27_816, 21_790, 24_720)
    for i in range(8):
        (table,) = counts.tables(np.array([[i]], dtype=np.int32))
        assert (table.min(), table.max(), table.sum()) == (smallest[i], largest[i], 32_561)
    (full,) = counts.tables(wanted[1])
    assert full.shape == schema.sizes
    assert ((full > 0).sum(), (full == 1).sum(), full.max()) == (7_783, 4_672, 577)


def test_nltcs_has_the_known_ones():
    schema = nltcs_schema()
    wanted = marginals(16, (1, 16))
    counts = open_source(shared("nltcs.parquet")).count(schema, wanted)
    ones = "2,285 5,947 8,697 4,483 9,466 5,347 14,577 4,671 7,646 5,590 10,477 11,965 10,638 4,949 4,552 3,144"
    assert counts.tables(wanted[0])[:, 1].tolist() == [int(n.replace(",", "")) for n in ones.split()]
    full = counts.tables(wanted[1])
    assert ((full > 0).sum(), (full == 1).sum(), full.max()) == (3_152, 1_729, 3_853)
