"""The publisher's own words: checked, kept through YAML and JSON, and used wherever people read."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hushcube as hc
from hushcube.bundle.statement import privacy_statement
from hushcube.model.coarser import at_level
from hushcube.model.words import LONGEST, OF_COLUMN, OF_SCHEMA
from hushcube.private.engines import open_source

TEXT = """
name: calls
title: Calls to the fire brigade
description: |
  All calls.
  Cancelled ones: not here.
source: dispatch records
licence: CC BY 4.0
contact: office@example.org
period: 2024
unit_noun: calls
attributes:
  - {name: type, title: Type of call, size: 3, labels: {0: medical, 1: fire, 9: not stated}, missing: 9,
     levels: [{name: crew, title: Who goes, groups: {a: [medical], b: [1, 2]}, labels: {a: doctor, b: engine}}]}
  - {name: delay, bins: [0, 10, 60], labels: {"[0, 10)": fast}, unit_of_measure: minutes, description: Until arrival}
  - {name: shift, values: ["1", "02"], ordered: true, labels: {"02": night}}
measures:
  - {name: cost, bounds: [0, 100], title: Cost of a call, unit_of_measure: EUR, description: All of it}
"""


@pytest.fixture(scope="module")
def schema() -> hc.Schema:
    return hc.Schema.from_yaml(TEXT)


def rows() -> pa.Table:
    every = [(0, 5.0, "1"), (0, 30.0, "02"), (1, 5.0, "1"), (2, 59.0, "02"), (None, 1.0, "1"), (0, 5.0, "1")]
    types, delays, shifts = zip(*every, strict=True)
    return pa.table({"type": types, "delay": delays, "shift": shifts, "cost": [10] * len(every)})


def test_they_are_read(schema):
    assert (schema.shown_name, schema.period, schema.unit_noun) == ("Calls to the fire brigade", "2024", "calls")
    assert schema.description == "All calls.\nCancelled ones: not here."
    kind, delay, shift = schema.attributes
    assert kind.labels == ("medical", "fire", "2", "not stated") and kind.coded == ("0", "1", "2", "9")
    assert [kind.position(text) for text in ("fire", "1", "not stated", "9", "8")] == [1, 1, 3, 3, None]
    assert (kind.shown_name, shift.shown_name, schema.measures[0].shown_name) == (
        "Type of call",
        "shift",
        "Cost of a call",
    )
    assert delay.labels == ("fast", "[10, 60]") and delay.unit_of_measure == "minutes"
    assert [each.code_type for each in schema.attributes] == ["whole number", "text", "text"]
    crew = at_level(kind, "crew")
    assert crew.labels == ("doctor", "engine", "not stated") and crew.coded == ("a", "b", "9")
    assert crew.shown_name == "Who goes" and crew.places.tolist() == [0, 1, 1, 2]


def test_they_stay_what_they_are_in_yaml_json_and_python(schema):
    assert hc.Schema.from_yaml(schema.to_yaml()) == schema
    assert hc.Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema and hash(schema) == hash(hc.Schema.from_yaml(TEXT))
    kind = schema["type"]
    assert replace(kind, name="kind").labels == kind.labels and replace(kind, labels=None).labels == kind.coded
    assert hc.Attribute("type", codes=2, labels=["medical", "fire"]) == hc.Attribute(
        "type", codes=2, labels={"0": "medical", 1: "fire"}
    )
    assert hc.Attribute("type", codes=2, labels={0: "0"}) == hc.Attribute("type", codes=2)


def test_a_schema_without_them_says_nothing_of_them():
    schema = hc.Schema([hc.Attribute("a", codes=2)], measures=[hc.Measure("m", bounds=[0, 1])])
    assert (
        schema.to_yaml()
        == "name: data\nattributes:\n  - {name: a, size: 2}\nmeasures:\n  - {name: m, bounds: [0, 1]}\n"
    )
    assert replace(schema, title="people").to_dict()["title"] == "people"
    assert "unit_noun" not in replace(schema, unit_noun="people").to_dict()


@pytest.mark.parametrize(
    "key", [*OF_SCHEMA, *(f"attribute {key}" for key in OF_COLUMN), *(f"measure {key}" for key in OF_COLUMN)]
)
@pytest.mark.parametrize("given", [None, "", " ", [1], {"a": 1}, "a\x1bb", "a\ud800", "one\rtwo"])
def test_what_is_no_text_is_refused_and_named(key, given):
    raw = {"attributes": [{"name": "a", "size": 2}], "measures": [{"name": "m", "bounds": [0, 1]}]}
    *of, word = key.split()
    place = {"attribute": raw["attributes"][0], "measure": raw["measures"][0]}[of[0]] if of else raw
    place[word] = given
    with pytest.raises(hc.SchemaError, match=f"{word}: .*Fix: "):
        hc.Schema.from_dict(raw)


@pytest.mark.parametrize("key", OF_SCHEMA)
def test_lengths_are_bounded(key):
    attributes = [hc.Attribute("a", codes=2)]
    assert len(getattr(hc.Schema(attributes, **{key: "x" * LONGEST[key]}), key)) == LONGEST[key]
    with pytest.raises(hc.SchemaError, match=f"{key}: is empty or too long"):
        hc.Schema(attributes, **{key: "x" * (LONGEST[key] + 1)})


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"labels": {2: "x"}}, "'2' is not one of the codes"),
        ({"labels": {0: "x", 1: "x"}}, "two values have the label 'x'"),
        ({"labels": {0: "1"}}, "the label '1' is the code of another value"),
        ({"labels": {0: "none"}, "missing": "none"}, "the label 'none' is the code of another value"),
        ({"labels": {0: ""}}, "'' is not a label"),
        ({"labels": {0: None}}, "None is not a label"),
        ({"labels": {0: "x", "0": "y"}}, "names a code twice"),
        ({"labels": ["x"]}, "must say which code has which label"),
        ({"labels": "x"}, "must say which code has which label"),
        ({"levels": [{"name": "l", "groups": {"g": [0, 1]}, "labels": {"h": "x"}}]}, "level 1, labels: 'h' is not one"),
        (
            {"levels": [{"name": "l", "groups": {"g": [0, 1]}}], "missing": "9", "labels": {"9": "g"}},
            "level 'l', labels: the label 'g' is the code of another value",
        ),
    ],
)
def test_labels_say_which_value_is_meant(declared, problem):
    with pytest.raises(hc.SchemaError, match=problem):
        hc.Attribute("a", codes=2, **declared)


def test_engines_match_codes(schema):
    counts = open_source(rows()).count(schema, [np.array([[0], [1], [2]], np.int32)])
    found = [table.tolist() for i in range(3) for table in counts.tables(np.array([[i]], np.int32))]
    assert found == [[3, 1, 1, 1], [4, 2], [4, 2]]


def test_a_release_shows_labels_and_takes_both(schema, tmp_path):
    published = hc.release(
        hc.plan(schema, "type*shift,prefix(shift),type@crew", rho=500, neighbours="add-remove"), rows(), seed=1
    )
    published.save(tmp_path / "published")
    opened = hc.open(tmp_path / "published")
    assert hc.verify(tmp_path / "published", allow_seeded=True).holds
    assert opened.schema.declared == schema
    table = opened.table("type*shift")
    assert table.labels == (("medical", "fire", "2", "not stated"), ("1", "night"))
    assert table.coded == (("0", "1", "2", "9"), ("1", "02"))
    by_label, by_code = ({"type": each, "shift": "02"} for each in ("medical", 0))
    assert table.slice(by_label).values.tolist() == table.slice(by_code).values.tolist() == [[table.values[0, 1]]]
    assert table.slice(by_code).coded == (("0",), ("02",))
    assert opened.estimate("type", {"type": ["fire", 2]}) == opened.estimate("type", {"type": [1, "2"]})
    assert opened.table("prefix(shift)").labels == (("up to 1", "up to night"),)
    assert opened.table("prefix(shift)").slice({"prefix(shift)": "up to 02"}).values.shape == (1,)
    assert opened.table("type@crew").slice({"type@crew": ["engine", "a"]}).labels == (("engine", "doctor"),)
    with pytest.raises(hc.QueryError, match="names no label, or one twice"):
        table.slice({"type": ["medical", 0]})
    assert "Calls to the fire brigade: type*shift" in str(table) and "night" in str(table)


def test_synthetic_people_have_codes(schema, tmp_path):
    schema = replace(schema, measures=())
    plan = hc.plan(schema, "type*shift", rho=500, neighbours="add-remove")
    published = hc.release(plan, rows(), seed=1, out=tmp_path / "published", face="integral")
    hc.synthesize(tmp_path / "published", out=tmp_path / "people.csv")
    assert set((tmp_path / "people.csv").read_text().splitlines()[1:]) <= {
        f'"{a}","{b}","{c}"' for a in "0129" for b in ("[0, 10)", "[10, 60]") for c in ("1", "02")
    }
    assert hc.verify(tmp_path / "published", allow_seeded=True).holds and published.faces


def test_what_is_counted_is_said(schema):
    facts = hc.Facts.of(schema, zeros=[{"type": 0, "shift": "night"}], totals=[({"type": "fire"}, 7), ({}, 9)])
    assert sorted(facts.describe()) == [
        "The number of calls is 9.",
        "The number of calls with type = fire is 7.",
        "There are no calls with type = medical and shift = night.",
    ]
    assert hc.Facts.from_dict(facts.to_dict(), schema) == facts
    for rows_each, told in (
        (1, "even the number of calls is protected"),
        (2, "even the number of people is protected"),
    ):
        plan = hc.plan(schema, "type", rho=1, neighbours="add-remove", rows_per_person=rows_each)
        text = privacy_statement(plan, private=True)
        assert told in text and "The tables count calls, one for each row. " in text and "without one person" in text
    with pytest.raises(hc.HushcubeError, match="depends on the number of calls"):
        hc.find_budget(
            schema, "type", measures=["avg(cost)"], targets=["avg(cost) type: stderr<=1"], neighbours="add-remove"
        )


def test_a_check_of_a_schema_shows_them(schema):
    checked = hc.check_schema(schema)
    assert "0: medical, 1: fire, 2, 9: not stated" in str(checked) and "licence: CC BY 4.0" in str(checked)
    told = checked.to_dict()
    assert told["unit_noun"] == "calls" and told["attributes"][0]["labels"]["9"] == "not stated"
    assert checked.fits and hc.check_schema(schema, rows()).fits


def test_the_digest_of_a_plan_covers_them(schema):
    plans = [
        hc.plan(each, "type", rho=1, neighbours="add-remove")
        for each in (schema, replace(schema, title="Others"), hc.Schema.from_yaml(TEXT))
    ]
    assert plans[0].digest == plans[2].digest != plans[1].digest
    assert hc.Plan.from_json(plans[0].to_json()).schema == plans[0].schema
