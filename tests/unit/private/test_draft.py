"""Drafts fit the data they were drafted from, and checks find what does not fit."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from datasets import adult8_schema, shared
from hushcube.errors import DataError
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.draft import REVIEW, check_data, draft_schema, round_edges
from hushcube.private.engines import open_source

N = 200
TABLE = pa.table(
    {
        "sex": ["m", "f"] * 100,
        "age": [i % 90 for i in range(N)],
        "band": [f"{5 * (i % 4)}-{5 * (i % 4) + 4}" for i in range(N)],
        "income": [None if i == 7 else i * 137.5 for i in range(N)],
        "code": [(10, 20, 99)[i % 3] for i in range(N)],
        "id": [1000 + 7 * i for i in range(N)],
        "words": [f"person {i}" for i in range(N)],
        "flag": [None, True, False, True] * 50,
        "ratio": [math.inf if i == 3 else math.nan if i == 4 else i / N for i in range(N)],
        "a*b": [1, 2] * 100,
        "empty": pa.nulls(N, pa.string()),
        "list": [[1]] * N,
        "blank": ["", "x"] * 100,
    }
)


def test_each_kind_of_column_is_drafted_sensibly():
    schema, notes = draft_schema(TABLE, name="people")
    assert schema.name == "people"
    assert notes[0] == REVIEW
    assert schema["sex"].values == ("f", "m")
    assert schema["age"].range == (0, 89)
    assert schema["band"].values == ("0-4", "5-9", "10-14", "15-19")
    assert schema["income"].bins == (0, 5000, 10000, 15000, 20000, 25000, 30000)
    assert schema["income"].missing == "missing"
    assert schema["code"].values == ("10", "20", "99")
    assert schema["flag"].values == ("false", "true")
    assert schema["flag"].missing == "missing"
    assert (schema["ratio"].missing, schema["ratio"].other) == ("missing", "other")
    assert schema["a_b"].column == "a*b"
    assert schema["blank"].other == "other"
    assert set(schema.names).isdisjoint({"id", "words", "empty", "list"})
    for left_out in ("id", "words", "empty", "list"):
        assert [note for note in notes if note.startswith(f"{left_out!r} left out")]


@pytest.mark.parametrize("as_csv", [False, True])
def test_a_draft_accepts_its_own_data_and_survives_yaml(as_csv, tmp_path):
    source = TABLE.drop_columns(["list", "blank"])
    if as_csv:
        source.to_pandas().to_csv(tmp_path / "x.csv", index=False)
        source = tmp_path / "x.csv"
    schema, _ = draft_schema(source)
    assert check_data(schema, source) == []
    assert Schema.from_yaml(schema.to_yaml()) == schema
    counts = open_source(source).count(schema, [np.arange(len(schema), dtype=np.int32)[:, None]])
    assert counts.rows == N


def test_codes_with_leading_zeros_stay_texts(tmp_path):
    (tmp_path / "x.csv").write_text("zip,n\n" + "".join(f"0{i % 9},{i % 30}\n" for i in range(200)))
    schema, _ = draft_schema(tmp_path / "x.csv")
    assert schema["zip"].values == tuple(f"0{i}" for i in range(9))
    assert schema["n"].range == (0, 29)


def test_codes_that_a_null_turned_into_floats_stay_codes():
    table = pa.table({"code": pa.array([10.0, 20.0, 990.0, None, math.nan] * 40)})
    schema, _ = draft_schema(table)
    assert schema["code"].labels == ("10", "20", "990", "missing")
    assert check_data(schema, table) == []


def test_adult_drafts_to_its_known_domains():
    schema, _ = draft_schema(shared("adult8.parquet"))
    assert schema.sizes == adult8_schema().sizes
    assert check_data(schema, shared("adult8.parquet")) == []


def test_nothing_to_draft():
    with pytest.raises(DataError, match="no column"):
        draft_schema(TABLE.select(["empty"]))


def test_findings_name_columns_and_keep_values_apart():
    schema = Schema(
        (
            Attribute(name="sex", values=("f",)),
            Attribute(name="gone", codes=2),
            Attribute(name="pay", column="income", bins=(0, 100000)),
            Attribute(name="age", range=(0, 82)),
            Attribute(name="flag", values=("true", "false"), missing="unknown"),
        )
    )
    findings = check_data(schema, TABLE)
    assert [(f.attribute, f.kind) for f in findings] == [
        ("sex", "outside"),
        ("gone", "absent"),
        ("pay", "missing"),
        ("age", "outside"),
    ]
    assert findings[0].examples == ("m",)
    assert findings[3].examples == ("83", "84", "85", "86", "87")
    for finding in findings:
        assert finding.column in finding.message
        assert finding.fix
        assert "83" not in repr(finding)


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_round_edges_hold_all_values(one, two):
    low, high = min(one, two), max(one, two)
    edges = round_edges(low, high)
    assert edges[0] <= low
    assert edges[-1] >= high
    assert list(edges) == sorted(set(edges))
    assert len(edges) <= 14


def test_units_and_measures_are_compared_with_the_data_too():
    text = """
unit: person
max_rows: 2
attributes: [{name: age, range: [0, 9]}]
measures: [{name: wage, bounds: [0, 9]}, {name: cost, bounds: [0, 9], missing: 0}, {name: bonus, bounds: [0, 9]}]
"""
    schema = Schema.from_yaml(text)
    rows = pa.table({"person": ["a", None], "age": [1, 2], "wage": ["3", "much"], "cost": [None, 1.0]})
    found = [(finding.attribute, finding.kind) for finding in check_data(schema, rows)]
    assert found == [("unit", "missing"), ("wage", "missing"), ("bonus", "absent")]
    good = pa.table({"person": ["a", "b"], "age": [1, 2], "wage": [3, 4], "cost": [None, 1.0], "bonus": [0, 0]})
    assert check_data(schema, good) == []
    own = Schema.from_yaml("unit_missing: own" + text)
    assert ("unit", "missing") not in [(finding.attribute, finding.kind) for finding in check_data(own, rows)]
    assert check_data(own, good.drop(["person"]))[0].kind == "absent"
