"""Chains of nested levels and the blocks of tables over them, against dense generalised least squares."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hushcube.lattice.nested import Chain, group_sums
from hushcube.lattice.nested_blocks import Blocks
from nested import chains, covariance, every_table, table_rows

some_chains = st.lists(chains(), min_size=1, max_size=3).filter(lambda c: np.prod([x.sizes[-1] for x in c]) <= 60)


@st.composite
def designs(draw):
    """Chains, some measured tables with weights, and all tables that these hold."""
    some = draw(some_chains)
    tables = every_table(some)
    measured = draw(st.lists(st.sampled_from(tables), min_size=1, max_size=5, unique=True))
    weights = draw(st.lists(st.floats(0.1, 3), min_size=len(measured), max_size=len(measured)))
    held = [t for t in tables if any(all(level <= dict(m).get(a, 0) for a, level in t) for m in measured)]
    return some, measured, np.array(weights), draw(st.permutations(held))[:6]


def dense(some, measured, weights, *, public=False):
    rows = [table_rows(some, table) for table in measured]
    precision = np.concatenate([np.full(len(r), w) for r, w in zip(rows, weights, strict=True)])
    return np.concatenate(rows), precision, covariance(np.concatenate(rows), precision, public=public)


@given(chains())
def test_coordinates_of_a_level_are_orthogonal_to_what_is_spread_from_above(chain):
    for k, S in enumerate(chain.core):
        above, own = S[:, : chain.sizes[k - 1] if k else 0], S[:, chain.sizes[k - 1] if k else 0 : chain.sizes[k]]
        np.testing.assert_allclose(own.T @ above, 0, atol=1e-12)
        np.testing.assert_allclose(own.T @ own, np.eye(own.shape[1]), atol=1e-12)
        assert not S[:, chain.sizes[k] :].any()


@given(chains())
def test_a_level_spread_from_the_coordinates_adds_up_to_the_level_above(chain):
    theta = np.random.default_rng(0).normal(size=chain.sizes[-2])
    for k in range(1, chain.depth + 1):
        fine, coarse = chain.spread(theta, 0, k), chain.spread(theta, 0, k - 1)
        np.testing.assert_allclose(group_sums(fine, 0, chain.parents[k - 1]), coarse, atol=1e-12)


@given(chains())
def test_pieces_hold_all_coordinates_and_do_not_couple(chain):
    core = [piece for piece in chain.pieces if not piece.is_finest]
    assert sorted(np.concatenate([piece.columns.ravel() for piece in core]).tolist()) == list(range(chain.sizes[-2]))
    assert sum(p.copies for p in chain.pieces if p.is_finest) == chain.sizes[-1] - chain.sizes[-2]
    for level in range(chain.depth + 1):
        gram = chain.adjoint(chain.spread(np.eye(chain.sizes[-2]), 0, level), 0, level)
        for piece in core:
            for columns in piece.columns:
                others = np.setdiff1d(np.arange(chain.sizes[-2]), columns)
                np.testing.assert_allclose(gram[np.ix_(columns, others)], 0, atol=1e-10)
                np.testing.assert_allclose(gram[np.ix_(columns, columns)], piece.grams[level], atol=1e-10)


def test_equal_groups_do_not_couple_and_unequal_ones_only_by_their_sizes():
    balanced = Chain((np.zeros(4, np.int64), np.repeat(np.arange(4), 3), np.repeat(np.arange(12), 2)))
    assert all(len(piece.layers) == 1 for piece in balanced.pieces)
    assert [piece.copies for piece in balanced.pieces] == [1, 3, 8, 12]
    two_sizes = Chain((np.zeros(100, np.int64), np.repeat(np.arange(100), [2] * 60 + [5] * 40)))
    assert [len(piece.layers) for piece in two_sizes.pieces] == [2, 1, 1, 1]


@pytest.mark.parametrize("parents", [[[0, 0], [0, 0]], [[0, 1]], [[]]])
def test_every_group_needs_a_child(parents):
    with pytest.raises(ValueError, match="child"):
        Chain(tuple(np.array(each, np.int64) for each in parents))


@settings(max_examples=30)
@given(designs(), st.booleans())
def test_variances_are_those_of_the_dense_solution(design, public):
    some, measured, weights, held = design
    blocks = Blocks(some, measured)
    V = blocks.inverse(blocks.add(blocks.pairs(measured), weights), public=public)
    totals = blocks.totals(V, blocks.pairs(held), len(held))
    C = dense(some, measured, weights, public=public)[2]
    random = np.random.default_rng(0)
    for table, total in zip(held, totals, strict=True):
        R = table_rows(some, table)
        expected = R @ C @ R.T
        shape = [some[a].sizes[level] for a, level in table]
        cells = blocks.product_variances(V, table, [some[a].cells(level) for a, level in table])
        np.testing.assert_allclose(cells.ravel(), np.diag(expected), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(total, np.trace(expected), rtol=1e-7, atol=1e-9)
        q = random.normal(size=(2, len(R)))
        found = blocks.sum_variances(V, table, q.reshape(2, *shape))
        np.testing.assert_allclose(found, np.diag(q @ expected @ q.T), rtol=1e-7, atol=1e-9)


@settings(max_examples=30)
@given(designs())
def test_products_of_sums_and_their_totals(design):
    some, measured, weights, held = design
    blocks = Blocks(some, measured)
    V = blocks.inverse(blocks.add(blocks.pairs(measured), weights), public=False)
    C = dense(some, measured, weights)[2]
    random = np.random.default_rng(1)
    for table in held[:3]:
        R, rows, sums = table_rows(some, table), np.ones((1, 1)), []
        for axis, (a, level) in enumerate(table):
            n = some[a].sizes[level]
            starts = random.integers(0, n, 4)
            ends = np.array([random.integers(s + 1, n + 1) for s in starts])
            weights_of = ((np.arange(n) >= starts[:, None]) & (np.arange(n) < ends[:, None])).astype(float)
            own = some[a].intervals(level, starts, ends)
            if axis % 3 == 1:
                own = some[a].sums(level, weights_of)
            if axis % 3 == 2:
                groups = np.arange(n) % 2
                own, weights_of = some[a].grouped(level, groups), np.eye(min(n, 2))[:, groups]
            sums.append(own)
            rows = np.kron(rows, weights_of)
        found = blocks.product_variances(V, table, sums)
        np.testing.assert_allclose(found.ravel(), np.diag(rows @ R @ C @ R.T @ rows.T), rtol=1e-7, atol=1e-9)
        total = blocks.totals(V, blocks.pairs([table], [[each.gram for each in sums]]), 1)[0]
        np.testing.assert_allclose(total, found.sum(), rtol=1e-7, atol=1e-9)


@settings(max_examples=30)
@given(designs())
def test_coordinates_of_noisy_tables_give_the_dense_estimate(design):
    some, measured, weights, held = design
    blocks = Blocks(some, measured)
    V = blocks.inverse(blocks.add(blocks.pairs(measured), weights), public=False)
    S, precision, C = dense(some, measured, weights)
    y = np.random.default_rng(2).normal(size=len(S)) * 10
    sides, at = {}, 0
    for table, w in zip(measured, weights, strict=True):
        shape = [some[a].sizes[level] for a, level in table]
        values = y[at : at + int(np.prod(shape))].reshape(shape)
        at += values.size
        for key, said in blocks.collected(values, table):
            side = sides.setdefault(key, np.zeros((len(said), blocks.size(key))))
            side[:, blocks.positions(key, table).ravel()] += w * said
    theta = {key: side @ blocks.matrix(V, key) for key, side in sides.items()}
    estimate = C @ (S.T @ (precision * y))
    for table in held:
        expected = table_rows(some, table) @ estimate
        np.testing.assert_allclose(blocks.table(theta, table).ravel(), expected, rtol=1e-6, atol=1e-7)
