"""The owner sees what a bound on rows per person leaves out, before and after a release; nobody else does."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pyarrow as pa
import pytest

from hushcube.cli import run
from hushcube.errors import DataError
from hushcube.model.attribute import Attribute
from hushcube.model.privacy import Unit
from hushcube.model.schema import Schema
from hushcube.private.bounds import compare_bounds, count_bounds
from hushcube.private.engines import open_source

ROWS = {"alone": 1, "pair": 2, "house": 40, "clinic": 457}
"""So many rows has each address."""
DATA = pa.table({"a": [0] * 500, "Address": [name for name, many in ROWS.items() for _ in range(many)]})


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text("{unit: Address, max_rows: 3, attributes: [{name: a, size: 2}]}")
    lines = [f"0,{name}" for name, many in ROWS.items() for _ in range(many)]
    (tmp_path / "x.csv").write_text("\n".join(["a,Address", *lines]))
    return tmp_path


def test_bounds_are_compared_with_the_declared_one_among_them():
    schema = Schema((Attribute(name="a", codes=2),), unit=Unit("Address", 7))
    found = {bound.max_rows: (bound.counted, bound.left_out) for bound in compare_bounds(schema, DATA)}
    assert list(found) == [1, 2, 3, 5, 7, 10, 20, 50, 100, 200, 500]
    for most, numbers in found.items():
        counted = sum(min(many, most) for many in ROWS.values())
        assert numbers == (counted, 500 - counted)


def test_counts_under_each_bound_say_the_same_as_the_rows_of_each_person():
    schema = Schema((Attribute(name="a", codes=2),), unit=Unit("Address", 7))
    found = {bound.max_rows: bound for bound in compare_bounds(schema, DATA)}
    assert count_bounds(schema, open_source(DATA), [1, 7, 50], lambda _: None) == [found[k] for k in (1, 7, 50)]
    assert all(bound.people == sum(n > k for n in ROWS.values()) for k, bound in found.items())


def test_data_that_changes_between_two_counts_is_refused():
    class Changing:
        def count(self, schema, wanted):
            return SimpleNamespace(rows=schema.unit.max_rows, dropped=0)

    schema = Schema((Attribute(name="a", codes=2),), unit=Unit("id", 1))
    with pytest.raises(DataError, match="changed while it was read"):
        count_bounds(schema, Changing(), [1], lambda _: None)


def test_rows_of_nobody_count_and_without_a_unit_or_its_column_there_is_nothing_to_compare():
    data = pa.table({"a": [0] * 4, "id": [None, None, "p", "p"]})
    bounds = compare_bounds(Schema((Attribute(name="a", codes=2),), unit=Unit("id", 1, "own")), data)
    assert [(bound.max_rows, bound.counted, bound.share) for bound in bounds] == [(1, 3, "25.0%"), (2, 4, "0%")]
    assert compare_bounds(Schema((Attribute(name="a", codes=2),), unit=Unit("who", 1)), data) == []
    assert compare_bounds(Schema((Attribute(name="a", codes=2),)), data) == []


def test_schema_check_shows_the_share_to_the_owner(desk, capsys):
    assert run(["schema", "check", "s.yaml", "--data", "x.csv"]) == 0
    told = capsys.readouterr()
    assert "3 (declared)" in told.err and "98.2%" in told.err and "for the owner of the data only" in told.err
    assert "98.2%" not in told.out
    assert run(["schema", "check", "s.yaml", "--data", "x.csv", "--json"]) == 0
    assert {"max_rows": 3, "counted": 9, "left_out": 491, "people": 2} in json.loads(capsys.readouterr().out)["bounds"]


def test_a_release_reports_rows_on_standard_error_alone(desk, capsys):
    command = ["release", "--schema", "s.yaml", "--data", "x.csv", "--workload", "1-way", "--epsilon", "1"]
    assert run([*command, "--neighbours", "add-remove", "--out", "out", "--json"]) == 0
    told = capsys.readouterr()
    assert (
        "500 rows were read and 9 counted; 491 rows were left out: more than 3 of one 'Address', 98.2% of all"
        in told.err
    )
    assert "for the owner of the data only" in told.err
    published = [told.out.encode(), *(file.read_bytes() for file in desk.glob("out/*.*"))]
    assert len(published) > 3
    assert not any(re.search(rb"98\.2%|rows were|dropped", text) for text in published)
