import math
from fractions import Fraction

import numpy as np
import pytest

from hushcube.private.noise import SeededEntropy, discrete_gaussian, discrete_laplace
from hushcube.private.noise.exact import BLOCK, blocks, distinct

ONE = np.ones(1, np.int64)
ENTROPY = SeededEntropy(1)


@pytest.mark.parametrize("bad", [Fraction(0), Fraction(-1, 3), math.nan, 1.0, 1, "1", None])
def test_bad_rates_and_variances_are_refused_by_name(bad):
    with pytest.raises(ValueError, match=r"rates\[1\]"):
        discrete_laplace([Fraction(1), bad], 1, ENTROPY)
    with pytest.raises(ValueError, match=r"variances\[1\]"):
        discrete_gaussian([Fraction(1), bad], ONE, ENTROPY)


@pytest.mark.parametrize("bad", [-1, 1.0, "1", None])
def test_bad_columns_are_refused_by_name(bad):
    with pytest.raises(ValueError, match="columns"):
        discrete_laplace([Fraction(1)], bad, ENTROPY)


@pytest.mark.parametrize(
    "bad",
    [np.array([0]), np.array([3, -1]), np.array([1.0]), np.array([[1]]), np.array([1], np.int32), [1]],
    ids=str,
)
def test_bad_multipliers_are_refused_by_name(bad):
    with pytest.raises(ValueError, match="multipliers"):
        discrete_gaussian([Fraction(1)], bad, ENTROPY)


def test_what_int64_could_not_hold_is_refused():
    discrete_laplace([Fraction(1, 1 << 52)], 2, ENTROPY)
    with pytest.raises(ValueError, match="rates"):
        discrete_laplace([Fraction(1, (1 << 52) + 1)], 2, ENTROPY)
    discrete_gaussian([Fraction(1 << 40)], np.array([1 << 40]), ENTROPY)
    with pytest.raises(ValueError, match="variances"):
        discrete_gaussian([Fraction(1 << 40)], np.array([1, (1 << 40) + 1]), ENTROPY)


def test_nothing_asked_nothing_drawn():
    none = np.empty(0, np.int64)
    assert discrete_laplace([], 5, ENTROPY).shape == (0, 5)
    assert discrete_laplace([Fraction(1)], 0, ENTROPY).shape == (1, 0)
    assert discrete_gaussian([], ONE, ENTROPY).shape == (0, 1)
    assert discrete_gaussian([Fraction(1)], none, ENTROPY).shape == (1, 0)
    assert discrete_gaussian([], none, ENTROPY).dtype == discrete_laplace([], 0, ENTROPY).dtype == np.int64


@pytest.mark.parametrize("value", [Fraction(10) ** 400, Fraction(10**400 + 1, 10**398), Fraction(1 << 200)])
def test_numbers_beyond_floats(value):
    assert not discrete_laplace([value], 1000, ENTROPY).any()
    assert not discrete_gaussian([1 / value], np.ones(1000, np.int64), ENTROPY).any()


def test_equal_fractions_are_one_law():
    values, index = distinct([Fraction(1, 3), Fraction(2, 6), Fraction(1), Fraction(1, 3)], "rates")
    assert values == [Fraction(1, 3), Fraction(1)]
    assert index.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("shape", [(1, 2 * BLOCK + 5), (3, BLOCK + 1), (BLOCK + 7, 3), (5, 7), (4, 0), (0, 4)])
def test_blocks_cover_every_cell_once(shape):
    seen = np.zeros(shape, int)
    for rows, columns in blocks(*shape):
        seen[rows, columns] += 1
        assert seen[rows, columns].size <= BLOCK
    assert (seen == 1).all()


def test_the_same_seed_gives_the_same_noise():
    variances = [Fraction(2), Fraction(900), Fraction(1, 7)]
    first, second = (discrete_gaussian(variances, np.arange(1, 500), SeededEntropy(9)) for _ in range(2))
    assert (first == second).all()
