"""What a reader asks of a table, in Python's own words: lists, whole numbers, frames, and the order asked for."""

import builtins

import numpy as np
import pytest

import hushcube as hc
from hushcube.bundle.published_table import Table
from hushcube.errors import MissingDependency, QueryError, SchemaError
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema

SCHEMA = Schema([Attribute("sex", values=["F", "M"]), Attribute("p", values=[1, 2, 3]), Attribute("age", range=[0, 4])])


@pytest.fixture(scope="module")
def release():
    import pyarrow as pa

    plan = hc.plan(SCHEMA, "<=2-way,prefix(age)*sex", rho=2, neighbours="add-remove", strategy="residual")
    rows = pa.table({"sex": ["F", "M"] * 30, "p": [1, 2, 3] * 20, "age": [0, 1, 2, 3, 4, 4] * 10})
    return hc.release(plan, rows, seed=3)


def test_lists_and_whole_numbers_declare_what_tuples_and_texts_do():
    tuples = Schema(
        (
            Attribute(name="sex", values=("F", "M")),
            Attribute(name="p", values=("1", "2", "3")),
            Attribute(name="age", range=(0, 4)),
        )
    )
    assert tuples == SCHEMA and hash(tuples) == hash(SCHEMA)
    assert Attribute("a", values=[np.int64(4), 5], missing=-1).labels == ("4", "5", "-1")
    assert Attribute("a", bins=[0, 1.5, 3]) == Attribute(name="a", bins=(0, 1.5, 3))
    assert Attribute("d", dates=["2024-01-01", "2024-01-03"]).size == 3


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Attribute("a", values="FM"),
        lambda: Attribute("a", values=[None]),
        lambda: Attribute("a", range=7),
        lambda: Schema("people.yaml"),
        lambda: Schema([{"name": "a"}]),
        lambda: Schema([Attribute("a", codes=2)], measures=["days"]),
    ],
)
def test_what_is_no_declaration_says_so(declare):
    with pytest.raises(SchemaError):
        declare()


def test_axes_come_in_the_order_asked_for(release):
    table, turned = release["sex*age"], release["age*sex"]
    assert table.attributes == ("sex", "age") and turned.attributes == ("age", "sex")
    assert turned.labels == tuple(reversed(table.labels))
    assert np.array_equal(turned.values, table.values.T) and np.array_equal(turned.low, table.low.T)
    assert np.array_equal(release.table(["age", "sex"]).std_errors, table.std_errors.T)
    form, swapped = release["prefix(age)*sex"], release["sex * prefix( age )"]
    assert form.attributes == ("prefix(age)", "sex") and swapped.attributes == ("sex", "prefix(age)")
    assert np.array_equal(form.values, swapped.values.T)


def test_whole_numbers_select_where_labels_are_whole_numbers(release):
    for one, many in ((2, [1, 3]), (np.int64(2), np.array([1, 3])), ("2", ("1", "3"))):
        assert np.array_equal(release.table("p", where={"p": one}).values, release["p"].values[[1]])
        assert np.array_equal(release.table("p", where={"p": many}).values, release["p"].values[[0, 2]])
        assert release.estimate("p", {"p": many}).value == pytest.approx(release["p"].values[[0, 2]].sum())
    assert release.estimate("age*sex", where={"sex": "F", "age": range(2, 4)}).std_error > 0
    for wrong in (9, 1.5, None, [], [1, 1]):
        with pytest.raises(QueryError):
            release.table("p", where={"p": wrong})


def test_frames_have_a_row_for_each_cell(release):
    table = release["age*sex"]
    arrow = table.to_arrow()
    assert arrow.column_names == ["age", "sex", "value", "std_error", "low", "high", "quality"]
    assert arrow.num_rows == table.values.size
    assert arrow.column("age").to_pylist()[:3] == ["0", "0", "1"] and arrow.column("sex").to_pylist()[:2] == ["F", "M"]
    assert arrow.column("value").to_pylist() == table.values.ravel().tolist()
    pandas, polars = table.to_pandas(), table.to_polars()
    assert pandas.to_dict("list") == polars.to_dict(as_series=False) == arrow.to_pydict()
    total = release["total"].to_pandas()
    assert list(total) == ["value", "std_error", "low", "high", "quality"] and len(total) == 1


def test_a_number_steps_aside_for_an_attribute_of_its_name():
    schema = Schema([Attribute("value", codes=2)])
    table = Table.of(schema, (0,), np.zeros(2), np.ones(()), np.ones(()))
    assert table.to_arrow().column_names == ["value", "value_", "std_error", "low", "high", "quality"]


def test_a_frame_library_that_is_not_there_is_named_with_its_extra(release, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name in ("pandas", "polars"):
            raise ImportError
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for ask in (release["sex"].to_pandas, release["sex"].to_polars):
        with pytest.raises(MissingDependency, match=r"pip install 'hushcube\[frames\]'"):
            ask()


def test_averages_of_which_none_is_known_are_printed():
    import pyarrow as pa

    schema = Schema([Attribute("sex", values=["F", "M"])], measures=[hc.Measure("days", bounds=[1, 14])])
    plan = hc.plan(schema, "0-way", measures=["avg(days)"], epsilon="1e-6", neighbours="add-remove")
    table = hc.release(plan, pa.table({"sex": ["F"], "days": [3]}), seed=3)["total"]
    assert "unknown" in str(table) and "unknown" in str(table.others[-1]) and table._repr_html_()
