"""Levels, dates and cut texts: what a schema may declare, how workloads see it, and what is refused."""

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hushcube.errors import SchemaError, WorkloadError
from hushcube.model.attribute import Attribute
from hushcube.model.coarser import at_level, coarsening
from hushcube.model.level import Level
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload

TEXT = """
name: people
attributes:
  - name: state
    values: [CA, OR, NY, MA, PR]
    missing: unknown
    levels:
      - {name: division, groups: {Pacific: [CA, OR], Atlantic: [NY], New England: [MA], islands: [PR]}}
      - {name: region, groups: {West: [Pacific], East: [Atlantic, New England], islands: [islands]}}
  - {name: age, range: [0, 99], levels: [{name: band, starts: [0, 18, 65]}, {name: half, starts: [0, 65]}]}
  - {name: income, bins: [0, 10, 20, 50], levels: [{name: rough, starts: [0, 20]}]}
  - {name: sex, values: [F, M]}
  - {name: admitted, dates: [2023-11-30, 2024-02-02]}
"""


def schema():
    return Schema.from_yaml(TEXT)


def test_yaml_round_trip():
    s = schema()
    assert Schema.from_yaml(s.to_yaml()) == s and Schema.from_dict(s.to_dict()) == s


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("state@division", ("Pacific", "Atlantic", "New England", "islands", "unknown")),
        ("state@region", ("West", "East", "islands", "unknown")),
        ("age@band", ("0-17", "18-64", "65-99")),
        ("age@half", ("0-64", "65-99")),
        ("income@rough", ("[0, 20)", "[20, 50]")),
        ("admitted@month", ("2023-11", "2023-12", "2024-01", "2024-02")),
        ("admitted@quarter", ("2023-Q4", "2024-Q1")),
        ("admitted@year", ("2023", "2024")),
    ],
)
def test_labels_of_levels(name, labels):
    assert schema().seen(name).labels == labels


def test_a_level_knows_where_every_value_goes():
    s = schema()
    assert s.seen("state@region").places.tolist() == [0, 0, 1, 1, 2, 3]
    assert s.seen("age@band").places[[0, 17, 18, 64, 65, 99]].tolist() == [0, 0, 1, 1, 2, 2]
    assert coarsening(s.seen("state@division"), s.seen("state@region")).tolist() == [0, 1, 1, 2, 3]
    with pytest.raises(ValueError, match="finer"):
        coarsening(s.seen("state@region"), s.seen("state@division"))


def test_order_is_kept_where_groups_are_runs():
    s = schema()
    assert s.seen("age@band").is_ordered and s.seen("admitted@month").is_ordered
    assert not s.seen("state@region").is_ordered
    mixed = Attribute(name="a", codes=3, ordered=True, levels=({"name": "l", "groups": {"x": [0, 2], "y": [1]}},))
    assert not at_level(mixed, "l").is_ordered


def test_missing_values_that_count_as_a_value_go_into_its_group():
    a = Attribute(name="a", values=("x", "y"), missing="y", levels=({"name": "l", "groups": {"b": ["y"], "a": ["x"]}},))
    level = at_level(a, "l")
    assert level.missing == "b" and level.missing_position == 0 and level.size == 2
    named = Attribute(name="a", values=("x",), other="rest", levels=({"name": "l", "groups": {"rest": ["x"]}},))
    assert at_level(named, "l").labels == ("rest",) and at_level(named, "l").places.tolist() == [0, 0]


def test_workloads_see_levels_in_the_place_of_their_attribute():
    workload = Workload.parse("state@region*sex,age@band*state@division,sex", schema())
    assert workload.schema.names == ("state@region", "state@division", "age@band", "income", "sex", "admitted")
    assert [workload.schema.describe(m) for m in workload.marginals] == [
        "state@region*sex", "state@division*age@band", "sex",
    ]  # fmt: skip
    assert workload.schema.chains == ((0, 1), (2,), (3,), (4,), (5,)) and workload.schema.is_nested
    assert workload.schema.coarsening(1, 0).tolist() == [0, 1, 1, 2, 3]
    assert workload.schema.declared == schema() and workload.schema.to_dict() == schema().to_dict()
    again = Workload.parse(workload.words, workload.schema)
    assert again == workload


def test_families_of_marginals_are_over_declared_values():
    workload = Workload.parse("2-way,state@region,prefix(age@band)", schema())
    names = [workload.schema.describe(m) for m in workload.marginals]
    assert len(names) == 11 and names[0] == "state*age" and names[-1] == "state@region"
    assert workload.forms[0].word == "prefix(age@band)" and workload.forms[0].cells == 3
    assert Workload.parse("anchored:1:sex,age@band", schema()).schema.names[1:3] == ("age@band", "age")


def test_one_level_of_an_attribute_is_not_nested():
    workload = Workload.parse("state@region*age@band,sex*state@region", schema())
    assert not workload.schema.is_nested and len(workload.schema) == 5
    with_total = Workload.parse("0-way,state@region", schema())
    assert not with_total.schema.is_nested and with_total.marginals == ((), (0,))
    assert Workload.parse("state*sex", schema()).schema.whole is None


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("state@country", "'state' has no level 'country'"),
        ("sex@band", "'sex' has no level 'band'"),
        ("town@band", "'town' is not in the schema"),
        ("state*state@region", "names an attribute twice"),
        ("prefix(state@region)", "have no order"),
    ],
)
def test_bad_words(words, problem):
    with pytest.raises(WorkloadError, match=problem):
        Workload.parse(words, schema())


LEVEL = "{name: age, range: [0, 9], levels: [%s]}"


@pytest.mark.parametrize(
    ("attribute", "problem"),
    [
        (LEVEL % "{name: b}", "level 1.*needs either groups or starts"),
        (LEVEL % "{name: b, starts: [0, 5], groups: {}}", "needs either groups or starts"),
        (LEVEL % "{name: b, starts: [1, 5]}", "the first is not the smallest number"),
        (LEVEL % "{name: b, starts: [0, 5, 5]}", "must increase"),
        (LEVEL % "{name: b, starts: [0, 5.5]}", "5.5 is not where one of 'age' begins"),
        (LEVEL % "{name: b, starts: [0, x]}", "must be a list of numbers"),
        (LEVEL % "{name: b, starts: [0, 5]}, {name: c, starts: [0, 4]}", "4 is not where one of 'b' begins"),
        (LEVEL % "{name: b, starts: [0, 5]}, {name: b, starts: [0]}", "level 'b'.*is declared twice"),
        (LEVEL % "{name: 'a@b', starts: [0, 5]}", "is not a name for a level"),
        (LEVEL % "{starts: [0, 5]}", "is not a name for a level"),
        (LEVEL % "{name: b, starts: [0], step: 3}", "unknown key 'step'"),
        (LEVEL % "12", "must be a mapping"),
        ("{name: age, range: [0, 9], levels: 7}", "levels.*must be a list"),
        ("{name: a, values: [x, y], levels: [{name: l, groups: {g: [x]}}]}", "'y' of 'a' is in no group"),
        ("{name: a, values: [x, y], levels: [{name: l, groups: {g: [x, y], h: [x]}}]}", "'x' is named twice"),
        ("{name: a, values: [x, y], levels: [{name: l, groups: {g: [x, z]}}]}", "'z' is not a label of 'a'"),
        ("{name: a, values: [x], levels: [{name: l, groups: {g: [x], h: []}}]}", "must be a list of labels"),
        ("{name: a, values: [x], levels: [{name: l, starts: [0]}]}", "not in the order of numbers"),
        ("{name: d, dates: [2024-01-01]}", "must be two dates"),
        ("{name: d, dates: [2024-01-01, 2024-13-01]}", "as YYYY-MM-DD"),
        ("{name: d, dates: [2024-02-01, 2024-01-01]}", "the first is after the last"),
        ("{name: d, dates: [0001-01-01, 2024-01-01]}", "more than 200,000 days"),
        ("{name: d, dates: [2024-01-01, 2024-02-01], by: week}", "by.*step of dates"),
        ("{name: d, range: [0, 1], by: month}", "by.*step of dates"),
        ("{name: d, dates: [2024-01-01, 2024-02-01], levels: [{name: x, starts: [0]}]}", "levels of the calendar"),
        ("{name: a, range: [0, 1], before: '.'}", "before.*must be a mark"),
        ("{name: a, mapping: m.csv}", "none can be read here"),
    ],
)
def test_bad_declarations_are_named(attribute, problem):
    with pytest.raises(SchemaError, match=problem):
        Schema.from_yaml(f"attributes: [{attribute}]")


@pytest.mark.parametrize(
    ("levels", "problem"),
    [
        ((Level("l", ("g", "h"), (0, 1)),), "one group for each value"),
        ((Level("l", ("g", "h"), (0, 1, 2)),), "one group for each value"),
        ((Level("l", ("g", "h"), (0, 0, 0)),), "'h'.*must be a list of labels"),
        ((Level("l", ("g", "h"), (0, 0, 1)), Level("m", ("i", "j"), (0, 1, 1))), "'g' is named twice"),
    ],
)
def test_levels_made_in_python_are_checked_too(levels, problem):
    with pytest.raises(SchemaError, match=problem):
        Attribute(name="a", codes=3, levels=levels)


def test_levels_made_in_python():
    level = Level("l", ("g", "h"), (0, 0, 1))
    attribute = Attribute(name="a", codes=3, levels=(level,))
    assert attribute.grouped == (level,) and replace(attribute, name="b").grouped == (level,)


def mapped(text, attribute="{name: code, mapping: codes.csv}"):
    files = {"codes.csv": text}
    return Schema.from_yaml(f"attributes: [{attribute}]", files.__getitem__).attributes[0]


def test_mapping_files_give_values_and_levels():
    code = mapped("code,block,chapter\n001,a,A\n002,a,A\n390,b,B\n410,c,B\n")
    assert code.labels == ("001", "002", "390", "410")
    assert [level.labels for level in code.grouped] == [("a", "b", "c"), ("A", "B")]
    age = mapped("age,band\n0,young\n1,young\n2,old\n", "{name: age, range: [0, 2], mapping: codes.csv}")
    assert at_level(age, "band").labels == ("young", "old")
    assert Attribute.from_dict(code.to_dict()) == code


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("code,chapter\n", "has no values or no levels"),
        ("code\n001\n", "has no values or no levels"),
        ("code,chapter\n001\n", "line 2.*does not fit the header"),
        ("code,chapter\n001,\n", "line 2.*does not fit the header"),
        ("code,chapter\n001,a\n001,b\n", "is listed twice"),
        ('code,chapter\n"001,a\n', "is not a CSV file"),
        ("code,block,chapter\n1,a,A\n2,a,B\n", "'a' is named twice"),
    ],
)
def test_bad_mapping_files(text, problem):
    with pytest.raises(SchemaError, match=problem):
        mapped(text)


def test_a_mapping_must_cover_the_declared_values():
    with pytest.raises(SchemaError, match="'2' of 'age' is in no group"):
        mapped("age,band\n0,young\n1,young\n", "{name: age, range: [0, 2], mapping: codes.csv}")
    with pytest.raises(SchemaError, match="cannot be combined with levels"):
        mapped("a,b\n0,x\n", "{name: age, size: 1, mapping: codes.csv, levels: []}")


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.integers(0, 900), st.sampled_from(["day", "month", "quarter"]))
def test_calendars_are_nested(first, length, by):
    dates = Attribute(name="d", dates=(first.isoformat(), (first + timedelta(days=length)).isoformat()), by=by)
    for level in dates.grouped:
        groups = at_level(dates, level.name).places
        assert (np.diff(groups) >= 0).all() and groups[0] == 0 and set(groups) == set(range(len(level.labels)))
        prefix = 4 if level.name == "year" else 7
        if by == "day" and level.name != "quarter":
            assert [level.labels[g] for g in groups] == [label[:prefix] for label in dates.labels]
