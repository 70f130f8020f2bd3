"""The nearest consistent tables against the program over all cells of the domain, solved by scipy."""

from collections import namedtuple
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, eye, hstack, vstack

from hushcube.errors import BadInput, FactsError, TimeLimitReached
from hushcube.faces import norms
from hushcube.faces.norms import _Cells
from hushcube.faces.target import Observed
from hushcube.lattice.coefficients import combine
from hushcube.lattice.family import Family
from hushcube.progress import Clock

NORMS = ["l1", "linf"]
Nearest = namedtuple("Nearest", "coefficients distance")
CHAINS = [[(0, 1), (1, 2)], [(0, 1), (1, 2), (1,)], [(0,), (1, 2)], [(0, 1, 2), (0,), ()]]
LOOPS = [[(0, 1), (0, 2), (1, 2)], [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]]
DOMAINS = [(2, 3, 4), (3, 2, 2), (2, 1, 3)]


def nearest(tables, values, weights, norm, clock, *, nonnegative=False, fixed=None):
    seen = Observed(tables, values, weights, fixed)
    return Nearest(*norms.nearest(seen, norm, clock, nonnegative=nonnegative))


def family(sizes, marginals):
    return Family.of(marginals, sizes)


def dense(tables):
    """One row for each cell of each table, in the order of the batches; one column for each cell of the domain."""
    sizes = tuple(tables.sizes.tolist())
    cells = np.indices(sizes).reshape(len(sizes), -1)
    rows = []
    for batch in tables.batches:
        for row in batch.rows:
            for cell in np.ndindex(*batch.shape):
                inside = np.ones(cells.shape[1], bool)
                for attribute, value in zip(row, cell, strict=True):
                    inside &= cells[attribute] == value
                rows.append(inside.astype(float))
    return np.array(rows)


def split(tables, vector):
    """A vector of all cells as one array for each batch."""
    ends = np.cumsum([len(b.ids) * b.cells for b in tables.batches])[:-1]
    return [
        part.reshape(len(b.ids), *b.shape)
        for part, b in zip(np.split(np.asarray(vector, float), ends), tables.batches, strict=True)
    ]


def each_cell(tables, weights):
    return np.concatenate([np.repeat(weights[b.ids], b.cells) for b in tables.batches])


def size(off, weights, norm):
    return np.abs(off * weights).sum() if norm == "l1" else np.abs(off * weights).max()


def flat(tables, found):
    return np.concatenate([found.coefficients.tables(b.rows, b.shape).ravel() for b in tables.batches])


def brute(Q, z, weights, norm, lower=None, pinned=None):
    """The least distance over all x of the domain; None where there is no x."""
    k, n = Q.shape
    Q = csr_matrix(Q)
    slack = eye(k) if norm == "l1" else csr_matrix(1 / weights[:, None])
    cost = weights if norm == "l1" else np.ones(1)
    equal = {} if pinned is None else {"A_eq": hstack([Q[pinned[0]], csr_matrix((len(pinned[0]), len(cost)))])}
    result = linprog(
        np.concatenate([np.zeros(n), cost]),
        A_ub=vstack([hstack([Q, -slack]), hstack([-Q, -slack])]),
        b_ub=np.concatenate([z, -z]),
        bounds=[(lower, None)] * n + [(0, None)] * len(cost),
        b_eq=None if pinned is None else pinned[1],
        **equal,
    )
    return result.fun if result.success else None


def noisy(tables, rng, scale=4.0):
    """The dense matrix, counts, and the noisy tables."""
    Q = dense(tables)
    x = rng.integers(0, 12, Q.shape[1]).astype(float)
    return Q, x, Q @ x + np.rint(rng.laplace(scale=scale, size=len(Q)))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("sizes", DOMAINS)
@pytest.mark.parametrize("marginals", CHAINS + LOOPS, ids=str)
def test_the_distance_is_that_of_the_program_over_the_domain(sizes, marginals, norm):
    rng = np.random.default_rng(len(marginals))
    tables = family(sizes, marginals)
    Q, _, z = noisy(tables, rng)
    weights = rng.uniform(0.2, 3, len(tables))
    found = nearest(tables, split(tables, z), weights, norm, Clock())
    w = each_cell(tables, weights)
    assert found.distance == pytest.approx(brute(Q, z, w, norm), rel=1e-6, abs=1e-6)
    y = flat(tables, found)
    assert size(y - z, w, norm) == pytest.approx(found.distance)
    # consistent: some x of the domain has these tables
    x = np.linalg.lstsq(Q, y, rcond=None)[0]
    assert np.allclose(Q @ x, y, atol=1e-7)


@pytest.mark.parametrize("sizes", DOMAINS)
@pytest.mark.parametrize("marginals", CHAINS + LOOPS, ids=str)
def test_the_equations_are_as_many_as_they_must_be(sizes, marginals):
    """The numbers that satisfy them are the tables of the closure, and no equation follows from the others."""
    closure = family(sizes, marginals).closure
    cells = _Cells(closure)
    ties = cells.ties()
    T = np.zeros((ties.count, cells.count))
    rows, columns, entries = ties.matrix
    np.add.at(T, (rows, columns), entries)
    Q = dense(closure)
    order = np.concatenate([places.ravel() for places in cells.places(closure)])
    assert (T[:, order] @ Q == 0).all()
    assert np.linalg.matrix_rank(T) == ties.count == cells.count - closure.product(closure.sizes - 1).sum()
    assert cells.count - ties.count == np.linalg.matrix_rank(Q)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("marginals", CHAINS, ids=str)
def test_without_negative_cells_a_chain_is_as_far_as_the_domain(marginals, norm):
    rng = np.random.default_rng(5)
    tables = family((2, 3, 4), marginals)
    Q, x, _ = noisy(tables, rng)
    z = Q @ (x * (rng.random(len(x)) < 0.2)) + np.rint(rng.laplace(scale=6, size=len(Q)))
    weights = rng.uniform(0.2, 3, len(tables))
    found = nearest(tables, split(tables, z), weights, norm, Clock(), nonnegative=True)
    w = each_cell(tables, weights)
    free = nearest(tables, split(tables, z), weights, norm, Clock())
    assert flat(tables, found).min() > -1e-6 > flat(tables, free).min()
    assert found.distance == pytest.approx(brute(Q, z, w, norm, lower=0), rel=1e-6)
    assert found.distance >= free.distance * (1 - 1e-7)


@pytest.mark.parametrize("norm", NORMS)
def test_without_negative_cells_a_loop_may_be_nearer_than_the_domain(norm):
    """Three binary attributes, each pair always different: the tables agree, but no counts have them."""
    tables = family((2, 2, 2), LOOPS[0])
    different = np.array([[0.0, 6.0], [6.0, 0.0]])
    z = np.concatenate([different.ravel()] * 3)
    found = nearest(tables, split(tables, z), np.ones(3), norm, Clock(), nonnegative=True)
    assert found.distance == pytest.approx(0, abs=1e-9)
    assert brute(dense(tables), z, np.ones(12), norm, lower=0) > 0.5
    rng = np.random.default_rng(6)
    for _ in range(10):
        z = np.rint(rng.laplace(scale=4, size=12)) + 2
        found = nearest(tables, split(tables, z), np.ones(3), norm, Clock(), nonnegative=True)
        assert flat(tables, found).min() > -1e-6
        assert found.distance <= brute(dense(tables), z, np.ones(12), norm, lower=0) + 1e-6


@pytest.mark.parametrize("norm", NORMS)
def test_known_cells_keep_their_values(norm):
    rng = np.random.default_rng(7)
    tables = family((2, 3, 4), LOOPS[0])
    Q, x, z = noisy(tables, rng)
    at = rng.choice(len(z), 5, replace=False)
    known = np.full(len(z), np.nan)
    known[at] = (Q @ x)[at]
    weights = rng.uniform(0.2, 3, len(tables))
    found = nearest(tables, split(tables, z), weights, norm, Clock(), fixed=split(tables, known))
    assert np.allclose(flat(tables, found)[at], known[at], atol=1e-5)
    w = each_cell(tables, weights)
    assert found.distance == pytest.approx(brute(Q, z, w, norm, pinned=(at, known[at])), rel=1e-6)
    assert found.distance > nearest(tables, split(tables, z), weights, norm, Clock()).distance


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("nonnegative", [False, True])
def test_known_cells_that_contradict_each_other_are_refused(norm, nonnegative):
    tables = family((2, 2), [(0,), (1,)])
    values = [np.ones((2, 2))]
    with pytest.raises(FactsError, match="no tables satisfy them all"):
        known = [np.array([[3.0, 4.0], [5.0, 6.0]])]  # totals 7 and 11
        nearest(tables, values, np.ones(2), norm, Clock(), nonnegative=nonnegative, fixed=known)


@pytest.mark.parametrize("norm", NORMS)
def test_a_known_part_that_is_more_than_its_whole_is_refused_only_where_cells_cannot_be_negative(norm):
    tables = family((2, 2), [(0,), (0, 1)])
    values = [np.array([[3.0, 3.0]]), np.ones((1, 2, 2))]
    known = [np.array([[2.0, np.nan]]), np.array([[[5.0, np.nan], [np.nan, np.nan]]])]
    found = nearest(tables, values, np.ones(2), norm, Clock(), fixed=known)
    assert found.coefficients.tables(np.array([[0, 1]], np.int32), (2, 2))[0, 0] == pytest.approx([5, -3], abs=1e-5)
    with pytest.raises(FactsError, match="no tables satisfy them all"):
        nearest(tables, values, np.ones(2), norm, Clock(), nonnegative=True, fixed=known)
    known[1][0, 0, 0] = -1.0
    with pytest.raises(FactsError, match="a known cell is negative"):
        nearest(tables, values, np.ones(2), norm, Clock(), nonnegative=True, fixed=known)


@pytest.mark.parametrize("norm", NORMS)
def test_the_error_at_most_doubles(norm):
    rng = np.random.default_rng(8)
    for draw in range(40):
        tables = family((2, 3, 2), (CHAINS + LOOPS)[draw % 6])
        Q, x, z = noisy(tables, rng, scale=rng.uniform(0.5, 30))
        weights = rng.uniform(0.2, 3, len(tables))
        w = each_cell(tables, weights)
        noise = size(Q @ x - z, w, norm)
        y = flat(tables, nearest(tables, split(tables, z), weights, norm, Clock()))
        assert size(y - z, w, norm) <= noise * (1 + 1e-7)
        assert size(y - Q @ x, w, norm) <= 2 * noise * (1 + 1e-7)


@st.composite
def cases(draw):
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    sets = [c for k in range(len(sizes) + 1) for c in combinations(range(len(sizes)), k)]
    tables = family(sizes, draw(st.lists(st.sampled_from(sets), min_size=1, unique=True)))
    return tables, np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.sampled_from(NORMS))


@settings(max_examples=40)
@given(cases(), st.booleans(), st.sampled_from([1.0, 1e7]))
def test_consistent_tables_come_back(case, nonnegative, scale):
    tables, rng, norm = case
    Q = dense(tables)
    z = Q @ rng.uniform(0 if nonnegative else -1, 1, Q.shape[1]) * scale
    found = nearest(tables, split(tables, z), np.ones(len(tables)), norm, Clock(), nonnegative=nonnegative)
    assert found.distance <= 1e-9 * scale
    assert np.allclose(flat(tables, found), z, atol=1e-9 * scale)


@settings(max_examples=40)
@given(cases(), st.sampled_from([1e-6, 0.3, 1e6]), st.sampled_from([1e-4, 1e5]))
def test_the_distance_scales_with_the_noise_and_with_the_weights(case, factor, heavier):
    tables, rng, norm = case
    Q, x, z = noisy(tables, rng)
    weights = rng.uniform(0.2, 3, len(tables))
    once = nearest(tables, split(tables, z), weights, norm, Clock()).distance
    shifted = nearest(tables, split(tables, factor * z), heavier * weights, norm, Clock()).distance
    assert shifted == pytest.approx(factor * heavier * once, rel=1e-5, abs=1e-9 * factor * heavier)
    # adding consistent tables changes nothing
    moved = nearest(tables, split(tables, z + Q @ (1000 * x)), weights, norm, Clock()).distance
    assert moved == pytest.approx(once, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("norm", NORMS)
def test_very_unequal_weights(norm):
    rng = np.random.default_rng(10)
    for draw in range(10):
        tables = family((5, 2, 3, 2), [c for k in (1, 2, 3) for c in combinations(range(4), k)])
        Q, _, z = noisy(tables, rng)
        weights = 10.0 ** rng.uniform(-3, 3, len(tables))
        found = nearest(tables, split(tables, z), weights, norm, Clock(), nonnegative=draw % 2 == 0)
        if draw % 2:
            assert found.distance == pytest.approx(brute(Q, z, each_cell(tables, weights), norm), rel=1e-3)


def test_wrong_arguments_are_named():
    tables = family((2, 2), [(0,), (1,)])
    values = [np.array([[1.0, 2.0], [3.0, 4.0]])]
    with pytest.raises(BadInput, match="weights"):
        nearest(tables, values, np.array([1.0, 0.0]), "l1", Clock())
    with pytest.raises(BadInput, match="norm"):
        nearest(tables, values, np.ones(2), "l3", Clock())
    with pytest.raises(TimeLimitReached):
        nearest(tables, values, np.ones(2), "l1", Clock(seconds=0.0))


def test_many_marginals_of_a_domain_too_large_for_its_cells():
    sizes = (3,) * 30
    rng = np.random.default_rng(9)
    tables = family(sizes, combinations(range(30), 2))
    values = [rng.integers(0, 50, (len(b.ids), *b.shape)).astype(float) for b in tables.batches]
    found = nearest(tables, values, np.ones(len(tables)), "l1", Clock())
    y = flat(tables, found)
    z = np.concatenate([v.ravel() for v in values])
    assert found.distance == pytest.approx(np.abs(y - z).sum())
    squares = combine(tables, values, np.ones(len(tables)), tables.closure)
    other = np.concatenate([squares.tables(b.rows, b.shape).ravel() for b in tables.batches])
    assert 0 < found.distance < 0.999 * np.abs(other - z).sum()
