"""The non-negative full table against scipy's exact non-negative least squares; its certificate; its steps."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import nnls

from hushcube.faces import full_table
from hushcube.faces.full_table import Memory, SummedTable, nonnegative_table
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


@pytest.mark.parametrize("asked", [0, 3, 20, 40])
def test_the_time_limit_ends_it_with_a_table_and_a_true_bound(asked):
    """Wherever it is up: the clock is asked so many times before."""

    class Asked(Clock):
        times = 0

        @property
        def over(self):
            Asked.times += 1
            return Asked.times > asked

    _, target, C, z = make(CASES[1], 1)
    start = nonnegative_marginals(target, Clock(), tolerance=1e-9)
    found = nonnegative_table(target, CASES[1][0], Asked(), start=start, tolerance=1e-12)
    assert found.stopped == "time" and found.table.min() >= 0
    assert found.objective == pytest.approx(np.sum((C @ found.table.ravel() - z) ** 2) / 2)
    assert found.objective - found.gap <= exact(C, z) + 1e-8


def test_it_says_why_it_stopped_and_heeds_the_clock(monkeypatch):
    case = CASES[0]
    _, target, _, _ = make(case, 0)
    late = nonnegative_table(target, case[0], Clock(seconds=-1), tolerance=1e-3)
    assert (late.stopped, late.steps) == ("time", 0) and late.table.min() >= 0 and np.isfinite(late.gap)
    assert fit(target, case[0], 1e6, False).stopped == "gap"
    monkeypatch.setattr(full_table, "_STALLED", 1e9)
    assert fit(target, case[0], 1e-9, False).stopped == "stalled"
    monkeypatch.setattr(full_table, "_MOST_STEPS", 5)
    assert fit(target, case[0], 1e-9, False).stopped == "steps"


@pytest.mark.parametrize("case", CASES)
def test_every_step_lowers_f_as_its_slope_promises(case):
    """By central differences: the slope is that of f along the step."""
    for seed in range(5):
        _, target, _, _ = make(case, seed)
        solver = full_table._Fit(target, case[0], None)
        full, a = solver.full, solver.a
        x = solver.start(None, Clock())

        def value(theta, x=x, full=full, a=a, solver=solver):
            return float(a @ (full.sums(x * np.exp(full.adjoint(theta))) - solver.z) ** 2) / 2

        r = full.sums(x) - solver.z
        gradient = full.sums(x * full.adjoint(a * r))
        direction = np.random.default_rng(seed).normal(size=full.length)
        slope = (value(1e-6 * direction) - value(-1e-6 * direction)) / 2e-6
        assert gradient @ direction == pytest.approx(slope, rel=1e-5, abs=1e-5)
        f, trial = value(0 * r), np.empty_like(x)
        theta, after, reached = solver._step(x, trial, np.empty_like(x), f, gradient, a * r, Memory(3))
        assert reached == pytest.approx(value(theta)) and reached < f
        np.testing.assert_allclose(after, full.sums(trial) - solver.z, atol=1e-9)


def test_the_memory_is_that_of_dense_quasi_newton_updates():
    rng = np.random.default_rng(0)
    A, K = ((B @ B.T + np.eye(12)) for B in rng.normal(size=(2, 12, 12)))
    memory, pairs = Memory(3), []
    gradient = rng.normal(size=12)
    for turn in range(6):
        memory.direction(gradient, np.linalg.solve(K, gradient))
        s = rng.normal(size=12)
        y = A @ s if turn < 5 else -A @ s  # the last has no curvature, and is left out
        gradient = gradient + y
        memory.add(s, y, np.linalg.solve(K, gradient))
        pairs.append((s, y))
    s, y = pairs[4]
    H = np.linalg.inv(K) * (s @ y) / (y @ np.linalg.solve(K, y))
    for s, y in pairs[2:5]:
        V = np.eye(12) - np.outer(y, s) / (s @ y)
        H = V.T @ H @ V + np.outer(s, s) / (s @ y)
    np.testing.assert_allclose(memory.direction(gradient, np.linalg.solve(K, gradient)), -H @ gradient, rtol=1e-8)
    memory.forget()
    np.testing.assert_array_equal(memory.direction(gradient, 2 * gradient), -2 * gradient)


def test_single_precision_ends_at_the_same_tables(monkeypatch):
    case = CASES[2]
    for seed in range(5):
        _, target, C, z = make(case, seed)
        double = fit(target, case[0], 1e-2)
        with monkeypatch.context() as patch:
            patch.setattr(full_table, "_SINGLE", 0)
            patch.setattr(full_table, "_UNSEEN", np.inf)
            single = fit(target, case[0], 1e-2)
        assert single.table.dtype == np.float64
        assert single.objective == pytest.approx(np.sum((C @ single.table.ravel() - z) ** 2) / 2, rel=1e-9)
        assert single.objective - single.gap <= exact(C, z) + 1e-8
        assert abs(single.objective - double.objective) <= 1e-2


def test_tables_are_sums_of_the_full_one_in_any_order():
    full = np.random.default_rng(2).random((3, 2, 3, 4))
    rows = np.array([[1, 2], [0, 1], [1, 2]], np.int32)
    found = SummedTable(full).tables(rows[[0, 2]], (2, 3))
    np.testing.assert_allclose(found, np.stack([full.sum(axis=(0, 3))] * 2))
    np.testing.assert_allclose(SummedTable(full).tables(rows[1:2], (3, 2))[0], full.sum(axis=(2, 3)))
    both = SummedTable(np.moveaxis(full, 1, 3)).tables(np.array([[1, 3], [0, 3]], np.int32), (3, 2))
    np.testing.assert_allclose(both, [full.sum(axis=(0, 3)).T, full.sum(axis=(2, 3))])
    assert SummedTable(full).tables(np.zeros((1, 0), np.int32), ()) == pytest.approx(full.sum())
