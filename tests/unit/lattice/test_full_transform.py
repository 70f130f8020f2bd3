"""The marginals of a full table by shared sums, their transpose and the minima, against numpy one by one."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hushcube.lattice.family import Family
from hushcube.lattice.summing import FullTable

SHAPES = [(2, 3, 4), (2, 1, 3), (7,), (5, 4, 3, 2, 3), (70, 3), (3, 70, 2), (2,) * 9, (9, 16, 7, 2)]


def out(shape, marginal):
    return tuple(i for i in range(len(shape)) if i not in marginal)


@st.composite
def full_tables(draw):
    shape = draw(st.sampled_from(SHAPES))
    every = [m for k in range(len(shape) + 1) for m in combinations(range(len(shape)), k)]
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=12, unique=True))
    return FullTable(shape, Family.of(chosen, shape)), np.random.default_rng(draw(st.integers(0, 99)))


@settings(deadline=None, max_examples=60)
@given(full_tables())
def test_sums_and_minima_are_those_of_each_marginal(case):
    full, rng = case
    table = rng.normal(size=full.shape)
    sums, minima = full.sums(table), full.minima(table)
    assert len(sums) == len(minima) == full.length
    for marginal, place in full.places.items():
        axes = out(full.shape, marginal)
        np.testing.assert_allclose(sums[place], table.sum(axis=axes).ravel(), atol=1e-10)
        np.testing.assert_array_equal(minima[place], table.min(axis=axes).ravel())


@settings(deadline=None, max_examples=60)
@given(full_tables())
def test_the_adjoint_spreads_every_marginal_and_keeps_its_argument(case):
    full, rng = case
    values = rng.normal(size=full.length)
    kept = values.copy()
    expected = np.zeros(full.shape)
    for marginal, place in full.places.items():
        expected += full.along(marginal, values[place])
    found = full.adjoint(values)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(values, kept)
    found += 1  # the caller's own: a second call must not see it
    np.testing.assert_allclose(full.adjoint(values), expected, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_marginals_at_all(shape):
    full = FullTable(shape, Family.of([], shape))
    assert full.sums(np.ones(shape)).size == full.minima(np.ones(shape)).size == 0
    assert not full.adjoint(np.zeros(0)).any()
