"""Flags by the coefficient of variation: thresholds, what has none, and what a schema declares."""

import numpy as np
import pytest

from hushcube import Attribute, Measure, Schema
from hushcube.bundle.published_table import Table
from hushcube.errors import SchemaError
from hushcube.model.quality import QUALITY_WORDS, Quality

AGE = Attribute("age", codes=6)


def table(values, errors, *, schema=None, **fields):
    values, errors = np.array(values, float), np.array(errors, float)
    schema = Schema([AGE]) if schema is None else schema
    labels = (tuple(map(str, range(len(values)))),)
    return Table(schema, ("age",), labels, labels, values, errors, 2 * errors, **fields)


def test_classes_begin_beyond_the_thresholds():
    found = table([1000, 1000, 1000, 1000, 0, -5], [166, 167, 333, 334, 1, 0.001])
    assert found.quality.tolist() == [0, 1, 1, 2, 2, 2]
    declared = Schema([AGE], quality=Quality(caution=0.2, unreliable=0.5))
    assert table([1000] * 4, [166, 201, 500, 501], schema=declared).quality.tolist() == [0, 1, 1, 2]


def test_what_is_public_is_reliable_and_what_is_unknown_is_not_to_be_used():
    assert table([0, 7], [0, 0]).quality.tolist() == [0, 0]
    ends = (np.array([9.0, np.nan, 1.0]), np.array([11.0, np.nan, 19.0]))
    found = table([10, np.nan, 10], [np.nan] * 3, ends=ends, what="avg(days)")
    assert found.quality.tolist() == [0, 2, 2]  # half the width over 1.96: 5% and 46%


def test_a_measure_may_be_negative():
    schema = Schema([AGE], measures=[Measure("change", bounds=[-10, 10]), Measure("days", bounds=[0, 10])])
    for word, expected in (("sum(change)", [0, 0]), ("sum(days)", [2, 0]), ("count", [2, 0])):
        assert table([-100, 100], [1, 1], schema=schema, what=word).quality.tolist() == expected


def test_tables_have_words_and_show_letters_with_a_legend():
    found = table([100, 100, 100], [1, 20, 50])
    assert found.columns()["quality"].tolist() == list(QUALITY_WORDS)
    assert found.to_pandas()["quality"].tolist() == found.to_polars()["quality"].to_list() == list(QUALITY_WORDS)
    assert found.to_arrow()["quality"].to_pylist() == list(QUALITY_WORDS)
    shown = str(found)
    assert "± 40 E" in shown and "± 100 F" in shown and "± 2 " in shown and str(Quality()) in shown
    assert str(Quality()) not in str(table([100], [1]))


def test_csv_has_the_same_columns_and_the_stamp():
    found = table([100.5, -1], [1, 2])
    assert found.to_csv().splitlines() == [
        "age,value,std_error,low,high,quality",
        "0,100.5,1.0,98.5,102.5,reliable",
        "1,-1.0,2.0,-5.0,3.0,do not use",
    ]
    assert table([1], [1], private=False).to_csv().splitlines()[1].endswith(",NOT PRIVATE")


def test_a_schema_declares_thresholds_and_is_as_before_without_them():
    text = "name: data\nattributes:\n  - {name: age, size: 6}\n"
    plain = Schema.from_yaml(text)
    assert plain.quality == Quality() and "quality" not in plain.to_dict()
    declared = Schema.from_yaml(text + "quality: {caution: 0.1, unreliable: 0.25}\n")
    assert declared.quality == Quality(0.1, 0.25)
    assert Schema.from_yaml(declared.to_yaml()) == declared


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{caution: 0}", "quality, caution: must be a number above zero"),
        ("{unreliable: soon}", "quality, unreliable: must be a number above zero"),
        ("{caution: 0.5, unreliable: 0.2}", "quality: numbers would be unreliable before they need caution"),
        ("{warn: 0.5}", "quality: must have the keys caution and unreliable"),
        ("often", "quality: must have the keys caution and unreliable"),
    ],
)
def test_bad_thresholds_are_refused(given, told):
    with pytest.raises(SchemaError, match=told):
        Schema.from_yaml(f"attributes:\n  - {{name: age, size: 6}}\nquality: {given}\n")
