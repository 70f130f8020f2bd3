"""Controlled rounding: exact totals, no cell moved by 1, small errors in margins."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from hushcube.errors import BadInput
from hushcube.faces.rounding import round_parts, round_table

cells = st.one_of(st.floats(0, 3), st.integers(0, 3).map(float), st.just(0.3))
tables = arrays(np.float64, array_shapes(min_dims=1, max_dims=4, max_side=5), elements=cells)


@given(tables, st.booleans())
def test_total_is_exact_and_no_cell_moves_by_one(table, up):
    total = int(np.ceil(table.sum()) if up else np.floor(table.sum()))
    rounded = round_table(table, total)
    assert rounded.dtype == np.int64
    assert rounded.shape == table.shape
    assert rounded.sum() == total
    assert (rounded >= 0).all()
    if abs(table.sum() - round(table.sum())) > 1e-5 or total == round(table.sum()):
        assert (np.abs(rounded - table) < 1).all()


@given(tables, st.integers(0, 50))
def test_any_total_is_reached(table, total):
    rounded = round_table(table, total)
    assert rounded.sum() == total
    assert (rounded >= 0).all()
    if table.sum() > 1e-3:
        scaled = table * (total / table.sum())
        if abs(table.sum() - total) >= 1:
            assert (np.abs(rounded - scaled) < 1 + 1e-6).all()


@given(tables, st.data())
def test_parts_keep_their_totals(table, data):
    labels = data.draw(arrays(np.int64, table.shape, elements=st.integers(0, 2)))
    sums = np.bincount(labels.ravel(), table.ravel(), 3)
    totals = np.round(sums).astype(np.int64) + np.array(data.draw(st.lists(st.integers(0, 2), min_size=3, max_size=3)))
    totals[np.bincount(labels.ravel(), minlength=3) == 0] = 0
    rounded = round_parts(table, labels, totals)
    assert (rounded >= 0).all()
    assert np.bincount(labels.ravel(), rounded.ravel(), 3).tolist() == totals.tolist()
    for part in range(3):
        if abs(sums[part] - totals[part]) < 0.999:
            assert (np.abs(rounded - table)[labels == part] < 1).all()


def test_whole_tables_stay():
    table = np.random.default_rng(0).integers(0, 3, (4, 5, 6))
    assert (round_table(table + 1e-12, int(table.sum())) == table).all()


def test_one_part_is_the_whole():
    table = np.random.default_rng(0).gamma(0.2, 1, (3, 4, 5))
    total = round(table.sum())
    assert (round_parts(table, np.zeros(table.shape, np.int64), np.array([total])) == round_table(table, total)).all()


def test_margins_are_nearer_than_by_random_rounding():
    rng = np.random.default_rng(1)
    shape = (2, 3, 4, 5, 6)
    table = rng.gamma(0.1, 3, shape)
    table *= 300 / table.sum()

    def error(rounded):
        sums = ((rounded - table).sum(axis=drop).ravel() for k in (2, 3, 4) for drop in combinations(range(5), k))
        return np.sqrt(np.mean(np.concatenate(list(sums)) ** 2))

    by_chance = np.mean([error(np.floor(table) + (rng.random(shape) < table % 1)) for _ in range(20)])
    assert error(round_table(table, 300)) < 0.8 * by_chance
    assert np.abs((round_table(table, 300) - table).sum(axis=(2, 3, 4))).max() < 1.0001  # the smallest attributes lead


def test_an_empty_part_is_filled_evenly():
    assert round_parts(np.zeros(4), np.array([0, 0, 1, 1]), np.array([2, 0])).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("table, total", [([-1.0, 2.0], 1), ([np.nan, 1.0], 1), ([1.0], -1), ([], 0)])
def test_bad_tables_are_refused(table, total):
    with pytest.raises(BadInput):
        round_table(np.array(table), total)


def test_bad_parts_are_refused():
    with pytest.raises(BadInput, match="labels"):
        round_parts(np.ones(2), np.array([0, 2]), np.array([1, 1]))
    with pytest.raises(BadInput, match="totals"):
        round_parts(np.ones(2), np.array([0, 0]), np.array([2, 1]))
