"""Small published tables of people, built in for demonstrations and tests: public facts, row by row."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema

TITANIC: Final = Schema(
    (
        Attribute(name="class", values=("1st", "2nd", "3rd", "crew"), ordered=True),
        Attribute(name="sex", values=("female", "male")),
        Attribute(name="age", values=("child", "adult"), ordered=True),
        Attribute(name="survived", values=("no", "yes")),
    ),
    "titanic",
)
"""The 2,201 people aboard the Titanic (Dawson 1995, from the British Board of Trade's inquiry of 1912)."""

_TITANIC_COUNTS: Final = (
    # class: (female child, female adult, male child, male adult), each (died, survived)
    ((0, 1), (4, 140), (0, 5), (118, 57)),
    ((0, 13), (13, 80), (0, 11), (154, 14)),
    ((17, 14), (89, 76), (35, 13), (387, 75)),
    ((0, 0), (3, 20), (0, 0), (670, 192)),
)

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


def titanic() -> Any:
    """The Titanic's people as an Arrow table, one row each."""
    return _people(TITANIC, np.array(_TITANIC_COUNTS).reshape(4, 2, 2, 2))


def berkeley() -> Any:
    """Berkeley's applicants as an Arrow table, one row each."""
    return _people(BERKELEY, np.array(_BERKELEY_COUNTS))


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


def _people(schema: Schema, counts: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
    import pyarrow as pa

    cells = np.repeat(np.arange(counts.size), counts.ravel())
    positions = np.unravel_index(cells, schema.sizes)
    return pa.table(
        {a.name: pa.array(np.array(a.labels)[p]) for a, p in zip(schema.attributes, positions, strict=True)}
    )
