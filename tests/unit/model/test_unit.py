import pytest

from hushcube import Attribute, Schema
from hushcube.designs.request import Request
from hushcube.errors import PrivacyError, SchemaError
from hushcube.model.privacy import Privacy, Unit
from hushcube.model.workload import Workload
from hushcube.planning.planner import compare

TEXT = """
name: visits
unit: patient
max_rows: 4
attributes:
  - {name: sex, values: [F, M]}
"""


def test_a_schema_declares_its_unit():
    schema = Schema.from_yaml(TEXT)
    assert schema.unit == Unit("patient", 4)
    assert Schema.from_yaml(schema.to_yaml()) == schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert Schema.from_yaml(TEXT.replace("max_rows: 4", "max_rows: 4\nunit_missing: own")).unit == Unit(
        "patient", 4, "own"
    )


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("max_rows: 4", "", "max_rows"),
        ("unit: patient", "", "unit"),
        ("max_rows: 4", "max_rows: 0", "max_rows"),
        ("max_rows: 4", "max_rows: many", "max_rows"),
        ("max_rows: 4", "max_rows: true", "max_rows"),
        ("max_rows: 4", "max_rows: 4\nunit_missing: drop", "unit_missing"),
        ("unit: patient", "unit: [a, b]", "unit"),
        ("unit: patient", "units: patient", "schema"),
    ],
)
def test_what_is_wrong_with_a_unit_is_named(old, new, field):
    with pytest.raises(SchemaError) as problem:
        Schema.from_yaml(TEXT.replace(old, new))
    assert problem.value.field == field


def test_the_unit_decides_how_many_rows_a_person_has():
    schema = Schema((Attribute(name="a", codes=2),), "x", Unit("id", 3))
    assert schema.rows_per_person(None) == 3
    with pytest.raises(PrivacyError, match="rows_per_person"):
        schema.rows_per_person(10**9)
    assert Schema((Attribute(name="a", codes=2),)).rows_per_person(None) == 1
    for rows in (1, 2, 4):
        privacy = Privacy.of(epsilon=1, neighbours="add-remove", rows_per_person=rows)
        with pytest.raises(PrivacyError, match="rows_per_person"):
            compare(Request(Workload.parse("1-way", schema), privacy))
