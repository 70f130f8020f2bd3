"""The built-in people are the published ones; the made-up ones are skewed, dependent and repeatable."""

import numpy as np
import pytest

import populations
from hushcube.samples import HOSPITAL, TITANIC, hospital, titanic
from populations import BERKELEY, BRAZIL, CENSUS, berkeley, census, generated


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


@pytest.mark.parametrize(("schema", "people"), [(TITANIC, titanic), (BERKELEY, berkeley), (HOSPITAL, hospital)])
def test_people_fit_their_schema(schema, people):
    table = people()
    assert tuple(table.column_names) == (*schema.names, *(measure.name for measure in schema.measures))
    for attribute in schema.attributes:
        assert set(table.column(attribute.name).to_pylist()) == set(attribute.labels)


def shares(table, first, second):
    """The shares of the second attribute's labels for each label of the first."""
    people = table.to_pandas()
    return people.groupby(first)[second].value_counts(normalize=True).unstack(fill_value=0.0)


def test_the_made_up_hospital_repeats_and_its_attributes_depend_on_each_other():
    stays = hospital()
    assert stays.num_rows == 100_000 and len(HOSPITAL) == 8
    assert stays.equals(hospital()) and not stays.equals(hospital(seed=2))
    assert count(stays, ward="maternity", sex="male") == 0 < count(stays, ward="maternity", sex="female")
    assert shares(stays, "region", "age").loc["coast", "70+"] > 2 * shares(stays, "region", "age").loc["city", "70+"]
    assert shares(stays, "diagnosis", "season").loc["lungs", "winter"] > 0.35
    assert shares(stays, "diagnosis", "season").loc["lungs", "summer"] < 0.15
    assert shares(stays, "diagnosis", "ward").loc["heart", "cardiology"] > 0.5
    assert (
        shares(stays, "age", "outcome").loc["70+", "died"] > 10 * shares(stays, "age", "outcome").loc["10-19", "died"]
    )
    nights = stays.to_pandas().groupby("diagnosis")["nights"].mean()
    assert nights["mind"] > 4 * nights["pregnancy"]
    assert (stays.column("nights").to_numpy().min(), stays.column("nights").to_numpy().max()) == (0, 30)


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


MADE_UP = 400_000


@pytest.fixture(scope="module")
def people():
    """With at least 26 expected people per code, one of the 701 codes is missing with a chance below 1e-8."""
    table = census(MADE_UP, seed=7)
    return {name: table.column(name).to_numpy() for name in table.column_names}


def joint(people, first, second, kept=slice(None)):
    """The shares of a two-way table."""
    shape = CENSUS[first].size, CENSUS[second].size
    cells = np.ravel_multi_index((people[first][kept], people[second][kept]), shape)
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape) / len(cells)


def information(table):
    """Mutual information in nats; of two independent columns about (n - 1) (m - 1) / (2 people)."""
    both = table.sum(axis=1, keepdims=True) * table.sum(axis=0)
    there = table > 0
    return (table[there] * np.log(table[there] / both[there])).sum()


def test_the_made_up_census_has_the_sizes_of_the_paper():
    assert CENSUS.sizes == (92, 2, 4, 51, 52, 14, 5, 477, 4)
    table = census(10, seed=1)
    assert tuple(table.column_names) == CENSUS.names
    assert {str(f.type) for f in table.schema if f.name != "occupation"} == {"uint8"}
    assert str(table.schema.field("occupation").type) == "uint16"
    assert census(0, seed=1).num_rows == 0 and census(0, seed=1).schema == table.schema


def test_the_made_up_census_of_brazil_has_the_sizes_of_the_paper():
    assert BRAZIL.sizes == (101, 2, 4, 26, 29, 5, 5, 512, 4)
    table = census(200_000, seed=1, schema=BRAZIL)
    for attribute in BRAZIL.attributes:
        codes = np.unique(table.column(attribute.name))
        assert len(codes) > 0.95 * attribute.size and codes.max() < attribute.size


def test_the_made_up_census_repeats_by_its_seed_in_several_blocks(monkeypatch):
    monkeypatch.setattr(populations, "_BLOCK", 300)
    table = census(1000, seed=3)
    assert table.num_rows == 1000 and table.column("age").num_chunks == 4
    assert table.equals(census(1000, seed=3))
    assert not table.equals(census(1000, seed=4))
    assert not table.slice(0, 300).equals(table.slice(300, 300))  # a block does not repeat the one before


def test_every_code_of_the_made_up_census_occurs_and_none_beyond(people):
    for attribute in CENSUS.attributes:
        assert np.array_equal(np.unique(people[attribute.name]), np.arange(attribute.size)), attribute.name


@pytest.mark.parametrize("name", ["occupation", "race"])
def test_rare_codes_of_the_made_up_census_are_rare(people, name):
    counts = np.bincount(people[name])
    assert counts.max() > 1000 * counts.min()


def test_the_made_up_census_follows_its_rules(people):
    assert np.array_equal(people["worker"] == 0, people["occupation"] == 0)
    children = people["age"] < 16
    for name in ("marital", "education", "occupation"):
        assert not people[name][children].any()
    assert 0.38 < (people["occupation"] == 0).mean() < 0.44
    assert 0.55 < (people["birthplace"] == people["state"]).mean() < 0.7
    assert 0.05 < (people["birthplace"] == 51).mean() < 0.2


def deviations(conditional, groups, codes):
    """Pearson's chi-square of the codes within their groups, in standard deviations from its mean."""
    steps = conditional.steps.reshape(-1, conditional.codes)
    shares = np.diff(steps, axis=1, prepend=np.arange(len(steps))[:, None])
    cells = groups.astype(np.int64) * conditional.codes + codes
    counts = np.bincount(cells, minlength=shares.size).reshape(shares.shape)
    expected = shares * counts.sum(axis=1, keepdims=True)
    enough = expected >= 5
    square = ((counts - expected)[enough] ** 2 / expected[enough]).sum()
    freedom = enough.sum() - len(steps)
    return (square - freedom) / np.sqrt(2 * freedom)


def test_the_made_up_census_draws_from_its_conditionals(people):
    """Within 6 deviations, which chance exceeds about once in 10^7; the group of the next person is rejected."""
    population, works = populations._population(CENSUS.sizes), people["occupation"] > 0
    cases = [
        (population.race, people["state"], people["race"]),
        (population.birthplace, people["state"], people["birthplace"]),
        (population.marital, people["age"], people["marital"]),
        (population.occupation, (2 * people["education"] + people["gender"])[works], people["occupation"][works] - 1),
    ]
    for conditional, groups, codes in cases:
        assert abs(deviations(conditional, groups, codes)) < 6
        assert deviations(conditional, np.roll(groups, 1), codes) > 6


def test_the_made_up_census_has_dependent_columns(people):
    independent = information(joint({**people, "state": np.roll(people["state"], 1)}, "state", "birthplace"))
    assert information(joint(people, "state", "birthplace")) > 1 > 100 * independent
    works = people["occupation"] > 0
    independent = information(
        joint({**people, "education": np.roll(people["education"], 1)}, "education", "occupation", works)
    )
    assert information(joint(people, "education", "occupation", works)) > 0.15 > 10 * independent
