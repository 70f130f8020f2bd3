"""People for tests and benchmarks: Berkeley's applicants, row by row, and large made-up populations.

`census` draws each person from a chain of conditional distributions, none of which was estimated from a file:

    age, state;  gender | age;  marital | age;  education | age;  birthplace | state;  race | state;
    in work | age;  occupation | education, gender, in work;  worker | occupation
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.samples import people_of

Floats = NDArray[np.float64]
Codes = NDArray[Any]

BERKELEY: Final = Schema(
    (
        Attribute(name="department", values=tuple("ABCDEF")),
        Attribute(name="gender", values=("female", "male")),
        Attribute(name="admitted", values=("no", "yes")),
    ),
    "berkeley",
)
"""The 4,526 applicants to the six largest departments at Berkeley in 1973 (Bickel, Hammel, O'Connell 1975)."""

_BERKELEY_COUNTS: Final = (
    # department: (female, male), each (rejected, admitted)
    ((19, 89), (313, 512)),
    ((8, 17), (207, 353)),
    ((391, 202), (205, 120)),
    ((244, 131), (279, 138)),
    ((299, 94), (138, 53)),
    ((317, 24), (351, 22)),
)

ADULT8: Final = Schema(
    tuple(
        Attribute(name=name, codes=size)
        for name, size in {
            "workclass": 9,
            "education": 16,
            "marital": 7,
            "occupation": 15,
            "relationship": 6,
            "race": 5,
            "sex": 2,
            "salary": 2,
        }.items()
    ),
    "adult8",
)
"""The eight categorical attributes of the Adult data by their sizes: plans need no more."""


def _census_of(name: str, *, ages: int, states: int, birthplaces: int, races: int, occupations: int) -> Schema:
    sizes = {"age": ages, "gender": 2, "marital": 4, "state": states, "birthplace": birthplaces, "race": races}
    sizes |= {"education": 5, "occupation": occupations, "worker": 4}
    return Schema(tuple(Attribute(name=name, codes=size) for name, size in sizes.items()), name)


CENSUS: Final = _census_of("census", ages=92, states=51, birthplaces=52, races=14, occupations=477)
"""The attributes and sizes of a United States census [Xiao et al. 2011, Table 4]; `census` makes up its people."""
BRAZIL: Final = _census_of("brazil", ages=101, states=26, birthplaces=29, races=5, occupations=512)
"""The same for Brazil."""

_BLOCK: Final = 1_000_000
"""Rows that are drawn at a time, so that memory is little more than the columns."""
_POPULATION: Final = 2011
"""The one made-up population: a caller's seed draws other people from it, never another population."""


def berkeley() -> Any:
    """Berkeley's applicants as an Arrow table, one row each."""
    return people_of(BERKELEY, np.array(_BERKELEY_COUNTS))


def generated(rows: int, sizes: tuple[int, ...], seed: int) -> Any:
    """Made-up people with skewed, correlated codes in the columns a0, a1, ...: for timing, not for facts."""
    import pyarrow as pa

    random = np.random.default_rng(seed)
    hidden = random.random(rows)
    columns = {}
    for i, n in enumerate(sizes):
        mixed = np.where(random.random(rows) < 0.5, hidden, random.random(rows))
        columns[f"a{i}"] = np.minimum((mixed**2 * n).astype(np.int64), n - 1).astype(np.min_scalar_type(n - 1))
    return pa.table(columns)


def census(rows: int, seed: int, schema: Schema = CENSUS) -> Any:
    """Made-up people of CENSUS or BRAZIL as an Arrow table of codes: skewed and dependent, but no facts.

    Every code of CENSUS has a probability above 1/20,000, so that all of them are there in a few hundred thousand rows.
    """
    import pyarrow as pa

    population, random = _population(schema.sizes), np.random.default_rng(seed)
    starts = range(0, max(rows, 1), _BLOCK)
    return pa.concat_tables([pa.table(population.draw(min(_BLOCK, rows - start), random)) for start in starts])


@dataclass(frozen=True, eq=False)
class _Conditional:
    """A distribution of codes for each group."""

    steps: Floats
    """Group g's cumulated probabilities plus g, one group after the other: increasing from 0 to the groups' number."""
    codes: int

    @classmethod
    def of(cls, weights: ArrayLike) -> _Conditional:
        """From the weights of the codes, a row for each group."""
        rows = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        steps = np.cumsum(rows, axis=1)
        steps /= steps[:, -1:]
        return cls((steps + np.arange(len(rows))[:, None]).ravel(), rows.shape[1])

    def draw(self, groups: Codes | int, size: int, random: np.random.Generator) -> Codes:
        """A code for each row, given the rows' groups."""
        # odd multiples of 2^-33 lie strictly between two integers, so that no draw leaves its group
        inside = (random.integers(0, 2**32, size, dtype=np.uint32) + 0.5) / 2**32
        found = np.searchsorted(self.steps, inside + groups)
        return (found - np.multiply(groups, self.codes, dtype=np.int64)).astype(np.min_scalar_type(self.codes - 1))


@dataclass(frozen=True, eq=False)
class _Population:
    """The conditional distributions behind `census`."""

    age: _Conditional
    gender: _Conditional
    marital: _Conditional
    state: _Conditional
    birthplace: _Conditional
    race: _Conditional
    education: _Conditional
    works: _Conditional
    occupation: _Conditional
    worker: _Conditional

    def draw(self, size: int, random: np.random.Generator) -> dict[str, Codes]:
        """The columns of some people."""
        age, state = self.age.draw(0, size, random), self.state.draw(0, size, random)
        gender, education = self.gender.draw(age, size, random), self.education.draw(age, size, random)
        occupation = self.occupation.draw(2 * education + gender, size, random) + np.uint16(1)
        occupation *= self.works.draw(age, size, random)
        return {
            "age": age,
            "gender": gender,
            "marital": self.marital.draw(age, size, random),
            "state": state,
            "birthplace": self.birthplace.draw(state, size, random),
            "race": self.race.draw(state, size, random),
            "education": education,
            "occupation": occupation,
            "worker": self.worker.draw(occupation, size, random),
        }


@cache
def _population(sizes: tuple[int, ...]) -> _Population:
    ages, _, _, states, birthplaces, races, _, occupations, _ = sizes
    random = np.random.default_rng(_POPULATION)
    age = np.arange(float(ages))
    state = random.permutation((np.arange(states) + 3.0) ** -1.3)  # of 51 the largest has 1/6, the smallest 1/250
    state /= state.sum()
    abroad = random.uniform(0.02, 0.25, (states, 1))
    home = 0.58 * np.eye(states) + (0.42 - abroad) * state
    elsewhere = 0.5 ** np.arange(1.0, birthplaces - states + 1)  # each place abroad has half the people of another
    race = np.arange(1.0, races + 1) ** -3 * np.exp(random.normal(0, 0.7, (states, races)))
    return _Population(
        age=_Conditional.of(np.exp(-age / 250 - np.exp((age - 82) / 9))),  # slow growth, then Gompertz's mortality
        gender=_Conditional.of(_either(0.49 + 0.2 * (age / age[-1]) ** 4)),  # code 1 lives longer
        marital=_Conditional.of(_marital(age)),
        state=_Conditional.of(state),
        birthplace=_Conditional.of(np.hstack([home, abroad * elsewhere / elsewhere.sum()])),  # the last are abroad
        race=_Conditional.of(race),
        education=_Conditional.of(_education(age)),
        works=_Conditional.of(_either(np.where(age < 16, 0.0, 0.88 / (1 + np.exp((age - 70) / 4))))),
        occupation=_Conditional.of(_occupation(random, occupations - 1)),
        # no class of worker without an occupation; each occupation has its own mix of the others
        worker=_Conditional.of(
            np.vstack([np.eye(1, 4), np.pad(random.dirichlet((3, 0.6, 0.4), occupations - 1), ((0, 0), (1, 0)))])
        ),
    )


def _either(probability: Floats) -> Floats:
    """The weights of the codes 0 and 1, given the probability of 1."""
    return np.stack([1 - probability, probability], axis=1)


def _marital(age: Floats) -> Floats:
    """Never married, married, divorced, widowed: by age; below 18 never."""
    never = 0.06 + 0.94 * np.exp(-np.maximum(age - 18, 0) / 10)
    widowed = 1 / (1 + np.exp((78 - age) / 7))
    return np.stack([never, *((1 - never) * part for part in ((1 - widowed) * 0.82, (1 - widowed) * 0.18, widowed))], 1)


def _education(age: Floats) -> Floats:
    """Five levels: each from the age at which it can be reached, the higher ones rarer among the old."""
    reached = age[:, None] >= np.array([0, 17, 19, 22, 25])
    rarer = np.exp(-np.arange(5.0) * np.maximum(age[:, None] - 35, 0) / 90)
    return np.where(reached, np.array([0.12, 0.30, 0.28, 0.19, 0.11]) * rarer, 0.0)


def _occupation(random: np.random.Generator, jobs: int) -> Floats:
    """Zipf's law, bent by the education and the gender that each occupation attracts; row 2 education + gender."""
    common = random.permutation(1 / np.arange(1.0, jobs + 1))
    level, lean = random.uniform(0, 4, jobs), random.normal(0, 0.6, jobs)
    education, gender = np.arange(5.0)[:, None, None], np.array([-1.0, 1.0])[:, None]
    return (common * np.exp(-((education - level) ** 2) / 2 + gender * lean)).reshape(10, jobs)
