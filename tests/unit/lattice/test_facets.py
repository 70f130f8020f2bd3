"""Factors of residual spaces applied by margins: the way through coefficients is the judge."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hushcube.lattice.coefficients import Projection
from hushcube.lattice.facets import ByCoefficients, ByMargins, scaled
from hushcube.lattice.family import Family

SIZES = [(2, 3, 4, 2, 3), (3, 1, 2, 5, 2), (2, 2, 2, 2, 2), (70, 2, 3, 1, 2)]


def projection(tables, sizes):
    family = Family.of(tables, sizes)
    return Projection(family, np.ones(len(family)), family.closure)


@st.composite
def cases(draw):
    """Some tables of k attributes, factors, cells, and which cells are held."""
    sizes, k = draw(st.sampled_from(SIZES)), draw(st.integers(1, 4))
    every = list(combinations(range(5), k))
    to = projection(draw(st.sets(st.sampled_from(every), min_size=1)), sizes)
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    return to, random.uniform(0, 2, len(to.spaces)), random.normal(size=to.cells), random.random(to.cells) < 0.4


@given(cases())
def test_by_margins_is_by_coefficients(case):
    to, factors, cells, _ = case
    assert isinstance(scaled(to), ByMargins)
    np.testing.assert_allclose(scaled(to).by(factors)(cells), ByCoefficients(to).by(factors)(cells), atol=1e-12)


@given(cases())
def test_cells_that_are_not_held_are_zero_and_not_found(case):
    to, factors, cells, held = case
    whole = scaled(to).by(factors)(np.where(held, cells, 0.0))[held]
    for way in (scaled(to), ByCoefficients(to)):
        np.testing.assert_allclose(way.within(held).by(factors)(cells[held]), whole, atol=1e-12)


@pytest.mark.parametrize(
    "tables", [[()], [(0, 1), (2,)], [(0,), (0, 1)], [tuple(range(5))]], ids=["total", "mixed", "inside", "large"]
)
def test_other_families_go_by_coefficients(tables):
    assert isinstance(scaled(projection(tables, (2, 3, 2, 2, 2))), ByCoefficients)


def test_spaces_that_are_left_out_stay_zero():
    family = Family.of([(0, 1)], (2, 3))
    to = Projection(family, np.ones(1), Family.of([(), (0,)], (2, 3)))
    assert scaled(to).by(np.ones(2))(np.arange(6.0)) == pytest.approx([1, 1, 1, 4, 4, 4])
