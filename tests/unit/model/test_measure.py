from fractions import Fraction

import pytest

from hushcube import Attribute, Schema
from hushcube.errors import SchemaError, WorkloadError
from hushcube.model.measure import Measure

TEXT = """
name: stays
attributes:
  - {name: ward, size: 3}
measures:
  - {name: days, bounds: [1, 14], resolution: 0.5, center: middle, column: time}
  - {name: cost, bounds: [0, 20000], resolution: 10, missing: 0}
"""


def test_a_schema_declares_its_measures():
    schema = Schema.from_yaml(TEXT)
    days, cost = schema.measures
    assert (days.low, days.high, days.largest, days.center, days.is_signed) == (-13, 13, 13, Fraction(15, 2), True)
    assert (cost.low, cost.high, cost.largest, cost.missing, cost.is_signed) == (0, 2_000, 2_000, 0, False)
    assert schema.measure("cost") is cost and days.source_column == "time"
    assert Schema.from_yaml(schema.to_yaml()) == schema and Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("bounds: [1, 14]", "bounds: [14, 1]", "bounds"),
        ("bounds: [1, 14]", "bounds: [1, many]", "bounds"),
        ("bounds: [1, 14]", "bounds: 14", "bounds"),
        ("bounds: [1, 14], ", "", "measure 1"),
        ("resolution: 0.5", "resolution: 0", "resolution"),
        ("resolution: 0.5", "resolution: 100", "resolution"),
        ("resolution: 0.5", "resolution: 1e-12", "resolution"),
        ("resolution: 0.5", "step: 0.5", "measure 1"),
        ("missing: 0", "missing: -1", "missing"),
        ("name: days", "name: ward", "measure 'ward'"),
        ("name: days", "name: a*b", "measure"),
        ("center: middle", "center: nan", "center"),
        ("column: time", "column: ''", "column"),
    ],
)
def test_what_is_wrong_with_a_measure_is_named(old, new, field):
    assert old in TEXT
    with pytest.raises(SchemaError) as problem:
        Schema.from_yaml(TEXT.replace(old, new, 1))
    assert field in problem.value.field


def test_a_measure_that_is_not_declared_is_refused():
    with pytest.raises(WorkloadError, match="wage"):
        Schema((Attribute(name="a", codes=2),)).measure("wage")


def test_one_row_moves_a_sum_by_its_value_and_not_by_the_range():
    assert Measure(name="v", bounds=(100, 200)).largest == 200
    assert Measure(name="v", bounds=(100, 200), center=150).largest == 50
