"""The non-negative full table against scipy's exact non-negative least squares; its certificate; its line search."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize_scalar, nnls

from hushcube.errors import TimeLimitReached
from hushcube.faces import full_table
from hushcube.faces.full_table import Memory, nonnegative_table
from hushcube.faces.local import nonnegative_marginals
from hushcube.faces.target import Target
from hushcube.lattice.family import Family
from hushcube.progress import Clock

CASES = [
    ((2, 3, 4), [(0, 1), (0, 2), (1, 2)]),
    ((2, 3, 4), [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]),
    ((2, 2, 2, 2), [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]),
    ((3, 5), [(0, 1)]),
    ((2, 1, 3), [(0, 1), (2,)]),
    ((2, 3, 4), [(0,), (1, 2)]),
]


def rows_of(marginal, sizes):
    matrix = np.ones((1, 1))
    for i, n in enumerate(sizes):
        matrix = np.kron(matrix, np.eye(n) if i in marginal else np.ones((1, n)))
    return matrix


def make(case, seed, people=40, noise=4.0):
    """The true table, a target with noise, and the weighted rows of all its tables with what they should be."""
    sizes, listed = case
    rng = np.random.default_rng(seed)
    x = rng.multinomial(people, rng.dirichlet(np.full(int(np.prod(sizes)), 0.2))).astype(float)
    family = Family.of(listed, sizes)
    weights = rng.uniform(0.5, 2, len(family))
    moved = x + rng.normal(scale=noise, size=len(x))
    values = tuple(
        np.stack([(rows_of(tuple(r), sizes) @ moved).reshape(b.shape) for r in b.rows.tolist()]) for b in family.batches
    )
    target = Target(family, values, weights)
    C = np.vstack([np.sqrt(a) * rows_of(m, sizes) for m, a in zip(family, weights, strict=True)])
    return x, target, C, C @ moved


def exact(C, z, allowed=None):
    """The least f."""
    columns = slice(None) if allowed is None else allowed.ravel()
    return nnls(C[:, columns], z)[1] ** 2 / 2


def fit(target, sizes, tolerance, local=True, allowed=None):
    start = nonnegative_marginals(target, Clock(), tolerance=tolerance) if local else None
    return nonnegative_table(target, sizes, Clock(), start=start, allowed=allowed, tolerance=tolerance)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("local", [True, False])
def test_it_is_the_non_negative_least_squares_solution(case, local):
    for seed in range(5):
        _, target, C, z = make(case, seed)
        found = fit(target, case[0], 1e-2, local)
        least = exact(C, z)
        assert found.table.shape == case[0]
        assert found.table.min() >= 0
        assert found.objective == pytest.approx(np.sum((C @ found.table.ravel() - z) ** 2) / 2, rel=1e-9, abs=1e-9)
        assert least - 1e-9 <= found.objective <= least + 5e-3 + 1e-9, (seed, found.stopped)
        assert found.stopped == "gap" and 2 * found.gap <= 1e-2


@pytest.mark.parametrize("steps", [0, 3, 10, 30])
@pytest.mark.parametrize("local", [True, False])
def test_the_gap_is_a_true_bound_wherever_it_stops(monkeypatch, steps, local):
    monkeypatch.setattr(full_table, "_MOST_STEPS", steps)
    for case in CASES:
        for seed in range(5):
            _, target, C, z = make(case, seed)
            found = fit(target, case[0], 1e-3, local)
            assert found.objective - found.gap <= exact(C, z) + 1e-8
            assert np.isfinite(found.gap)
            assert found.steps <= steps


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(CASES), st.integers(0, 1000), st.floats(0.01, 10))
def test_any_numbers_bound_the_optimum_from_below(case, seed, size):
    _, target, C, z = make(case, seed)
    solver = full_table._Fit(target, case[0], None)
    s = np.random.default_rng(seed).normal(scale=size, size=solver.full.length)
    assert solver.lower(s, solver.full.adjoint(solver.a * s).ravel()) <= exact(C, z) + 1e-8


@pytest.mark.parametrize("case", CASES)
def test_the_bound_is_tight_at_the_exact_solution(case):
    for seed in range(5):
        _, target, C, z = make(case, seed)
        solver = full_table._Fit(target, case[0], None)
        x = nnls(C, z)[0].reshape(case[0])
        r = solver.full.sums(x) - solver.z
        assert solver.lower(r, solver.full.adjoint(solver.a * r).ravel()) == pytest.approx(exact(C, z), abs=1e-7)


@pytest.mark.slow
@settings(deadline=None, max_examples=80)
@given(st.sampled_from(CASES), st.integers(0, 100_000))
def test_the_projection_is_never_farther_from_the_truth_than_the_unbiased_tables(case, seed):
    x, target, C, z = make(case, seed)
    found = fit(target, case[0], 1e-2)
    before, after = np.linalg.norm(z - C @ x), np.linalg.norm(C @ (found.table.ravel() - x))
    assert after <= before + np.sqrt(2 * found.gap) + 1e-9


@pytest.mark.parametrize("case", CASES[:4])
@pytest.mark.parametrize("local", [True, False])
def test_impossible_cells_stay_empty(case, local):
    for seed in range(4):
        _, target, C, z = make(case, seed)
        allowed = np.random.default_rng(seed).random(case[0]) < 0.7
        found = fit(target, case[0], 1e-2, local, allowed)
        assert not found.table[~allowed].any()
        least = exact(C, z, allowed)
        assert found.objective - found.gap <= least + 1e-8
        assert found.objective <= least + 0.05


def test_a_bound_of_tables_with_facts_is_not_used():
    """With facts the local optimum is larger: it bounds another problem."""
    case = CASES[0]
    _, target, C, z = make(case, 1)
    fixed = [np.full((len(b.ids), *b.shape), np.nan) for b in target.largest.batches]
    fixed[0].flat[0] = 25.0
    local = nonnegative_marginals(target, Clock(), fixed=fixed, tolerance=1e-3)
    assert local.objective - local.gap > exact(C, z) + 1
    found = nonnegative_table(target, case[0], Clock(), start=local, tolerance=1e-2)
    assert found.objective - found.gap <= exact(C, z) + 1e-8


def test_tables_without_weight_do_not_count():
    case = CASES[0]
    _, target, _, _ = make(case, 2)
    weights = target.weights.copy()
    weights[0] = 0.0
    fewer = Family.of(list(target.tables)[1:], case[0])
    values = tuple(target.coefficients.tables(b.rows, b.shape) for b in fewer.batches)
    one = fit(Target(target.tables, target.values, weights), case[0], 1e-3, local=False)
    other = fit(Target(fewer, values, weights[1:]), case[0], 1e-3, local=False)
    assert one.objective == pytest.approx(other.objective, abs=1e-3)


def test_it_says_why_it_stopped_and_heeds_the_clock(monkeypatch):
    case = CASES[0]
    _, target, _, _ = make(case, 0)
    with pytest.raises(TimeLimitReached):
        nonnegative_table(target, case[0], Clock(seconds=-1), tolerance=1e-3)
    assert fit(target, case[0], 1e6, False).stopped == "gap"
    monkeypatch.setattr(full_table, "_STALLED", 1e9)
    assert fit(target, case[0], 1e-9, False).stopped == "stalled"
    monkeypatch.setattr(full_table, "_MOST_STEPS", 5)
    assert fit(target, case[0], 1e-9, False).stopped == "steps"


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 1000))
def test_the_line_search_is_exact(seed):
    rng = np.random.default_rng(seed)
    a, second = rng.uniform(0.5, 2, 6), rng.uniform(0, 1, 6)
    r, first = rng.normal(size=(2, 6))
    first *= -np.sign((a * r) @ first)
    t = full_table._best_step(a, r, first, second)

    def value(t):
        return a @ (r + t * first + t**2 * second) ** 2 / 2

    grid = np.linspace(0, 10, 2001)
    near = grid[np.argmin([value(u) for u in grid])]
    best = minimize_scalar(value, bounds=(max(near - 0.01, 0), near + 0.01), method="bounded").fun
    assert value(t) <= best + 1e-9
    assert value(t) < value(0)


def test_the_memory_is_that_of_dense_quasi_newton_updates():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 12))
    A = A @ A.T + np.eye(12)
    memory = Memory(12, 3)
    pairs = []
    for _ in range(5):
        s = rng.normal(size=12)
        memory.add(s, A @ s)
        pairs.append((s, A @ s))
    memory.add(s, -A @ s)  # no curvature: left out
    s, y = pairs[-1]
    H = np.eye(12) * (s @ y) / (y @ y)
    for s, y in pairs[-3:]:
        V = np.eye(12) - np.outer(y, s) / (s @ y)
        H = V.T @ H @ V + np.outer(s, s) / (s @ y)
    g = rng.normal(size=12)
    np.testing.assert_allclose(memory.direction(g), -H @ g, rtol=1e-4, atol=1e-4)
    memory.forget()
    np.testing.assert_array_equal(memory.direction(g), -g)


@pytest.mark.parametrize("size", [1e-30, 1e-100, 1e30])
def test_the_memory_knows_steps_of_any_length(size):
    """H does not change where all steps and all differences of gradients are scaled alike."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(6, 6))
    A = A @ A.T + np.eye(6)
    plain, scaled = Memory(6, 3), Memory(6, 3)
    for s in rng.normal(size=(3, 6)):
        plain.add(s, A @ s)
        scaled.add(size * s, size * (A @ s))
    g = rng.normal(size=6)
    np.testing.assert_allclose(scaled.direction(size * g) / size, plain.direction(g), rtol=1e-4)


@pytest.mark.parametrize("size", [1e-60, 1e-30, 1.0, 1e30])
def test_the_best_step_does_not_depend_on_the_unit(size):
    rng = np.random.default_rng(2)
    a, r, first, second = np.ones(5), *rng.normal(size=(3, 5))
    first = first if r @ first < 0 else -first
    expected = full_table._best_step(a, r, first, second)
    assert expected > 0
    assert full_table._best_step(a, size * r, size * first, size * second) == pytest.approx(expected)
    assert full_table._best_step(a, r, size * first, size**2 * second) == pytest.approx(expected / size)
