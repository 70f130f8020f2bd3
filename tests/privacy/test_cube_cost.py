"""Sums and counts together, by exhaustion: no person who comes, goes or is replaced costs more than the guarantee.

A person has up to k rows, each in some cell with some value. All answers are sums over rows: nobody else matters.
"""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from helpers import NEIGHBOURS, Silence
from hushcube import Attribute, Schema, plan
from hushcube.model.measure import Measure
from hushcube.planning.plan import COUNT
from hushcube.private.engines import ExactCounts
from hushcube.private.measure import draw

MEASURES = [
    {"bounds": (0, 3)},
    {"bounds": (1, 3)},
    {"bounds": (-2, 2)},
    {"bounds": (-3, -1)},
    {"bounds": (-1, 3)},
    {"bounds": (0, 1)},
    {"bounds": (100, 200), "resolution": 50},
    {"bounds": (100, 200), "resolution": 25, "center": "middle"},
]


class FullTable(ExactCounts):
    """Exact sums of a full table of integers."""

    def __init__(self, table):
        self._table = table

    @property
    def rows(self):
        return 0

    def tables(self, marginals):
        axes = range(self._table.ndim)
        found = [self._table.sum(axis=tuple(i for i in axes if i not in m)) for m in marginals.tolist()]
        return np.stack(found).reshape(len(found), *(found[0].shape or (1,)))


@pytest.fixture
def drawn():
    return Silence()


def people(sizes, measure, most):
    """What a person may add to the counts and to the sums, as a set of tables."""
    cells, values = list(product(*map(range, sizes))), range(measure.low, measure.high + 1)
    found = {}
    for k in range(most + 1):
        for rows in combinations_with_replacement(list(product(cells, values)), k):
            counts, sums = np.zeros(sizes, np.int64), np.zeros(sizes, np.int64)
            for cell, value in rows:
                counts[cell] += 1
                sums[cell] += value
            found[counts.tobytes() + sums.tobytes()] = counts, sums
    return list(found.values())


def numbers(cube, counts, sums, drawn):
    """The exact integers that are measured, and the weights of their changes."""
    drawn.parameters.clear()
    exact = {COUNT: counts, "v": sums}
    parts = {COUNT: cube.count, **cube.sums}
    measured, noisy = [], []
    for name, part in parts.items():
        _, measurement = draw(part, FullTable(exact[name]), noise=drawn)
        measured += [values.ravel() for values in measurement.values]
        noisy.append(np.isfinite(part.budgets).all())
    return np.concatenate(measured), list(drawn.parameters), all(noisy)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("privacy", [{"epsilon": 1}, {"rho": "1/2"}], ids=str)
@pytest.mark.parametrize("given", MEASURES, ids=str)
@pytest.mark.parametrize(("sizes", "rows"), [((2,), 1), ((2,), 2), ((2, 2), 1)], ids=str)
def test_nobody_costs_more_than_the_guarantee(sizes, rows, given, privacy, neighbours, drawn):
    schema = Schema(
        tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate(sizes)),
        "x",
        measures=(Measure(name="v", **given),),
    )
    measure = schema.measures[0]
    for strategy in ("workload", "identity"):
        cube = plan(
            schema, "cube", measures="avg(v)", neighbours=neighbours, rows_per_person=rows, strategy=strategy, **privacy
        )
        seen = [numbers(cube, *person, drawn) for person in people(sizes, measure, rows)]
        laws = seen[0][1]
        assert all(found[1] == laws for found in seen), "the noise depends on the data"
        promised = cube.privacy.epsilon or cube.privacy.rho
        pure = cube.privacy.is_pure
        nobody = numbers(cube, np.zeros(sizes, np.int64), np.zeros(sizes, np.int64), drawn)
        others = [nobody] if neighbours == "add-remove" else seen
        if rows == 1 and neighbours == "replace-one":  # one row replaces one row
            seen = [found for found in seen if found[0].any()]
            others = seen
        weights = np.array([float(w) if pure else 1 / (2 * float(w)) for w in laws])
        changes = np.array([one[0] - other[0] for one in seen for other in others])
        if len(laws) < changes.shape[1]:  # the public total of the counts comes first
            assert cube.privacy.total_is_public and not changes[:, 0].any()
            changes = changes[:, 1:]
        worst = (np.abs(changes) ** (1 if pure else 2) @ weights).max()
        assert worst <= float(promised) * (1 + 1e-12)
        # Exact but where +Q may become -Q of the same person, who could not also leave; and for values 0 and 1 alone.
        loose = neighbours == "replace-one" and (measure.is_signed or measure.largest == 1)
        assert worst >= float(promised) * (0.4 if loose else 1 - 1e-9)


def test_the_sum_of_values_between_100_and_200_needs_200_and_centred_50():
    assert Measure(name="v", bounds=(100, 200)).largest == 200
    assert Measure(name="v", bounds=(100, 200), center="middle").largest == 50
    assert Fraction(Measure(name="v", bounds=(0, 1), resolution="0.01").largest) == 100
