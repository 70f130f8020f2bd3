"""The built-in people are the published ones."""

import numpy as np
import pytest

from hushcube.samples import BERKELEY, TITANIC, berkeley, generated, titanic


def count(table, **labels):
    frame = table.to_pandas()
    for name, label in labels.items():
        frame = frame[frame[name] == label]
    return len(frame)


def test_titanic_has_the_published_margins():
    people = titanic()
    assert people.num_rows == 2201
    assert [count(people, **{"class": c}) for c in ("1st", "2nd", "3rd", "crew")] == [325, 285, 706, 885]
    assert count(people, survived="yes") == 711
    assert count(people, sex="female") == 470
    assert count(people, age="child") == 109
    assert count(people, age="child", **{"class": "crew"}) == 0


def test_berkeley_has_the_published_margins():
    people = berkeley()
    assert people.num_rows == 4526
    assert (count(people, gender="male"), count(people, gender="male", admitted="yes")) == (2691, 1198)
    assert (count(people, gender="female"), count(people, gender="female", admitted="yes")) == (1835, 557)
    assert [count(people, department=d) for d in "ABCDEF"] == [933, 585, 918, 792, 584, 714]


@pytest.mark.parametrize(("schema", "people"), [(TITANIC, titanic), (BERKELEY, berkeley)])
def test_people_fit_their_schema(schema, people):
    table = people()
    assert tuple(table.column_names) == schema.names
    for attribute in schema.attributes:
        assert set(table.column(attribute.name).to_pylist()) == set(attribute.labels)


def test_generated_people_repeat_and_stay_in_range():
    sizes = (2, 10, 300)
    table = generated(1000, sizes, seed=3)
    assert table.equals(generated(1000, sizes, seed=3))
    assert not table.equals(generated(1000, sizes, seed=4))
    for name, n in zip(("a0", "a1", "a2"), sizes, strict=True):
        codes = table.column(name).to_numpy()
        assert codes.min() >= 0 and codes.max() < n
    correlated = np.corrcoef(table.column("a1").to_numpy().astype(float), table.column("a2").to_numpy().astype(float))
    assert correlated[0, 1] > 0.1
