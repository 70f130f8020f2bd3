"""Synthetic people: counted tables are whole and add up, and a start grown from two-way tables is near."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import datasets
from hushcube.errors import BadInput, TimeLimitReached, TooLarge
from hushcube.faces.crowd import narrow
from hushcube.faces.people import PeopleTables, chained, count, from_table, match, require_room
from hushcube.faces.rounding import round_table
from hushcube.lattice.coefficients import Weighed
from hushcube.lattice.family import Family
from hushcube.progress import Clock


def independent(sizes, ones, total, rng):
    """People whose one-way tables are the given ones, rounded; the attributes are independent of each other."""
    columns = [np.repeat(np.arange(len(one)), round_table(np.maximum(one, 0.0), total)) for one in ones]
    return narrow(np.stack([rng.permutation(column) for column in columns], axis=1), sizes)


def family(sizes, orders):
    return Family.of([row for k in orders for row in combinations(range(len(sizes)), k)], sizes)


def counted(codes, sizes, tables):
    return [count(codes, sizes, batch.rows, batch.shape) for batch in tables.batches]


def ones(tables, values):
    """Targets of equal weight."""
    return Weighed(tables, values, np.ones(len(tables)))


def rms(some, others):
    squares = sum(((a - b) ** 2).sum() for a, b in zip(some, others, strict=True))
    return np.sqrt(squares / sum(a.size for a in some))


def correlated(rng, sizes, people):
    latent = rng.integers(0, 4, people)
    chances = [rng.dirichlet(np.full(size, 0.5), 4) for size in sizes]
    columns = [(chance[latent].cumsum(axis=1) < rng.random((people, 1))).sum(axis=1) for chance in chances]
    return np.minimum(np.stack(columns, axis=1), np.array(sizes) - 1)


@given(st.integers(0, 10**6), st.sampled_from([(2, 3, 4), (7,), (2, 1, 3), (300, 2)]))
def test_people_count_to_the_table_they_came_from(seed, sizes):
    table = np.random.default_rng(seed).poisson(0.7, sizes)
    codes = from_table(table)
    assert codes.shape == (table.sum(), len(sizes))
    assert codes.dtype == (np.uint16 if max(sizes) > 256 else np.uint8)
    assert (count(codes, sizes, np.arange(len(sizes), dtype=np.int32)[None], sizes)[0] == table).all()


def test_counts_add_up_in_every_margin():
    sizes = (2, 3, 4)
    table = np.random.default_rng(0).poisson(2, sizes)
    answers = PeopleTables(from_table(table), sizes)
    for k in range(4):
        for row in combinations(range(3), k):
            shape = tuple(sizes[a] for a in row)
            found = answers.tables(np.array([row], np.int32).reshape(1, k), shape)
            assert found.shape == (1, *shape)
            assert found.dtype == np.float64
            assert (found[0] == table.sum(axis=tuple(a for a in range(3) if a not in row))).all()


def test_independent_people_meet_the_one_way_tables():
    rng = np.random.default_rng(0)
    one_way = [np.array([0.3, 99.7]), np.array([20.0, 30.0, 50.0])]
    codes = independent((2, 3), one_way, 100, rng)
    assert np.bincount(codes[:, 1]).tolist() == [20, 30, 50]
    assert abs(np.bincount(codes[:, 0], minlength=2) - one_way[0]).max() < 1


def test_a_chain_meets_the_tables_on_its_tree():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 5000)
    truth = np.stack([first, (first + (rng.random(5000) < 0.1)) % 3, rng.integers(0, 2, 5000)], axis=1)
    truth[:, 2] = np.where(rng.random(5000) < 0.8, truth[:, 1] == 1, truth[:, 2])
    sizes = (3, 3, 2)
    tables = family(sizes, (2,))
    values = [v.astype(float) for v in counted(truth, sizes, tables)]
    codes = chained(ones(tables, values), sizes, 5000, Clock(), rng)
    edges = np.array([[0, 1]], np.int32)
    assert np.abs(count(codes, sizes, edges, (3, 3)) - count(truth, sizes, edges, (3, 3))).max() <= 3
    edges = np.array([[1, 2]], np.int32)
    assert np.abs(count(codes, sizes, edges, (3, 2)) - count(truth, sizes, edges, (3, 2))).max() <= 3


def test_a_chain_is_nearer_than_independent_people():
    rng = np.random.default_rng(0)
    sizes = (4, 3, 5, 2, 6)
    truth = correlated(rng, sizes, 3000)
    tables = family(sizes, (3,))  # the one- and two-way tables are rolled up from these
    values = [v.astype(float) for v in counted(truth, sizes, tables)]
    one_way = [np.bincount(column, minlength=size).astype(float) for column, size in zip(truth.T, sizes, strict=True)]
    near = rms(counted(chained(ones(tables, values), sizes, 3000, Clock(), rng), sizes, tables), values)
    far = rms(counted(independent(sizes, one_way, 3000, rng), sizes, tables), values)
    assert near < 0.8 * far


@given(st.integers(0, 10**6), st.integers(0, 60))
def test_match_gives_the_total_whatever_the_targets(seed, total):
    rng = np.random.default_rng(seed)
    sizes = (2, 3, 1, 4)
    every = [row for k in range(4) for row in combinations(range(4), k)]
    chosen = [every[i] for i in rng.choice(len(every), rng.integers(1, 6), replace=False)]
    tables = Family.of(chosen, sizes)
    values = [rng.normal(2, 3, (len(batch.ids), *batch.shape)) for batch in tables.batches]
    codes = match(ones(tables, values), total, sizes, Clock(), seed=seed)
    assert codes.shape == (total, 4)
    assert (codes < np.array(sizes)).all()


def test_a_start_must_have_as_many_people():
    tables = family((2, 2), (1,))
    with pytest.raises(BadInput, match="start"):
        match(ones(tables, [np.ones((2, 2))]), 5, (2, 2), Clock(), start=np.zeros((4, 2), int))


def test_negative_counts_are_refused():
    with pytest.raises(BadInput, match="table"):
        from_table(np.array([1, -1]))


def test_equal_seeds_match_equally():
    rng = np.random.default_rng(0)
    sizes = (4, 3, 5)
    tables = family(sizes, (1, 2))
    values = [v + rng.normal(0, 2, v.shape) for v in counted(correlated(rng, sizes, 400), sizes, tables)]
    one, two = (match(ones(tables, values), 400, sizes, Clock(), seed=7) for _ in range(2))
    assert (one == two).all()


@pytest.mark.slow
def test_whole_numbers_cost_little_on_adult():
    """A sixth of Adult, one- and two-way tables with noise of 5 people a cell: the people are nearer to the truth."""
    import pyarrow.parquet as pq

    table = pq.read_table(datasets.shared("adult8.parquet"))
    columns = [np.unique(np.array(c.to_pylist(), dtype=str), return_inverse=True)[1] for c in table.columns]
    truth = np.stack(columns, axis=1)[::6]
    sizes = tuple((truth.max(axis=0) + 1).tolist())
    tables = family(sizes, (1, 2))
    exact = counted(truth, sizes, tables)
    rng = np.random.default_rng(0)
    noisy = [np.maximum(v + rng.normal(0, 5, v.shape), 0) for v in exact]
    codes = match(ones(tables, noisy), len(truth), sizes, Clock())
    assert rms(counted(codes, sizes, tables), exact) < 5
    full = np.zeros(sizes)
    np.add.at(full, tuple(truth.T), 1)
    start = from_table(round_table(0.9 * full + 0.1 * full.mean(), len(truth)))
    targets = counted(truth, sizes, tables)
    codes = match(ones(tables, targets), len(truth), sizes, Clock(), start=start)
    assert rms(counted(codes, sizes, tables), exact) < 1


def test_no_more_people_are_made_than_there_is_room_and_time_for(monkeypatch):
    require_room(10**8, 1)
    with pytest.raises(TooLarge, match="100,000,001 synthetic people are more than the 100,000,000 that can be held"):
        require_room(10**8 + 1, 1)
    with pytest.raises(TimeLimitReached, match="synthetic people"):
        require_room(10**8, 1, Clock(3))
    monkeypatch.setenv("HUSHCUBE_MEMORY", "1MB")
    with pytest.raises(TooLarge, match="synthetic people"):
        require_room(10**5, 1)
