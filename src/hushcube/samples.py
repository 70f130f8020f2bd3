"""People built in for demonstrations: those of the Titanic, and a made-up hospital's.

`hospital` draws each stay from a chain of conditional distributions, none of which was estimated from a file:

    region;  age | region;  sex;  diagnosis | age, sex;  season | diagnosis;  admission | diagnosis;
    ward | diagnosis, age;  outcome | age, diagnosis;  nights | age, diagnosis, admission
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hushcube.model.arrays import Floats, Ints
from hushcube.model.attribute import Attribute
from hushcube.model.measure import Measure
from hushcube.model.schema import Schema

Codes = Ints

TITANIC: Final = Schema(
    (
        Attribute(name="class", values=("1st", "2nd", "3rd", "crew"), ordered=True),
        Attribute(name="sex", values=("female", "male")),
        Attribute(name="age", values=("child", "adult"), ordered=True),
        Attribute(name="survived", values=("no", "yes")),
    ),
    "titanic",
    title="People aboard the Titanic",
    source="Dawson 1995, from the British Board of Trade's inquiry of 1912",
    period="April 1912",
)
"""The 2,201 people aboard the Titanic (Dawson 1995, from the British Board of Trade's inquiry of 1912)."""

_TITANIC_COUNTS: Final = (
    # class: (female child, female adult, male child, male adult), each (died, survived)
    ((0, 1), (4, 140), (0, 5), (118, 57)),
    ((0, 13), (13, 80), (0, 11), (154, 14)),
    ((17, 14), (89, 76), (35, 13), (387, 75)),
    ((0, 0), (3, 20), (0, 0), (670, 192)),
)

HOSPITAL: Final = Schema(
    (
        Attribute(name="region", values=("north", "east", "south", "west", "coast", "city")),
        Attribute(name="age", values=(*(f"{start}-{start + 9}" for start in range(0, 70, 10)), "70+"), ordered=True),
        Attribute(name="sex", values=("female", "male")),
        Attribute(name="season", values=("winter", "spring", "summer", "autumn")),
        Attribute(
            "diagnosis",
            values=(
                *("heart", "lungs", "digestion", "cancer", "injury"),
                *("infection", "mind", "bones", "pregnancy", "other"),
            ),
        ),
        Attribute(name="admission", values=("emergency", "planned", "transfer")),
        Attribute("ward", values=("medicine", "surgery", "cardiology", "orthopaedics", "paediatrics", "maternity")),
        Attribute(name="outcome", values=("home", "care home", "transfer", "died")),
    ),
    "hospital",
    measures=(Measure("nights", bounds=(0, 30), center="middle", title="Nights in hospital"),),
    title="Stays at a made-up hospital",
    source="made up by hushcube",
    unit_noun="stays",
)
"""The stays of a made-up hospital's patients, one each, and how many nights they lasted."""

_STAYS: Final = 100_000
_DIAGNOSES: Final = (
    # peak age, its spread, how common; emergency, planned, transfer; medicine, surgery, cardiology, orthopaedics;
    # nights, danger, how much more in winter
    ((75, 15, 9), (6, 3, 2), (4, 1, 9, 0), (6, 3, 0.1)),  # heart
    ((70, 35, 8), (7, 2, 1), (9, 1, 0, 0), (7, 2, 0.6)),  # lungs
    ((50, 30, 9), (5, 5, 1), (5, 6, 0, 0), (4, 1, 0)),  # digestion
    ((68, 14, 8), (1, 8, 1), (4, 7, 0, 0), (7, 4, 0)),  # cancer
    ((30, 40, 7), (9, 0.5, 1), (1, 4, 0, 8), (4, 1, -0.3)),  # injury
    ((5, 40, 6), (8, 1, 1), (9, 1, 0, 0), (5, 2, 0.6)),  # infection
    ((40, 18, 4), (5, 4, 2), (9, 0, 0, 0), (14, 0.3, 0)),  # mind
    ((66, 16, 7), (1, 9, 0.5), (1, 1, 0, 9), (5, 0.5, 0)),  # bones
    ((31, 6, 40), (5, 6, 0.5), (0, 0, 0, 0), (2, 0.01, 0)),  # pregnancy
    ((45, 60, 9), (4, 5, 1), (6, 3, 1, 1), (2, 0.5, 0)),  # other
)
_PREGNANCY: Final = 8


def titanic() -> Any:
    """The Titanic's people as an Arrow table, one row each."""
    return people_of(TITANIC, np.array(_TITANIC_COUNTS).reshape(4, 2, 2, 2))


def hospital(stays: int = _STAYS, seed: int = 1) -> Any:
    """The hospital's stays as an Arrow table, one row each; the same people whenever they are asked for."""
    import pyarrow as pa

    random = np.random.default_rng(seed)
    ages, ways, wards, courses = (np.array(column, np.float64) for column in zip(*_DIAGNOSES, strict=True))
    decade = np.arange(5.0, 85, 10)
    region = _draw(np.tile([6, 7, 5, 8, 4, 14.0], (stays, 1)), random)
    older = np.array([0, 0, 0, 0, 25, -10.0])  # years by which a region's patients are older
    age = _draw(np.exp(-(((decade - 50 - older[region, None]) / 35) ** 2)), random)
    sex = _draw(np.ones((stays, 2)), random)
    common = ages[:, 2] * np.exp(-(((decade[age, None] - ages[:, 0]) / ages[:, 1]) ** 2))
    common[(sex == 1) | (age < 1) | (age > 5), _PREGNANCY] = 0
    diagnosis = _draw(common, random)
    season = _draw(1 + courses[diagnosis, 2:] * np.array([1, 0, -1, 0]), random)
    admission = _draw(ways[diagnosis], random)
    places = np.hstack([wards[diagnosis], np.zeros((stays, 2))])
    places[age < 2, 4] = 30  # most of the young are in the children's ward
    places[diagnosis == _PREGNANCY] = np.eye(6)[5]
    ward = _draw(places, random)
    frailty = age / 7
    endings = [np.full(stays, 20.0), 8 * frailty**4, np.full(stays, 0.8), frailty**3 * courses[diagnosis, 1]]
    outcome = _draw(np.stack(endings, axis=1), random)
    usual = courses[diagnosis, 0] * (0.6 + frailty) * np.array([1.1, 0.7, 1.5])[admission]
    nights = np.minimum(random.gamma(1.5, usual / 1.5).astype(np.int64), 30)
    codes = (region, age, sex, season, diagnosis, admission, ward, outcome)
    return pa.table({**_labelled(HOSPITAL, codes), "nights": nights})


def _draw(weights: Floats, random: np.random.Generator) -> Codes:
    """A code for each row, by the weights of its codes."""
    steps = np.cumsum(weights, axis=1)
    drawn = random.random((len(steps), 1)) * steps[:, -1:]
    return np.asarray((drawn >= steps).sum(axis=1), dtype=np.int64)


def people_of(schema: Schema, counts: Ints) -> Any:
    """The people behind a full table of counts, as an Arrow table of codes."""
    import pyarrow as pa

    cells = np.repeat(np.arange(counts.size), counts.ravel())
    return pa.table(_labelled(schema, np.unravel_index(cells, schema.sizes)))


def _labelled(schema: Schema, codes: Sequence[Codes]) -> dict[str, Any]:
    """A column for each attribute, as it stands in data."""
    return {a.name: np.array(a.coded)[c] for a, c in zip(schema.attributes, codes, strict=True)}
