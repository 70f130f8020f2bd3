"""The cases: people, the tables asked of them, the guarantees, and how far off tables are.

Sizes are the values that occur: what is compared are errors, and no guarantee rests on them here. Every method is given
the same rho, that of (epsilon, delta) by the conversion of zero-concentrated privacy.   [src/hushcube/costs/calibrate]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.datasets import shared
from tests.populations import census

from benchmarks.peers.judge import rmse
from benchmarks.peers.one_job import Job
from hushcube.costs.calibrate import zcdp_rho

DELTA = 1e-9
EPSILONS = (1.0, 0.1, 10.0)
FEWER_CELLS = 10_000
"""Of a three-way table of large attributes: larger ones are not asked for."""
CENSUS_PEOPLE = 200_000


class Absent(Exception):
    """Why a case cannot be run."""


def coded(table: pa.Table) -> tuple[tuple[int, ...], np.ndarray]:
    """The number of values of each column, and people as positions among them: (people, attributes)."""
    columns = [np.unique(column.to_numpy(zero_copy_only=False), return_inverse=True) for column in table.columns]
    return tuple(len(values) for values, _ in columns), np.stack([codes for _, codes in columns], axis=1)


def _file(name: str, columns: Callable[[list[str]], list[str]] = list) -> tuple[tuple[int, ...], np.ndarray]:
    try:
        path = shared(name)
    except pytest.skip.Exception as reason:
        raise Absent(str(reason)) from None
    return coded(pq.read_table(path, columns=columns(pq.read_schema(path).names)))


def generated_census() -> tuple[tuple[int, ...], np.ndarray]:
    """Made-up people: age in fives, occupations in groups of twenty, and an income that hangs on four others."""
    table = census(CENSUS_PEOPLE, seed=18)
    columns = {name: table.column(name).to_numpy().astype(np.int64) for name in table.column_names}
    random = np.random.default_rng(18)
    group = columns["occupation"] // 20
    pay = random.normal(size=int(group.max()) + 1)[group]
    worth = 0.5 * columns["education"] + 0.7 * pay - 0.4 * columns["gender"] - ((columns["age"] - 50) / 30.0) ** 2
    worth += random.normal(size=len(worth)) - 4.0 * (columns["occupation"] == 0)
    bands = np.searchsorted(np.quantile(worth, np.linspace(0, 1, 11)[1:-1]), worth)
    return coded(pa.table({**columns, "age": columns["age"] // 5, "occupation": group, "income": bands}))


EVEN, FALLING = 1, 4
GENERATED = {
    "generated, some fall off": [(n, power) for power in (EVEN, FALLING) for n in (6, 8, 10)],
    "generated, all fall off": [(n, FALLING) for n in (2, 4, 6, 9, 12)],
}
"""The number of values of each attribute, and how its counts fall off."""


def generated(attributes: Sequence[tuple[int, int]], people: int, seed: int) -> np.ndarray:
    """Made-up people whose counts fall off or are even: (people, attributes).

    The code of an attribute of n values is [n u^power], u even on (0, 1): with a power of 1 all values are as frequent,
    with a power of 4 the first one has a share of n^(-1/4). In every attribute one half of the people, drawn anew, has
    a u of its own; the others have the one u that is theirs in all attributes, so that attributes depend on each other.
    """
    random = np.random.default_rng([seed, people])
    hidden = random.random(people)
    mixed = [np.where(random.random(people) < 0.5, hidden, random.random(people)) for _ in attributes]
    return np.stack([(u**power * n).astype(np.int64) for u, (n, power) in zip(mixed, attributes, strict=True)], axis=1)


def tiny() -> tuple[tuple[int, ...], np.ndarray]:
    """A few thousand made-up people of four attributes, for tests."""
    random = np.random.default_rng(4)
    hidden = random.random(4000)
    return coded(
        pa.table(
            {f"a{i}": (hidden * (1 - 0.3 * random.random(4000)) * n).astype(int) for i, n in enumerate((2, 3, 4, 5))}
        )
    )


@dataclass(frozen=True)
class Case:
    """People, and the most cells that a three-way table of theirs may have."""

    name: str
    people: Callable[[], tuple[tuple[int, ...], np.ndarray]]
    most_cells: float = math.inf

    def job(self, order: int, epsilon: float) -> Job:
        """All tables of so many attributes, under the rho of (epsilon, delta)."""
        sizes, codes = _people(self)
        tables = tuple(
            table
            for table in combinations(range(len(sizes)), order)
            if order < 3 or math.prod(sizes[i] for i in table) <= self.most_cells
        )
        return Job(sizes, tables, codes, rho=zcdp_rho(epsilon, DELTA))


@cache
def _people(case: Case) -> tuple[tuple[int, ...], np.ndarray]:
    return case.people()


ADULT8 = Case("Adult-8", lambda: _file("adult8.parquet"))
ADULT15 = Case(
    "Adult-15", lambda: _file("adult15.parquet", lambda names: [n for n in names if n != "fnlwgt"]), FEWER_CELLS
)
NLTCS = Case("NLTCS", lambda: _file("nltcs.parquet"))
ACS = Case("ACS 2018", lambda: _file("acs2018_census9.parquet", lambda names: names[:9]), FEWER_CELLS)
CENSUS = Case("generated census", generated_census, FEWER_CELLS)
TINY = Case("tiny", tiny)

CASES = {case.name: case for case in (ADULT8, NLTCS, ACS, ADULT15, CENSUS)}
WORKLOADS = {"2-way": 2, "3-way": 3}


def settings() -> Iterator[tuple[Case, str, float]]:
    """All cases with their tables and epsilon, the quick ones first."""
    small = (ADULT8, NLTCS)
    order = [(case, words) for case in small for words in WORKLOADS]
    order += [(case, words) for words in WORKLOADS for case in CASES.values() if case not in small]
    for case, words in order:
        for epsilon in EPSILONS:
            yield case, words, epsilon


def errors(job: Job, answers: Sequence[np.ndarray]) -> dict[str, float]:
    """How far off tables are.

    l1: sum over cells of |error| / people, the mean over tables: what AIM's paper reports
    rmse: the root of the mean squared error over all cells of all tables;  max: the largest error of a cell
    """
    off = [np.abs(found - job.exact(table)).ravel() for table, found in zip(job.tables, answers, strict=True)]
    cells = np.concatenate(off)
    per_table = np.add.reduceat(cells, np.cumsum([0, *(len(o) for o in off)])[:-1]) / len(job.codes)
    return {"l1": float(per_table.mean()), "rmse": rmse(cells), "max": float(cells.max())}
