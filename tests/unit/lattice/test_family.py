"""A family of marginals against plain Python sets."""

import time
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from helpers import all_subsets
from hushcube.lattice.family import Family

# few attributes (bit masks), many with low order (mixed radix), many with order >= 12 (Python integers)
WIDTHS = [(6, 6), (62, 4), (63, 4), (200, 4), (70, 12)]


@st.composite
def families(draw, count=2):
    d, k = draw(st.sampled_from(WIDTHS))
    # a small pool makes inclusions likely
    pool = sorted(draw(st.sets(st.integers(0, d - 1), min_size=min(k, d), max_size=min(k + 3, d))))
    marginal = st.sets(st.sampled_from(pool), max_size=k).map(lambda s: tuple(sorted(s)))
    sizes = draw(st.lists(st.integers(1, 5), min_size=d, max_size=d))
    return sizes, [draw(st.lists(marginal, min_size=1, max_size=6)) for _ in range(count)]


def by_order(sets):
    return sorted(map(len, set(sets)))


@given(families())
def test_members_are_the_distinct_marginals_by_order(drawn):
    sizes, (sets, _) = drawn
    family = Family.of(sets, sizes)
    assert set(family) == set(sets)
    assert [len(m) for m in family] == by_order(sets)


@given(families())
def test_ids_number_the_members_and_miss_the_others(drawn):
    sizes, (sets, asked) = drawn
    family = Family.of(sets, sizes)
    members = list(family)
    expected = [members.index(m) if m in members else -1 for m in asked]
    assert family.ids(asked).tolist() == expected
    assert family.ids(members).tolist() == list(range(len(members)))


@given(families())
def test_equality_is_that_of_sets(drawn):
    sizes, (a, b) = drawn
    assert (Family.of(a, sizes) == Family.of(b, sizes)) == (set(a) == set(b))
    assert Family.of(a, sizes) == Family.of(a[::-1], sizes)


@settings(max_examples=50)
@given(families(count=1))
def test_closure_holds_every_subset(drawn):
    sizes, (sets,) = drawn
    sets = [m[:10] for m in sets]  # 2^10 subsets are enough to look at
    assert set(Family.of(sets, sizes).closure) == {s for m in sets for s in all_subsets(m)}


def test_closure_of_high_orders_among_many_attributes():
    marginal = tuple(range(3, 70, 5))[:13]
    assert set(Family.of([marginal], [2] * 80).closure) == set(all_subsets(marginal))


@given(families())
def test_inclusions_are_all_pairs_of_sets(drawn):
    sizes, (big, small) = drawn
    A, B = Family.of(big, sizes), Family.of(small, sizes)
    a, b = list(A), list(B)
    found = []
    for pair in A.inclusions(B):
        kept = np.broadcast_to(pair.kept, (len(pair.big), pair.kept.shape[-1]))
        for i, j, columns in zip(pair.big.tolist(), pair.small.tolist(), kept, strict=True):
            assert tuple(x for x, inside in zip(a[i], columns, strict=True) if inside) == b[j]
            found.append((i, j))
    expected = [(i, j) for i, x in enumerate(a) for j, y in enumerate(b) if set(y) <= set(x)]
    assert sorted(found) == expected


@pytest.mark.slow
@given(families(), st.randoms(use_true_random=False))
def test_sums_over_supersets_and_subsets(drawn, random):
    sizes, (big, small) = drawn
    A, B = Family.of(big, sizes), Family.of(small, sizes)
    values = np.array([random.uniform(-1, 1) for _ in A])
    inside, outside = (np.array([random.uniform(0.5, 2) for _ in sizes]) for _ in range(2))
    products = [
        sum(
            v * np.prod([inside[i] if i in b else outside[i] for i in a])
            for a, v in zip(A, values, strict=True)
            if set(b) <= set(a)
        )
        for b in B
    ]
    assert A.sum_over_supersets(B, values, inside, outside) == pytest.approx(products, abs=1e-9)
    plain = [sum(v for a, v in zip(A, values, strict=True) if set(b) <= set(a)) for b in B]
    assert A.sum_over_supersets(B, values) == pytest.approx(plain, abs=1e-12)
    weights = np.arange(1.0, len(B) + 1)
    assert A.sum_over_subsets(B, weights).tolist() == [
        sum(w for b, w in zip(B, weights, strict=True) if set(b) <= set(a)) for a in A
    ]


@given(families(count=1))
def test_products_cells_and_attributes(drawn):
    sizes, (sets,) = drawn
    family = Family.of(sets, sizes)
    assert family.cells.tolist() == [float(np.prod([sizes[i] for i in m], dtype=float)) for m in family]
    assert family.attributes.tolist() == sorted({i for m in sets for i in m})


@given(families(count=1))
def test_batches_hold_every_member_once_with_its_shape(drawn):
    sizes, (sets,) = drawn
    family = Family.of(sets, sizes)
    members = list(family)
    seen = []
    for batch in family.batches:
        for number, row in zip(batch.ids.tolist(), batch.rows.tolist(), strict=True):
            assert members[number] == tuple(row)
            assert tuple(sizes[i] for i in row) == batch.shape
            seen.append(number)
    assert sorted(seen) == list(range(len(members)))
    assert len({batch.shape for batch in family.batches}) == len(family.batches)


def test_an_empty_family_has_nothing_in_it():
    family = Family.of([], (2, 3))
    assert (len(family), list(family), family.ids([(), (0,)]).tolist()) == (0, [], [-1, -1])


def test_inclusions_with_one_large_set_are_quick():
    """One set of 18 attributes, as `identity` measures: levels without members must not enumerate 2^k patterns."""
    sizes = [2] * 18
    big = Family.of([tuple(range(18))], sizes)
    small = Family.of(list(combinations(range(18), 2)), sizes)
    start = time.perf_counter()
    assert big.sum_over_supersets(small, np.ones(1)).tolist() == [1.0] * len(small)
    assert time.perf_counter() - start < 0.5
