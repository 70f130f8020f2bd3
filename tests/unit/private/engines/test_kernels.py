"""Every way of counting gives the same tables, and covers cover."""

from __future__ import annotations

import itertools
import math
import shutil
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hushcube.private.engines import compiled, counting, covers
from hushcube.private.engines.counting import Counter, CoverCounts, RowCounts
from hushcube.private.engines.covers import LIMITS, bundled, choose, greedy, members_of, of_bundles

SIZES = (3, 1, 10, 300, 2, 256, 7)


def coded(rows, sizes=SIZES, seed=1):
    rng = np.random.default_rng(seed)
    kinds = [np.uint8 if n < 255 else np.uint16 for n in sizes]
    return {i: rng.integers(0, n, rows).astype(kind) for i, (n, kind) in enumerate(zip(sizes, kinds, strict=True))}


def plain(columns, sizes, marginal):
    if not marginal:
        return np.array([len(columns[0])])
    table = np.zeros([sizes[i] for i in marginal], dtype=np.int64)
    np.add.at(table, tuple(columns[i] for i in marginal), 1)
    return table


def all_marginals(d, orders):
    return [np.array(list(itertools.combinations(range(d), k)), np.int32).reshape(-1 if k else 1, k) for k in orders]


@pytest.fixture(params=["compiled", "numpy"])
def by(request, monkeypatch):
    """What counts: compiled code, which has to be there where it can be built, and numpy."""
    if request.param == "numpy":
        monkeypatch.setattr(compiled, "kernel", lambda: None)
    elif shutil.which("cc") is None and compiled.kernel() is None:
        pytest.skip("there is no C compiler")
    else:
        monkeypatch.setattr(counting, "_Indices", None)


@pytest.fixture(params=["rows", "cover", "late cover", "small blocks", "chosen"])
def finish(request, monkeypatch, by):
    """Each way of counting, forced by moving the limits."""
    way = request.param
    if way == "rows":
        monkeypatch.setattr(counting, "HELD_CELLS", -1)
    if way in ("cover", "late cover"):
        monkeypatch.setattr(counting, "KEPT_BYTES", 0 if way == "cover" else 5_000)
    if way == "small blocks":
        monkeypatch.setattr(counting, "BLOCK", 17)

    def run(columns, rows, wanted, sizes=SIZES):
        counter = Counter(wanted, sizes, None)
        for start in range(0, rows, 400):
            stop = min(rows, start + 400)
            counter.add({i: column[start:stop] for i, column in columns.items()}, stop - start)
        counts = counter.finish()
        if way in ("rows", "cover"):
            assert isinstance(counts, RowCounts if way == "rows" else CoverCounts)
        return counts

    return run


@pytest.mark.parametrize("orders", [(0, 1, 2), (3,), (1, 4), (7,)])
def test_all_kernels_agree_with_plain_counting(finish, orders):
    columns, wanted = coded(1_003), all_marginals(7, orders)
    if orders == (7,):
        columns = {i: column % 2 for i, column in columns.items()}
    sizes = SIZES if orders != (7,) else (3, 1, 10, 2, 2, 2, 7)
    counts = finish(columns, 1_003, wanted, sizes)
    assert counts.rows == 1_003
    for group in wanted:
        for marginal in group[::-1]:
            found = counts.tables(marginal[None])[0]
            assert found.dtype == np.int64
            assert np.array_equal(found, plain(columns, sizes, marginal.tolist()))


def test_tables_of_one_shape_come_together_in_the_order_asked_for(finish):
    sizes = (4,) * 6
    columns, wanted = coded(2_000, sizes), all_marginals(6, (3,))
    counts = finish(columns, 2_000, wanted, sizes)
    asked = wanted[0][np.random.default_rng(3).permutation(20)]
    found = counts.tables(asked)
    assert found.shape == (20, 4, 4, 4)
    for table, marginal in zip(found, asked, strict=True):
        assert np.array_equal(table, plain(columns, sizes, marginal.tolist()))
    assert counts.tables(np.zeros((2, 0), np.int32)).tolist() == [[2_000], [2_000]]
    assert len(counts.tables(np.zeros((0, 3), np.int32))) == 0


def test_order_of_rows_does_not_matter(finish):
    columns, wanted = coded(900), all_marginals(7, (2,))
    order = np.random.default_rng(2).permutation(900)
    shuffled = {i: column[order] for i, column in columns.items()}
    for marginal in wanted[0]:
        first, second = (finish(c, 900, wanted).tables(marginal[None]) for c in (columns, shuffled))
        assert np.array_equal(first, second)


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    limit=st.sampled_from(LIMITS),
    data=st.data(),
)
def test_a_cover_contains_every_wanted_marginal_and_keeps_its_limit(sizes, limit, data):
    places = st.lists(st.integers(0, len(sizes) - 1), unique=True).map(sorted).map(tuple)
    wanted = data.draw(st.lists(places, min_size=1, max_size=12))
    members = members_of([np.array([m], np.int32).reshape(1, len(m)) for m in wanted], len(sizes))
    tables, used = greedy(members, sizes, limit)
    assert sum(used) == len(set(wanted))
    for marginal in wanted:
        assert any(set(marginal) <= set(table) for table in tables)
    for table in tables:
        assert math.prod(sizes[i] for i in table) <= limit or table in wanted


@given(sizes=st.lists(st.integers(1, 300), min_size=1, max_size=8), seed=st.integers(0, 10**6), data=st.data())
def test_tables_of_bundles_contain_every_wanted_marginal_and_count_the_same(sizes, seed, data):
    places = st.lists(st.integers(0, len(sizes) - 1), unique=True, max_size=2).map(sorted).map(tuple)
    wanted = data.draw(st.lists(places.filter(bool), min_size=1, max_size=12))
    members = members_of([np.array([m], np.int32) for m in wanted], len(sizes))
    used = sorted({i for marginal in wanted for i in marginal})
    bundles = bundled(sizes, used)
    assert [i for bundle in bundles for i in bundle] == used
    assert all(len(b) == 1 or math.prod(sizes[i] for i in b) < 255 for b in bundles)
    tables = of_bundles(members, bundles)
    for marginal in wanted:
        assert any(set(marginal) <= set(table) for table in tables)
    for table in tables:
        assert not any(set(table) < set(other) for other in tables) and list(table) == sorted(table)
    columns = coded(50, sizes, seed)
    weights = np.random.default_rng(seed).integers(-9, 9, 50)
    counts, sums = CoverCounts(tables, sizes, bundles), CoverCounts(tables, sizes, bundles)
    counts.add(columns, 50)
    sums.add(columns, 50, weights)
    judge = RowCounts(columns, 50, sizes, weights)
    for marginal in wanted:
        row = np.array([marginal], np.int32)
        assert (counts.tables(row)[0] == plain(columns, sizes, marginal)).all()
        assert (sums.tables(row) == judge.tables(row)).all()


def test_a_total_alone_needs_no_bundles():
    assert of_bundles(members_of(all_marginals(3, (0,)), 3), []) == []
    assert of_bundles(members_of(all_marginals(3, (0, 1)), 3), [(0, 1), (2,)]) == [(2,), (0, 1)]
    chosen = choose(all_marginals(3, (0,)), (3,) * 3, 10_000, 10**8)
    assert chosen is not None and chosen.tables == [()]


def test_too_many_tables_of_bundles_are_none(monkeypatch):
    monkeypatch.setattr(covers, "_MOST_BUNDLED", 3)
    assert len(of_bundles(members_of(all_marginals(3, (2,)), 3), [(0,), (1,), (2,)])) == 3
    assert of_bundles(members_of(all_marginals(4, (2,)), 4), [(0,), (1,), (2,), (3,)]) == []


def test_covers_of_the_usual_workloads_are_small(by):
    """Compiled code counts into small tables so fast that twice as many of them pay."""
    for k, most in ((2, 10), (3, 22 if compiled.kernel() is None else 38)):
        chosen = choose(all_marginals(10, (k,)), (10,) * 10, 10_000_000, 10**8)
        assert chosen is not None
        assert len(chosen.tables) <= most
    pairs = choose(all_marginals(10, (2,)), (10,) * 10, 10_000_000, 10**8)
    assert pairs is not None and len(pairs.bundles) == 5
    assert choose(all_marginals(10, (2,)), (10,) * 10, 10_000_000, 4_000) is None
    assert choose(all_marginals(30, (3,)), (10,) * 30, 10_000, 10**8) is None


def test_what_was_not_announced_is_refused_rather_than_guessed():
    counts = CoverCounts([(0, 1)], SIZES)
    with pytest.raises(LookupError):
        counts.tables(np.array([[0, 2]], np.int32))


@pytest.mark.parametrize("block", [1 << 18, 17])
def test_weighted_rows_count_as_often_as_they_weigh(block, monkeypatch, by):
    monkeypatch.setattr(counting, "BLOCK", block)
    columns, times = coded(300), np.random.default_rng(4).integers(0, 5, 300)
    repeated = {i: np.repeat(column, times) for i, column in columns.items()}
    weighted = RowCounts(columns, 300, SIZES, times)
    assert weighted.rows == times.sum()
    for marginal in ((), (0,), (2, 6), (0, 2, 4), (3, 5), (2, 3, 5)):  # some have more cells than rows
        found = weighted.tables(np.array([marginal], np.int32).reshape(1, len(marginal)))
        assert found.dtype == np.int64
        assert np.array_equal(found[0], plain(repeated, SIZES, marginal))


@pytest.mark.parametrize("bits", [20, 35, 36, 44])
def test_large_weights_of_both_signs_are_summed_exactly(bits, by):
    """2^18 weights of 44 bits sum to 2^62 at most; Python's integers are the judge."""
    rows = counting.BLOCK + 5
    random = np.random.default_rng(bits)
    column = random.integers(0, 3, rows).astype(np.uint8)
    weights = random.integers(2**bits - 1_000, 2**bits, rows, endpoint=True) * np.where(column == 1, -1, 1)
    (found,) = RowCounts({0: column}, rows, (3,), weights).tables(np.array([[0]], np.int32))
    assert found.tolist() == [sum(weights[column == code].tolist()) for code in range(3)]


@pytest.mark.parametrize("rows", [0, 1, 3, 2_047, 2_048, 2_050, 5_001])
@pytest.mark.parametrize("sizes", [(3,), (255, 257), (255, 258), (2, 70_000), (40, 41, 42)])
def test_codes_of_every_width_are_counted_by_both(rows, sizes, by):
    """Cells of 16 and of 32 bits on both sides of the border, blocks that are full, begun, and of no four rows."""
    random = np.random.default_rng(rows)
    kinds = [np.uint8 if n < 255 else np.uint16 if n < 65_535 else np.uint32 for n in sizes]
    columns = {
        i: random.integers(0, n, rows).astype(kind) for i, (n, kind) in enumerate(zip(sizes, kinds, strict=True))
    }
    for column, n in zip(columns.values(), sizes, strict=True):
        column[-1:] = n - 1
    marginal = tuple(range(len(sizes)))
    (found,) = RowCounts(columns, rows, sizes).tables(np.array([marginal], np.int32))
    assert np.array_equal(found, plain(columns, sizes, marginal))


@given(data=st.data(), rows=st.integers(0, 50), weighted=st.booleans())
def test_compiled_code_and_numpy_give_the_same_tables(data, rows, weighted):
    """Whatever the order of attributes; slices and strides are no obstacle."""
    if compiled.kernel() is None:
        pytest.skip("there is no C compiler")
    sizes = data.draw(st.lists(st.integers(1, 20), min_size=1, max_size=4))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    kind = data.draw(st.sampled_from([np.uint16, np.uint32]))
    columns = {i: random.integers(0, n, 2 * rows).astype(kind)[::2] for i, n in enumerate(sizes)}
    weights = random.integers(-(2**40), 2**40, rows) if weighted else None
    marginal = data.draw(st.permutations(range(len(sizes))))[: data.draw(st.integers(1, len(sizes)))]
    cells = math.prod(sizes[i] for i in marginal)
    ours, theirs = np.zeros((1, cells), np.int64), np.zeros((1, cells), np.int64)
    assert compiled.Target([(np.array([marginal], np.int32), ours)], sizes).add(columns, rows, weights)
    index = np.zeros(rows, np.int64)
    for i in marginal:
        index = index * sizes[i] + columns[i]
    np.add.at(theirs[0], index, 1 if weights is None else weights)
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("codes", "rows", "weights"), [([0, 3], 2, None), ([0, 255], 2, None), ([0, 1], 3, None), ([0, 1], 2, [5])]
)
def test_compiled_code_never_reads_or_writes_outside_of_what_it_is_given(codes, rows, weights):
    if compiled.kernel() is None:
        pytest.skip("there is no C compiler")
    tables = np.zeros((1, 3), np.int64)
    with pytest.raises(IndexError):
        compiled.Target([(np.array([[0]], np.int32), tables)], (3,)).add(
            {0: np.array(codes, np.uint8)}, rows, None if weights is None else np.array(weights)
        )
    assert not tables.any()


@pytest.mark.parametrize(
    ("codes", "tables"),
    [
        (np.zeros(3, np.int64), np.zeros((1, 3), np.int64)),
        (np.zeros(3, np.uint8), np.zeros((1, 2), np.int64)),
        (np.zeros(3, np.uint8), np.zeros((2, 3), np.int64)),
        (np.zeros(3, np.uint8), np.zeros((1, 6), np.int64)[:, ::2]),
    ],
    ids=["signed codes", "too few cells", "too many tables", "cells apart"],
)
def test_compiled_code_does_nothing_it_was_not_made_for(codes, tables):
    assert not compiled.Target([(np.array([[0]], np.int32), tables)], (3,)).add({0: codes}, 3, None)
    assert not tables.any()


def test_signed_codes_are_left_to_numpy():
    (found,) = RowCounts({0: np.array([2, 0, 2])}, 3, (3,)).tables(np.array([[0]], np.int32))
    assert found.tolist() == [1, 0, 2]


@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_threads_may_count_at_the_same_time(turns, weighted, by, monkeypatch):
    """Small tables are copied for each thread, which then take no turns."""
    if turns:
        monkeypatch.setattr(counting, "_COPIED_CELLS", 0)
    sizes, rows = (3, 4, 5), 40_000
    columns = coded(rows, sizes)
    weights = np.random.default_rng(2).integers(-3, 9, rows) if weighted else None
    counts, together = CoverCounts([(0, 1), (1, 2)], sizes), Barrier(4)

    def add(start):
        together.wait()
        for at in range(start, rows, 4_000):
            part = slice(at, at + 1_000)
            some = None if weights is None else weights[part]
            counts.add({i: column[part] for i, column in columns.items()}, 1_000, some)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(0, 4_000, 1_000)))
    assert (len(counts._copies) == 1) or not turns
    alone = RowCounts(columns, rows, sizes, weights)
    assert counts.rows == alone.rows
    for marginals in [*all_marginals(3, (1,)), np.array([[0, 1], [1, 2]], np.int32)]:
        for marginal in marginals:
            assert np.array_equal(counts.tables(marginal[None]), alone.tables(marginal[None]))
