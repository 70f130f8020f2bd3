"""Locally non-negative tables against a dense quadratic program, and the projection they step with."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import nnls

from hushcube.errors import FactsError, TimeLimitReached
from hushcube.faces.local import _Solver, nonnegative_marginals
from hushcube.faces.target import Target
from hushcube.lattice.coefficients import Projection, combine
from hushcube.lattice.family import Family
from hushcube.progress import Clock

SIZES = (2, 3, 4)
FAMILIES = [
    [(0, 1), (0, 2), (1, 2)],
    [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)],
    [(0, 1, 2)],
    [(0, 1), (2,)],
    [(1,), (0, 1), (1, 2)],
]


def rows_of(marginal, sizes=SIZES):
    """The matrix of a marginal, dense."""
    matrix = np.ones((1, 1))
    for i, n in enumerate(sizes):
        matrix = np.kron(matrix, np.eye(n) if i in marginal else np.ones((1, n)))
    return matrix


def tables_of(family, x, sizes=SIZES):
    return tuple(
        np.stack([(rows_of(tuple(row), sizes) @ x).reshape(batch.shape) for row in batch.rows.tolist()])
        for batch in family.batches
    )


def stack(family, sizes=SIZES):
    return np.vstack([rows_of(tuple(r), sizes) for b in family.batches for r in b.rows.tolist()])


def each(family, numbers):
    return np.concatenate([np.repeat(numbers[b.ids], b.cells) for b in family.batches])


def noisy_target(listed, seed, sizes=SIZES, people=30, noise=4.0, weights=None):
    """Sparse counts, their tables with noise on a consistent part, and the target."""
    rng = np.random.default_rng(seed)
    x = rng.multinomial(people, rng.dirichlet(np.full(int(np.prod(sizes)), 0.2))).astype(float)
    family = Family.of(listed, sizes)
    values = tables_of(family, x + rng.normal(scale=noise, size=len(x)), sizes)
    given = np.ones(len(family)) if weights is None else np.asarray(weights, float)
    return x, Target(family, values, given)


def vector(target, answer):
    return np.concatenate([answer.tables(b.rows, b.shape).ravel() for b in target.tables.batches])


def judged(target, sizes=SIZES):
    """The least f and its tables by scipy. Over signed full tables v = root q, f = 1/2 ||q||² - b·q + constant where
    T v >= 0; the dual is a non-negative least-squares problem: minimise ||b + (T root)' mu||² over mu >= 0.
    """
    C, T = stack(target.tables, sizes), stack(target.largest, sizes)
    a = each(target.tables, target.weights)
    z = np.concatenate([v.ravel() for v in target.values])
    U, s, _ = np.linalg.svd(C.T @ (a[:, None] * C))
    keep = s > 1e-9 * s[0]
    root = U[:, keep] / np.sqrt(s[keep])
    b = root.T @ (C.T @ (a * z))
    M = T @ root
    q = b + M.T @ nnls(M.T, -b)[0]
    return float(q @ q) / 2 - float(b @ q) + float(a @ z**2) / 2, C @ (root @ q)


@pytest.mark.parametrize("listed", FAMILIES)
@pytest.mark.parametrize("seed", range(4))
def test_the_tables_are_the_exact_projection(listed, seed):
    weights = np.random.default_rng(seed).uniform(0.5, 3, len(listed))
    _, target = noisy_target(listed, seed, weights=weights)
    found = nonnegative_marginals(target, Clock(), tolerance=1e-6)
    least, tables = judged(target)
    assert found.objective == pytest.approx(least, abs=1e-6)
    assert found.objective == pytest.approx(target.distance(found) / 2, abs=1e-6)
    np.testing.assert_allclose(vector(target, found), tables, atol=1e-3)
    assert 2 * found.gap <= 1e-6


@pytest.mark.parametrize("tolerance", [100.0, 10.0, 1.0, 0.01])
def test_the_gap_is_a_true_bound_and_the_tables_are_valid_whenever_it_stops(tolerance):
    for seed in range(10):
        _, target = noisy_target(FAMILIES[seed % 5], seed)
        found = nonnegative_marginals(target, Clock(), tolerance=tolerance)
        least, tables = judged(target)
        assert found.objective - found.gap <= least + 1e-7
        assert found.objective >= least - 1e-7
        assert 2 * found.gap <= tolerance
        a = each(target.tables, target.weights)
        assert a @ (vector(target, found) - tables) ** 2 <= 2 * found.gap + 1e-6
        for batch in target.largest.batches:
            assert found.coefficients.tables(batch.rows, batch.shape).min() >= -1e-9


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from(FAMILIES))
def test_the_projection_is_never_farther_from_the_truth(seed, listed):
    x, target = noisy_target(listed, seed)
    found = nonnegative_marginals(target, Clock(), tolerance=1e-8)
    truth = stack(target.tables) @ x
    before = vector(target, target.coefficients) - truth
    after = vector(target, found) - truth
    assert after @ after <= before @ before + 1e-3


def test_inconsistent_values_keep_the_certificate():
    rng = np.random.default_rng(3)
    family = Family.of(FAMILIES[0], SIZES)
    values = tuple(rng.normal(2, 4, (len(b.ids), *b.shape)) for b in family.batches)
    target = Target(family, values, np.ones(3))
    found = nonnegative_marginals(target, Clock(), tolerance=1e-8)
    assert found.objective == pytest.approx(judged(target)[0], abs=1e-6)
    assert found.objective == pytest.approx(target.distance(found) / 2, abs=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_known_cells_end_at_their_values(seed):
    x, target = noisy_target(FAMILIES[0], seed)
    rng = np.random.default_rng(seed)
    fixed = tuple(np.where(rng.random(t.shape) < 0.3, t, np.nan) for t in tables_of(target.largest, x))
    found = nonnegative_marginals(target, Clock(), fixed=fixed, tolerance=1e-3)
    for batch, known in zip(target.largest.batches, fixed, strict=True):
        tables = found.coefficients.tables(batch.rows, batch.shape)
        at = ~np.isnan(known)
        np.testing.assert_allclose(tables[at], known[at], atol=1e-9 * 30)
        assert tables.min() >= -1e-9 * 30
    free = nonnegative_marginals(target, Clock(), tolerance=1e-3)
    assert found.with_facts and not free.with_facts
    assert found.objective >= free.objective - free.gap - 1e-9
    assert 2 * found.gap <= 1e-3
    truth = stack(target.tables) @ x  # satisfies the facts, so that the bound must be below its f
    z = np.concatenate([v.ravel() for v in target.values])
    assert found.objective - found.gap <= float((truth - z) @ (truth - z)) / 2


def test_known_cells_of_a_table_that_nothing_measures():
    """Tables (0, 1) and (2); the table (0, 2) is known in part, and no measured one sees it."""
    x, bare = noisy_target([(0, 1), (2,)], 5)
    family = Family.of([(0, 1), (2,), (0, 2)], SIZES)
    weights = np.array([1.0 if m != (0, 2) else 0.0 for m in family])
    found = combine(bare.tables, bare.values, bare.weights, family.closure)
    target = Target(family, tuple(found.tables(b.rows, b.shape) for b in family.batches), weights)
    exact = tables_of(target.largest, x)
    fixed = [np.full(t.shape, np.nan) for t in exact]
    for at, batch in enumerate(target.largest.batches):
        if batch.shape == (2, 4):
            fixed[at][0, 0] = exact[at][0, 0]
    answer = nonnegative_marginals(target, Clock(), fixed=fixed, tolerance=1e-2)
    assert np.isfinite(answer.gap)
    for batch, known in zip(target.largest.batches, fixed, strict=True):
        tables = answer.coefficients.tables(batch.rows, batch.shape)
        at = ~np.isnan(known)
        np.testing.assert_allclose(tables[at], known[at], atol=1e-9 * 30)
        assert tables.min() >= -1e-9 * 30


def test_the_bound_holds_where_a_fact_is_about_what_nothing_measures():
    """Without noise the truth has f = 0 and satisfies the fact, so that no multipliers may prove more."""
    x = np.zeros(SIZES)
    x[0, :, 0], x[1, :, 3] = 20.0, 5.0
    family = Family.of([(0, 1), (2,), (0, 2)], SIZES)
    weights = np.array([1.0 if m != (0, 2) else 0.0 for m in family])
    seen = Family.of([(0, 1), (2,)], SIZES)
    found = combine(seen, tables_of(seen, x.ravel()), np.ones(2), family.closure)
    target = Target(family, tuple(found.tables(b.rows, b.shape) for b in family.batches), weights)
    exact = tables_of(target.largest, x.ravel())
    fixed = [t.copy() if t.shape[1:] == (2, 4) else np.full(t.shape, np.nan) for t in exact]
    solver = _Solver(target, fixed)
    rng = np.random.default_rng(0)
    for size in (0.01, 0.1, 1.0):
        for _ in range(20):
            # multipliers whose part in what is measured is nil gain nothing but what the fact is about
            means = np.where(solver.to.each(solver._own) > 0, 0.0, rng.normal(scale=size, size=solver.to.length))
            multipliers = np.where(solver._is_known, solver.to.spread(means), 0.0)
            assert solver.bound(multipliers, 0.0) <= 1e-9
            assert solver.bound(multipliers, np.inf) == -np.inf


def test_cells_a_little_below_zero_where_nobody_is_expected_cost_little():
    """Independent tables have 0.0001 people where this one has -0.01: on the way there is nearly all of the way."""
    y = np.zeros((10, 10))
    y[0, 0] = y[1, 1] = 5000.0
    y[5, 5] = -0.01
    family = Family.of([(0, 1)], y.shape)
    solver = _Solver(Target(family, (y[None],), np.ones(1)), None)
    independent, even = solver.inside(y.ravel())
    assert min(independent.min(), even.min()) >= 0
    assert np.linalg.norm(independent - y.ravel()) > 4000
    assert np.linalg.norm(even - y.ravel()) < 1


def test_facts_that_contradict_each_other_are_refused():
    _, target = noisy_target(FAMILIES[0], 0)
    fixed = [np.full((len(b.ids), *b.shape), np.nan) for b in target.largest.batches]
    fixed[0][:] = 1.0  # 6 people by (0, 1), and then 16 by (0, 2)
    fixed[1][:] = 2.0
    with pytest.raises(FactsError):
        nonnegative_marginals(target, Clock(), fixed=fixed, tolerance=1e-3)


@pytest.mark.parametrize("listed", FAMILIES)
def test_where_the_time_is_up_the_tables_are_valid_and_their_bound_is_true(listed):
    _, target = noisy_target(listed, 0)
    best = nonnegative_marginals(target, Clock(), tolerance=1e-8)
    late = nonnegative_marginals(target, Clock(seconds=-1), tolerance=1e-9)
    assert late.steps == 1 and best.in_time and not late.in_time
    assert late.objective - late.gap <= best.objective + 1e-8
    assert late.objective == pytest.approx(target.distance(late.coefficients) / 2, rel=1e-6, abs=1e-6)
    for batch in target.largest.batches:
        assert late.coefficients.tables(batch.rows, batch.shape).min() >= -1e-9


def test_facts_may_need_more_time_than_there_is():
    """One step does not find consistent tables with these cells: then there is nothing to return."""
    family = Family.of([(0, 1), (1, 2), (0, 2)], (2, 2, 2))
    values = tuple(np.full((len(b.ids), *b.shape), 10.0) for b in family.batches)
    target = Target(family, values, np.ones(3))
    fixed = [np.full((len(b.ids), *b.shape), np.nan) for b in target.largest.batches]
    fixed[0][0], fixed[0][1] = 10.0, 30.0  # their totals differ: no tables have both
    with pytest.raises(TimeLimitReached):
        nonnegative_marginals(target, Clock(seconds=-1), fixed=fixed, tolerance=1e-3)


# ------------------------------------------------------------------------------------------------------ projection


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 1000), st.sampled_from([(2, 3, 4), (3, 1, 2), (2, 2, 2, 3), (70, 2)]))
def test_the_projection_is_dense_least_squares(seed, sizes):
    rng = np.random.default_rng(seed)
    every = [m for k in range(len(sizes) + 1) for m in combinations(range(len(sizes)), k)]
    listed = [every[i] for i in rng.choice(len(every), rng.integers(1, 5), replace=False)]
    family = Family.of(listed, sizes)
    weights = rng.uniform(0.5, 2, len(family))
    values = tuple(rng.normal(size=(len(b.ids), *b.shape)) for b in family.batches)
    to = Projection(family, weights, family.closure)
    C, a = stack(family, sizes), np.sqrt(each(family, weights))
    v = np.linalg.lstsq(a[:, None] * C, a * to.join(values), rcond=None)[0]
    coefficients = combine(family, values, weights, family.closure)
    vector = to.join(coefficients.blocks)
    cells = to.spread(vector)
    np.testing.assert_allclose(cells, C @ v, atol=1e-9)
    for batch, tables in zip(family.batches, to.split(cells), strict=True):
        np.testing.assert_allclose(coefficients.tables(batch.rows, batch.shape), tables, atol=1e-12)
    np.testing.assert_array_equal(to.join(to.unpack(vector).blocks), vector)


def test_spaces_that_are_not_seen_are_zero_and_those_left_out_are_ignored():
    family = Family.of([(0, 1)], SIZES)
    values = [np.arange(6.0).reshape(1, 2, 3)]
    wider = combine(family, values, np.ones(1), Family.of([(0, 1), (1, 2)], SIZES).closure)
    assert not wider.tables(np.array([[2]], np.int32), (4,)).std()
    fewer = Projection(family, np.ones(1), Family.of([(), (0,)], SIZES))
    cells = fewer.spread(fewer.nearest(fewer.join(values)))
    np.testing.assert_allclose(fewer.split(cells)[0][0], [[1, 1, 1], [4, 4, 4]], atol=1e-12)
